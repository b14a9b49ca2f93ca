//! One message, streamed: deltas are collected, and become entries once per window.

use std::sync::Arc;

use super::Appender;
use super::append::{Admission, note_key};
use super::numbering::{Draft, Placed};
use crate::embedded::state::{Room, State, Writer};
use crate::embedded::sync::MutexGuard;
use crate::error::{Error, Result};
use crate::log::append::{self, Terms};
use crate::log::limits::check_known;
use crate::log::writer::Closed;
use crate::log::{AppendOptions, Durability, Receipt};
use crate::model::{Chunk, FinishReason, Json, Message, Metadata, Name, Role};
use crate::record::{Body, Head, InterruptCause};

impl Appender {
    /// Begins a message, if its conversation is as expected and its key is new. If the key was used before, returns the
    /// receipt of that time and no writer.
    pub(crate) fn begin(
        &self,
        name: &Name,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Arc<Writer>>, Receipt)> {
        let (body, terms) = append::begin(name, role, metadata, self.numbering.epoch(), options)?;
        let _pin = self.catalogue.pin(name.id())?;
        match self.admit(name, &terms, false)? {
            Admission::New(state) => {
                let (writer, receipt) = self.queue_beginning(state, name, role, body, &terms)?;
                Ok((Some(writer), receipt))
            }
            Admission::Duplicate(receipt, _) => Ok((None, receipt)),
        }
    }

    fn queue_beginning(
        &self,
        mut state: MutexGuard<'_, State>,
        name: &Name,
        role: Role,
        body: Body,
        terms: &Terms<'_>,
    ) -> Result<(Arc<Writer>, Receipt)> {
        let id = name.id();
        let draft = Draft { name, body, messages: 1, base: None, said: &[], time: None };
        let mut placed = self
            .numbering
            .place(&mut state, id, draft, |head| head.open.extend(head.next_message_index.checked_sub(1)));
        note_key(&mut state, terms, &mut placed)?;
        let writer = Arc::new(Writer::new(name.clone(), placed.base, role));
        state.slots.slot(id).add_writer(&writer);
        let queued = placed.queue(&self.commit, state, Durability::Durable);
        if queued.is_err() {
            self.commit.lock().slots.remove(&writer);
        }
        queued.map(|receipt| (writer, receipt))
    }

    /// Collects a delta. Earlier deltas are queued first, if there are enough of them: only then it waits.
    pub(crate) fn push(&self, writer: &Arc<Writer>, chunk_index: u32, delta: Chunk) -> Result<()> {
        loop {
            let mut buffer = writer.lock();
            if buffer.collected.is_enough() {
                drop(buffer);
                self.queue_when_possible(writer)?;
                continue;
            }
            let is_first = buffer.place.is_none();
            let mut state = self.commit.lock();
            state.life.check_writable()?;
            state.slots.check_live(writer)?;
            if is_first {
                // The buffer is locked, so a store that closes from here on finds what is pushed.
                buffer.place = Some(state.collecting.add(writer));
            }
            drop(state);
            let pushed = buffer.collected.push(chunk_index, delta);
            if is_first && pushed.is_err() {
                // It collects nothing.
                self.commit.lock().collecting.remove(buffer.clear());
                return pushed;
            }
            let is_enough = buffer.collected.is_enough();
            drop(buffer);
            if is_first {
                self.commit.note_buffered();
            }
            if is_enough {
                // Without room the delta stays in the buffer.
                self.try_queue(writer, Room::Bounded)?;
            }
            return pushed;
        }
    }

    /// Queues what is collected, and commits what has waited for a window. For the background thread: it waits for nothing
    /// but the engine.
    pub(crate) fn tick(&self) {
        // The writers get the error at their next call.
        let _ = self.queue_collected(Room::Bounded);
        self.commit.commit_due();
    }

    /// Queues what every writer collected, except for frozen conversations. Waits for nothing.
    fn queue_collected(&self, room: Room) -> Result<()> {
        self.queue_each(|writer| self.try_queue(writer, room).map(|_| ()))
    }

    fn queue_each(&self, queue: impl Fn(&Writer) -> Result<()>) -> Result<()> {
        let collecting = self.commit.lock().collecting.writers();
        for writer in collecting {
            match queue(&writer) {
                // It lost its message, and with it what it collected.
                Ok(()) | Err(Error::MessageClosed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Queues what a writer collected, once there is room and its conversation is not frozen.
    fn queue_when_possible(&self, writer: &Writer) -> Result<()> {
        while !self.try_queue(writer, Room::Bounded)? {
            drop(
                self.commit
                    .writable_while(writer.name().id(), Durability::Buffered, |state| state.slots.check_live(writer))?,
            );
        }
        Ok(())
    }

    /// Queues what a writer collected. False: there is no room, or its conversation is frozen, and nothing has changed.
    /// The thread that changes this wakes the background thread.
    fn try_queue(&self, writer: &Writer, room: Room) -> Result<bool> {
        let mut buffer = writer.lock();
        let is_dropped = writer.is_dropped();
        let is_empty = buffer.collected.fragments().is_empty() && !is_dropped;
        if !is_empty && !self.commit.lock().may_queue(writer, room) {
            return Ok(false);
        }
        let mut body = Body::fragments(writer.role(), buffer.collected.fragments())?;
        if is_dropped {
            body.interrupt(InterruptCause::Dropped)?;
        }
        let mut state = self.commit.lock();
        state.life.check_sound()?;
        let live = state.slots.check_live(writer);
        if live.is_ok() && !is_empty {
            if !state.may_queue(writer, room) {
                return Ok(false);
            }
            let interrupt = |head: &mut Head| {
                if is_dropped {
                    head.interrupt(writer.message_index())
                }
            };
            let placed = self.place_of(&mut state, writer, body, interrupt);
            state.push(placed.pending);
        }
        state.collecting.remove(buffer.clear());
        if is_dropped {
            state.slots.remove(writer);
        }
        drop(state);
        if !is_empty {
            self.commit.note_buffered();
        }
        live.map(|()| true)
    }

    /// Writes what is collected and closes the message. `metadata`: what is known since it began.
    pub(crate) fn finish(
        &self,
        writer: &Writer,
        finish_reason: Option<FinishReason>,
        usage: Option<Json>,
        metadata: Metadata,
    ) -> Result<Receipt> {
        let id = writer.name().id();
        let end = Message { finish_reason, usage, metadata, ..Message::new(writer.role(), []) };
        check_known(&end)?;
        loop {
            // Waiting with the buffer locked would block the background thread.
            drop(self.commit.writable_while(id, Durability::Durable, |state| state.slots.check_live(writer))?);
            let mut buffer = writer.lock();
            let mut body = Body::fragments(writer.role(), buffer.collected.fragments())?;
            let is_cut = body.finish(&end)?;
            let mut state = self.commit.lock();
            state.life.check_writable()?;
            state.slots.check_live(writer)?;
            if state.slots.is_frozen(id) {
                continue;
            }
            let mut placed = self.place_of(&mut state, writer, body, |head| match is_cut {
                true => head.interrupt(writer.message_index()),
                false => head.close(writer.message_index()),
            });
            placed.pending.finishes = Some(writer.message_index());
            state.collecting.remove(buffer.clear());
            let waiter = self.commit.enqueue(state, placed.pending);
            drop(buffer);
            self.commit.wait(&waiter)?;
            writer.close(Closed::Finished);
            return Ok(Receipt { durable: true, ..placed.receipt });
        }
    }

    /// The writer is gone: the message is interrupted, with what was pushed. Waits for nothing.
    pub(crate) fn abandon(&self, writer: &Arc<Writer>) {
        writer.close(Closed::Dropped);
        let mut buffer = writer.lock();
        let mut state = self.commit.lock();
        if buffer.place.is_none() && state.slots.check_live(writer).is_ok() {
            buffer.place = Some(state.collecting.add(writer));
        }
        drop((buffer, state));
        // If nothing can be queued now, because the conversation is frozen, the background thread does it later.
        if self.try_queue(writer, Room::Unbounded).is_err() {
            // There is nobody to return an error to.
            let place = writer.lock().clear();
            let mut state = self.commit.lock();
            state.collecting.remove(place);
            state.slots.remove(writer);
        }
    }

    /// The place of an open message's record. `change`: what it does to the head beside moving it.
    fn place_of(&self, state: &mut State, writer: &Writer, body: Body, change: impl FnOnce(&mut Head)) -> Placed {
        let index = writer.message_index();
        let draft = Draft { name: writer.name(), body, messages: 0, base: Some(index), said: &[], time: None };
        let mut placed = self.numbering.place(state, writer.name().id(), draft, change);
        placed.receipt.message_indexes = vec![index];
        placed
    }

    /// Returns once all that was accepted before is durable.
    pub(crate) fn flush(&self) -> Result<()> {
        self.queue_each(|writer| self.queue_when_possible(writer))?;
        self.commit.sync()
    }

    /// Makes everything durable that was accepted, up to the last write.
    pub(crate) fn drain(&self) -> Result<()> {
        loop {
            self.queue_collected(Room::Unbounded)?;
            let state = self.commit.lock();
            state.life.check_sound()?;
            if state.collecting.is_empty() {
                drop(state);
                return self.commit.sync();
            }
            // The rest belongs to frozen conversations, unless they were unfrozen by now. Nothing more is written to them, so
            // they soon will be.
            if state.collecting.writers().iter().all(|writer| state.slots.is_frozen(writer.name().id())) {
                drop(self.commit.wait_for_room(state));
            }
        }
    }
}
