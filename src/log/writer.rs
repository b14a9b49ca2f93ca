//! An open message: what it is, what was collected of it, why nothing more can be written to it.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::limits::{Limits, check_chunk};
use crate::error::{Error, Result};
use crate::model::{Chunk, Name, Role};
use crate::record::Fragment;

const OPEN: u8 = 0;
const FINISHED: u8 = 1;
const DROPPED: u8 = 2;
const REWOUND: u8 = 3;
const DELETED: u8 = 4;

/// Why nothing more can be written to a message.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Closed {
    Finished = FINISHED,
    Dropped = DROPPED,
    Rewound = REWOUND,
    Deleted = DELETED,
}

/// An open message.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(super) name: Name,
    pub(super) message_index: u64,
    pub(super) role: Role,
    closed: AtomicU8,
    /// Locked before the log's state, never after.
    buffer: Mutex<Buffer>,
}

#[derive(Debug, Default)]
pub(super) struct Buffer {
    fragments: Vec<Fragment>,
    pub(super) bytes: usize,
    /// What each chunk is, without its text, and its size so far.
    shapes: BTreeMap<u32, (Chunk, usize)>,
}

impl Writer {
    pub(super) fn new(name: Name, message_index: u64, role: Role) -> Self {
        Self { name, message_index, role, closed: AtomicU8::new(OPEN), buffer: Mutex::default() }
    }

    pub(crate) const fn message_index(&self) -> u64 {
        self.message_index
    }

    /// The first reason counts.
    pub(super) fn close(&self, closed: Closed) {
        let _ = self.closed.compare_exchange(OPEN, closed as u8, Ordering::AcqRel, Ordering::Acquire);
    }

    pub(super) fn check_open(&self) -> Result<()> {
        let reason = match self.closed.load(Ordering::Acquire) {
            OPEN => return Ok(()),
            FINISHED => "it is finished",
            REWOUND => "the conversation was rewound to before it",
            DELETED => "the conversation was deleted",
            _ => "its writer was dropped",
        };
        let (conversation, message_index) = (self.name.clone(), self.message_index);
        Err(Error::MessageClosed { conversation, message_index, reason })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    /// Adds a delta, if it fits what its chunk is. True: it is the first since the buffer was emptied.
    pub(super) fn push(&mut self, chunk_index: u32, delta: Chunk) -> Result<bool> {
        let size = check_chunk(&delta)?;
        match self.shapes.get_mut(&chunk_index) {
            None => {
                self.shapes.insert(chunk_index, (delta.shape(), size));
            }
            Some((shape, total)) => {
                let misfit = |misfit| Error::InvalidInput(format!("a delta of chunk {chunk_index}: {misfit}"));
                shape.push_fragment(delta.shape()).map_err(misfit)?;
                *total += size;
                if *total > Limits::CHUNK_BYTES {
                    return Err(Error::LimitExceeded {
                        what: "a chunk",
                        actual: format!("{total} bytes"),
                        limit: format!("{} bytes", Limits::CHUNK_BYTES),
                    });
                }
            }
        }
        self.bytes += size;
        let is_first = self.fragments.is_empty();
        match self.fragments.iter_mut().find(|fragment| fragment.chunk_index == chunk_index) {
            // The shape took it, so the fragments before it do.
            Some(fragment) => {
                let _ = fragment.chunk.push_fragment(delta);
            }
            None => self.fragments.push(Fragment { chunk_index, chunk: delta }),
        }
        Ok(is_first)
    }

    pub(super) fn take(&mut self) -> Vec<Fragment> {
        self.bytes = 0;
        mem::take(&mut self.fragments)
    }
}
