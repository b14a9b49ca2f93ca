//! An open message: what it is, what was collected of it, why it takes no more content.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU8, Ordering};

use super::sync::{Mutex, MutexGuard};
use crate::error::{Error, Result};
use crate::log::limits::{Limits, check_chunk};
use crate::model::{Chunk, Name, Role};
use crate::record::Fragment;

const OPEN: u8 = 0;
const FINISHED: u8 = 1;
const DROPPED: u8 = 2;
const REWOUND: u8 = 3;
const DELETED: u8 = 4;

/// Why a message takes no more content.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Closed {
    Finished = FINISHED,
    Dropped = DROPPED,
    Rewound = REWOUND,
    Deleted = DELETED,
}

/// An open message.
pub(crate) struct Writer {
    pub(super) name: Name,
    pub(super) message_index: u64,
    pub(super) role: Role,
    closed: AtomicU8,
    /// Locked before the log's state, never after.
    buffer: Mutex<Buffer>,
}

#[derive(Default)]
pub(super) struct Buffer {
    fragments: Vec<Fragment>,
    /// Its place among the writers that collect, from the first delta until what it collected is queued.
    pub(super) place: Option<u64>,
    pub(super) bytes: usize,
    /// What each chunk is.
    chunks: BTreeMap<u32, Shape>,
}

/// A chunk without its text.
struct Shape {
    chunk: Chunk,
    /// Its size up to now.
    bytes: usize,
    /// The place of its fragment among those collected, if it has one.
    at: usize,
}

/// Without what was collected.
impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, message_index, role, .. } = self;
        f.debug_struct("Writer")
            .field("name", name)
            .field("message_index", message_index)
            .field("role", role)
            .finish_non_exhaustive()
    }
}

impl Writer {
    pub(super) fn new(name: Name, message_index: u64, role: Role) -> Self {
        Self { name, message_index, role, closed: AtomicU8::new(OPEN), buffer: Mutex::default() }
    }

    pub(crate) const fn message_index(&self) -> u64 {
        self.message_index
    }

    /// Whether it was dropped: what it collected must still be queued.
    pub(super) fn is_dropped(&self) -> bool {
        self.closed.load(Ordering::Acquire) == DROPPED
    }

    /// The first reason counts.
    pub(super) fn close(&self, closed: Closed) {
        let _ = self.closed.compare_exchange(OPEN, closed as u8, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Why the message takes no more content.
    pub(super) fn error(&self) -> Error {
        let reason = match self.closed.load(Ordering::Acquire) {
            FINISHED => "it is finished",
            REWOUND => "the conversation was rewound to before it",
            DELETED => "the conversation was deleted",
            _ => "its writer was dropped",
        };
        Error::MessageClosed { conversation: self.name.clone(), message_index: self.message_index, reason }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    /// Adds a delta, if it fits its chunk's kind.
    pub(super) fn push(&mut self, chunk_index: u32, delta: Chunk) -> Result<()> {
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
            // The shape accepted it, so the fragments before it accept it too.
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
    pub(super) fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// What was collected is queued: returns its place among the writers that collect.
    pub(super) fn clear(&mut self) -> Option<u64> {
        self.bytes = 0;
        self.fragments = Vec::new();
        self.place.take()
    }
}
