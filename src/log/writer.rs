//! One message, streamed: deltas are collected, and become entries once per window.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::append::{Draft, Durability, Placed};
use super::limits::{check_append, check_chunk, check_key};
use super::{Core, Receipt};
use crate::error::{Error, Result};
use crate::model::{Chunk, FinishReason, Json, Message, Metadata, Name, Role};
use crate::record::{Body, Fragment};

/// Bytes of collected deltas from which they are queued at once.
const BUFFER_BYTES: usize = 64 * 1024;

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
    name: Name,
    message_index: u64,
    role: Role,
    closed: AtomicU8,
    /// Locked before the log's state, never after.
    buffer: Mutex<Buffer>,
}

#[derive(Debug, Default)]
struct Buffer {
    fragments: Vec<Fragment>,
    bytes: usize,
    /// What each chunk is, without its text, and its size so far.
    shapes: BTreeMap<u32, (Chunk, usize)>,
}

impl Writer {
    pub(crate) const fn message_index(&self) -> u64 {
        self.message_index
    }

    /// The first reason counts.
    pub(super) fn close(&self, closed: Closed) {
        let _ = self.closed.compare_exchange(OPEN, closed as u8, Ordering::AcqRel, Ordering::Acquire);
    }

    fn check_open(&self) -> Result<()> {
        let reason = match self.closed.load(Ordering::Acquire) {
            OPEN => return Ok(()),
            FINISHED => "it is finished",
            REWOUND => "the conversation was rewound to before it",
            DELETED => "the conversation was deleted",
            _ => "its writer was dropped",
        };
        let (conversation, message_index) = (self.name.id(), self.message_index);
        Err(Error::MessageClosed { conversation, message_index, reason })
    }

    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    /// Adds a delta, if it fits what its chunk is. True: it is the first since the buffer was emptied.
    fn push(&mut self, chunk_index: u32, delta: Chunk) -> Result<bool> {
        let size = check_chunk(&delta)?;
        match self.shapes.get_mut(&chunk_index) {
            None => {
                self.shapes.insert(chunk_index, (delta.shape(), size));
            }
            Some((shape, total)) => {
                let misfit = |misfit| Error::InvalidInput(format!("a delta of chunk {chunk_index}: {misfit}"));
                shape.push_fragment(delta.shape()).map_err(misfit)?;
                *total += size;
                if *total > super::Limits::CHUNK_BYTES {
                    return Err(Error::LimitExceeded {
                        what: "a chunk",
                        actual: format!("{total} bytes"),
                        limit: format!("{} bytes", super::Limits::CHUNK_BYTES),
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

    fn take(&mut self) -> Vec<Fragment> {
        self.bytes = 0;
        mem::take(&mut self.fragments)
    }
}

impl Core {
    pub(crate) fn begin(&self, name: &Name, role: Role, metadata: Metadata) -> Result<(Arc<Writer>, Receipt)> {
        check_key(name)?;
        let mut body = Body::new();
        let message = Message { metadata, ..Message::new(role, []) };
        body.begin(0, role, Some(self.epoch), &message)?;
        check_append(body.len())?;
        let id = name.id();
        let _pin = self.pin(id)?;
        let mut state = self.writable(id, Durability::Durable)?;
        state.slot(id).check_free(id)?;
        let draft = Draft { name, body, messages: 1, base: None, said: &[] };
        let Placed { pending, first_seq, last_seq, base } = self.place(&mut state, draft);
        let writer = Arc::new(Writer {
            name: name.clone(),
            message_index: base,
            role,
            closed: AtomicU8::new(OPEN),
            buffer: Mutex::default(),
        });
        state.slot(id).writers.insert(base, Arc::clone(&writer));
        self.queue_durable(state, pending)?;
        let receipt = Receipt {
            conversation: id,
            first_seq,
            last_seq,
            message_indexes: vec![base],
            durable: true,
            duplicate: false,
        };
        Ok((writer, receipt))
    }

    /// Collects a delta.
    pub(crate) fn push(&self, writer: &Arc<Writer>, chunk_index: u32, delta: Chunk) -> Result<()> {
        writer.check_open()?;
        self.lock().check_writable()?;
        let mut buffer = writer.lock();
        let is_first = buffer.push(chunk_index, delta)?;
        if buffer.bytes >= BUFFER_BYTES {
            return self.queue_fragments(writer, &mut buffer);
        }
        drop(buffer);
        if is_first {
            self.buffering.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(writer));
            self.ticker.wake();
        }
        Ok(())
    }

    /// Queues the deltas of every writer: what the ticker does once per window.
    pub(super) fn queue_buffers(&self) {
        let writers = mem::take(&mut *self.buffering.lock().unwrap_or_else(PoisonError::into_inner));
        for writer in writers {
            let mut buffer = writer.lock();
            // A closed message takes no more; a poisoned store tells the writer at its next call.
            let _ = self.queue_fragments(&writer, &mut buffer);
        }
    }

    fn queue_fragments(&self, writer: &Writer, buffer: &mut Buffer) -> Result<()> {
        let fragments = buffer.take();
        if fragments.is_empty() {
            return Ok(());
        }
        self.write(writer, Body::fragments(writer.role, &fragments)?, Durability::Buffered).map(|_| ())
    }

    /// Writes what is collected and closes the message. `metadata`: what is known since it began.
    pub(crate) fn finish(
        &self,
        writer: &Writer,
        finish_reason: Option<FinishReason>,
        usage: Option<Json>,
        metadata: Metadata,
    ) -> Result<Receipt> {
        writer.check_open()?;
        let mut buffer = writer.lock();
        let mut body = Body::fragments(writer.role, &buffer.take())?;
        body.finish(&Message { finish_reason, usage, metadata, ..Message::new(writer.role, []) })?;
        let receipt = self.write(writer, body, Durability::Durable)?;
        writer.close(Closed::Finished);
        Ok(receipt)
    }

    /// The writer is gone: the message is interrupted, with what was pushed.
    pub(crate) fn abandon(&self, writer: &Writer) {
        let mut buffer = writer.lock();
        // The writer is dropped, so nobody is there to be told; the message has what was durable.
        let _ = self.queue_fragments(writer, &mut buffer);
        writer.close(Closed::Dropped);
        drop(buffer);
        if let Some(slot) = self.lock().slots.get_mut(&writer.name.id())
            && slot.writers.get(&writer.message_index).is_some_and(|live| std::ptr::eq(&**live, writer))
        {
            slot.writers.remove(&writer.message_index);
        }
    }

    fn write(&self, writer: &Writer, body: Body, durability: Durability) -> Result<Receipt> {
        // A deleted conversation is frozen while it is erased: its writers must not wait for that.
        writer.check_open()?;
        let id = writer.name.id();
        let _pin = self.pin(id)?;
        let mut state = self.writable(id, durability)?;
        writer.check_open()?;
        let base = Some(writer.message_index);
        let finishes = (durability == Durability::Durable).then_some(writer.message_index);
        let draft = Draft { name: &writer.name, body, messages: 0, base, said: &[] };
        let Placed { mut pending, first_seq, last_seq, base } = self.place(&mut state, draft);
        pending.finishes = finishes;
        self.queue(state, pending, durability)?;
        Ok(Receipt {
            conversation: id,
            first_seq,
            last_seq,
            message_indexes: vec![base],
            durable: durability == Durability::Durable,
            duplicate: false,
        })
    }
}
