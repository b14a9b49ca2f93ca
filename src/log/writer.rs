//! An open message: its deltas, until they become entries, and why nothing more can be written to it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU8, Ordering};

use super::limits::{Limits, check_chunk};
use crate::error::{Error, Result};
use crate::model::{Chunk, Name};
use crate::record::Fragment;

/// Bytes of collected deltas from which they are written at once.
const ENOUGH_BYTES: usize = 64 * 1024;

/// What was collected of a message, one fragment of each chunk.
#[derive(Default)]
pub(crate) struct Collected {
    fragments: Vec<Fragment>,
    bytes: usize,
    /// What each chunk is.
    chunks: BTreeMap<u32, Shape>,
}

/// A chunk without its text.
struct Shape {
    chunk: Chunk,
    /// Its size so far.
    bytes: usize,
    /// The place of its fragment among those collected, if it has one.
    at: usize,
}

impl Collected {
    /// Adds a delta, if it fits what its chunk is.
    pub(crate) fn push(&mut self, chunk_index: u32, delta: Chunk) -> Result<()> {
        let size = check_chunk(&delta)?;
        let at = self.fragments.len();
        let shape = match self.chunks.entry(chunk_index) {
            Entry::Vacant(entry) => entry.insert(Shape { chunk: delta.shape(), bytes: size, at }),
            Entry::Occupied(entry) => {
                let shape = entry.into_mut();
                let bytes = shape.bytes + size;
                if bytes > Limits::CHUNK_BYTES {
                    return Err(Error::LimitExceeded {
                        what: "a chunk",
                        actual: format!("{bytes} bytes"),
                        limit: format!("{} bytes", Limits::CHUNK_BYTES),
                    });
                }
                let misfit = |misfit| Error::InvalidInput(format!("a delta of chunk {chunk_index}: {misfit}"));
                shape.chunk.push_fragment(delta.shape()).map_err(misfit)?;
                shape.bytes = bytes;
                shape
            }
        };
        self.bytes += size;
        match self.fragments.get_mut(shape.at).filter(|fragment| fragment.chunk_index == chunk_index) {
            // The shape took it, so the fragments before it do.
            Some(fragment) => {
                let _ = fragment.chunk.push_fragment(delta);
            }
            None => {
                shape.at = at;
                self.fragments.push(Fragment { chunk_index, chunk: delta });
            }
        }
        Ok(())
    }

    /// What is collected, in the order in which the chunks were first pushed to.
    pub(crate) fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// Whether so much is collected that it is to be written at once.
    pub(crate) const fn is_enough(&self) -> bool {
        self.bytes >= ENOUGH_BYTES
    }

    /// Collects again what was given to be written, before what came since.
    #[cfg(feature = "postgres")]
    pub(crate) fn put_back(&mut self, mut fragments: Vec<Fragment>) {
        fragments.append(&mut self.fragments);
        self.fragments = fragments;
        self.bytes = self.fragments.iter().filter_map(|fragment| check_chunk(&fragment.chunk).ok()).sum();
        for (at, fragment) in self.fragments.iter().enumerate() {
            if let Some(shape) = self.chunks.get_mut(&fragment.chunk_index) {
                shape.at = at;
            }
        }
    }

    /// Forgets what is collected, which is written, or gives it to be written. What each chunk is stays known.
    pub(crate) fn clear(&mut self) -> Vec<Fragment> {
        self.bytes = 0;
        std::mem::take(&mut self.fragments)
    }
}

/// Why nothing more can be written to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Closed {
    Finished = 1,
    Dropped,
    Rewound,
    Deleted,
    #[cfg(feature = "postgres")]
    Expired,
    #[cfg(feature = "postgres")]
    Elsewhere,
}

/// Whether something can still be written to a message, and why not.
#[derive(Debug, Default)]
pub(crate) struct Closing(AtomicU8);

impl Closing {
    const OPEN: u8 = 0;

    /// The first reason counts.
    pub(crate) fn close(&self, closed: Closed) {
        let _ = self.0.compare_exchange(Self::OPEN, closed as u8, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Whether its writer was dropped: what was collected is still to be written.
    pub(crate) fn is_dropped(&self) -> bool {
        self.0.load(Ordering::Acquire) == Closed::Dropped as u8
    }

    /// Fails if nothing more can be written to the message.
    #[cfg(feature = "postgres")]
    pub(crate) fn check(&self, conversation: &Name, message_index: u64) -> Result<()> {
        match self.0.load(Ordering::Acquire) {
            Self::OPEN => Ok(()),
            _ => Err(self.error(conversation, message_index)),
        }
    }

    /// Why nothing more can be written to the message: if nobody closed it, its writer is gone.
    pub(crate) fn error(&self, conversation: &Name, message_index: u64) -> Error {
        const DROPPED: &str = "its writer was dropped";
        const REASONS: [&str; 6] = [
            "it is finished",
            DROPPED,
            "the conversation was rewound to before it",
            "the conversation was deleted",
            "its lease ran out, as its program was not heard of in time",
            "another program rewound it, or interrupted it as its lease had run out",
        ];
        let closed = usize::from(self.0.load(Ordering::Acquire));
        let reason = closed.checked_sub(1).and_then(|at| REASONS.get(at)).copied().unwrap_or(DROPPED);
        Error::MessageClosed { conversation: conversation.clone(), message_index, reason }
    }
}
