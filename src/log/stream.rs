//! One message, streamed: deltas are collected, and become entries once per window.

use std::mem;
use std::sync::{Arc, PoisonError};

use super::core::Core;
use super::limits::{check_append, check_key};
use super::options::{Durability, Receipt};
use super::place::Draft;
use super::writer::{Buffer, Closed, Writer};
use crate::error::Result;
use crate::model::{Chunk, FinishReason, Json, Message, Metadata, Name, Role};
use crate::record::{Body, Head, InterruptCause};

/// Bytes of collected deltas from which they are queued at once.
const BUFFER_BYTES: usize = 64 * 1024;

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
        state.slot(id).check_owner(name)?;
        state.slot(id).check_free(name)?;
        let draft = Draft { name, body, messages: 1, base: None, said: &[] };
        let placed = self.place(&mut state, id, draft, |head| head.open.extend(head.next_message_index.checked_sub(1)));
        let writer = Arc::new(Writer::new(name.clone(), placed.base, role));
        state.slot(id).writers.insert(placed.base, Arc::clone(&writer));
        let receipt = self.queue(state, placed, Durability::Durable)?;
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
        self.write(writer, Body::fragments(writer.role, &fragments)?, Durability::Buffered, |_| ()).map(|_| ())
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
        let receipt = self.write(writer, body, Durability::Durable, |head| head.close(writer.message_index))?;
        writer.close(Closed::Finished);
        Ok(receipt)
    }

    /// The writer is gone: the message is interrupted, with what was pushed.
    pub(crate) fn abandon(&self, writer: &Writer) {
        let mut buffer = writer.lock();
        // The writer is dropped, so nobody is there to get an error; the message has what was durable.
        let _ = self.queue_interruption(writer, &mut buffer);
        writer.close(Closed::Dropped);
        drop(buffer);
        if let Some(slot) = self.lock().slots.get_mut(&writer.name.id())
            && slot.writers.get(&writer.message_index).is_some_and(|live| std::ptr::eq(&**live, writer))
        {
            slot.writers.remove(&writer.message_index);
        }
    }

    /// Queues what is collected, and that nothing follows it, unless the message is closed.
    fn queue_interruption(&self, writer: &Writer, buffer: &mut Buffer) -> Result<()> {
        writer.check_open()?;
        let mut body = Body::fragments(writer.role, &buffer.take())?;
        body.interrupt(InterruptCause::Dropped)?;
        self.write(writer, body, Durability::Buffered, |head| head.interrupt(writer.message_index)).map(|_| ())
    }

    /// Writes entries of an open message. `change`: what they do to the head beside moving it.
    fn write(
        &self,
        writer: &Writer,
        body: Body,
        durability: Durability,
        change: impl FnOnce(&mut Head),
    ) -> Result<Receipt> {
        // A deleted conversation is frozen while it is erased: its writers must not wait for that.
        writer.check_open()?;
        let id = writer.name.id();
        let _pin = self.pin(id)?;
        let mut state = self.writable(id, durability)?;
        writer.check_open()?;
        let index = writer.message_index;
        let draft = Draft { name: &writer.name, body, messages: 0, base: Some(index), said: &[] };
        let mut placed = self.place(&mut state, id, draft, change);
        placed.pending.finishes = (durability == Durability::Durable).then_some(index);
        placed.receipt.message_indexes = vec![index];
        self.queue(state, placed, durability)
    }
}
