//! Messages that are written as they are made: deltas are collected, and sent as one part a window. Parts are numbered: one that
//! is sent twice is written once. Messages whose programs are gone get their ends here too.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::database::Database;
use super::followed::Followed;
use super::gate::Gate;
use super::rows::{self, Outcome, items, number};
use super::statement::{Statement, signed};
use super::writers::{Part, Parts, Writer, Writers};
use crate::error::{Error, Result};
use crate::log::limits::check_known;
use crate::log::writer::Closed;
use crate::log::{OpenMessage, Receipt};
use crate::model::{Chunk, ConversationId, FinishReason, Json, Message, Metadata};
use crate::record::{self, Body, InterruptCause};

/// How a part ends its message, as a statement takes it.
const GOES_ON: u64 = 0;
const FINISHED: u64 = 1;
const INTERRUPTED: u64 = 2;

const PUSH: &str = "SELECT * FROM cs_push_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

/// Messages that are interrupted in one go.
const AT_ONCE: u64 = 500;

/// Sends what this process's open messages collect.
pub(super) struct Streams {
    database: Arc<Database>,
    gate: Arc<Gate>,
    writers: Arc<Writers>,
    followed: Arc<Followed>,
}

/// A message that is being written.
pub(super) struct Open {
    streams: Arc<Streams>,
    writer: Arc<Writer>,
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open").field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl OpenMessage for Open {
    fn index(&self) -> u64 {
        self.writer.index
    }

    fn push(&self, chunk_index: u32, delta: Chunk) -> Result<()> {
        let Self { streams, writer } = self;
        streams.gate.check_writable()?;
        writer.check_open()?;
        if writer.buffer().collected.is_enough() {
            // A caller that collects faster than the database takes it waits here.
            streams.flush(writer)?;
        }
        let mut buffer = writer.buffer();
        buffer.collected.push(chunk_index, delta)?;
        streams.writers.collect(writer, &mut buffer);
        Ok(())
    }

    fn finish(&self, reason: Option<FinishReason>, usage: Option<Json>, metadata: Metadata) -> Result<Receipt> {
        let Self { streams, writer } = self;
        let end = Message { finish_reason: reason, usage, metadata, ..Message::new(writer.role, []) };
        check_known(&end)?;
        streams.gate.check_writable()?;
        writer.check_open()?;
        let (task, ending) = (Arc::clone(streams), Arc::clone(writer));
        let finished = streams.database.wait(async move {
            let mut parts = ending.turn.lock().await;
            task.send_collected(&ending, &mut parts, Some(&end)).await
        })??;
        let (first_seq, last_seq) = finished.ok_or_else(|| Outcome::Closed.unexpected())?;
        let conversation = writer.name.id();
        let message_indexes = vec![writer.index];
        Ok(Receipt { conversation, first_seq, last_seq, message_indexes, durable: true, duplicate: false })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let Self { streams, writer } = self;
        if writer.check_open().is_ok() {
            writer.close(Closed::Dropped);
            streams.writers.end(writer);
        } else {
            streams.writers.remove(writer);
        }
    }
}

impl Streams {
    pub(super) fn new(
        database: Arc<Database>,
        gate: Arc<Gate>,
        writers: Arc<Writers>,
        followed: Arc<Followed>,
    ) -> Self {
        Self { database, gate, writers, followed }
    }

    /// Takes a message that was begun.
    pub(super) fn open(self: &Arc<Self>, writer: Writer) -> Open {
        let writer = Arc::new(writer);
        self.writers.add(&writer);
        Open { streams: Arc::clone(self), writer }
    }

    /// Sends what a writer collected.
    fn flush(self: &Arc<Self>, writer: &Arc<Writer>) -> Result<()> {
        let (task, writer) = (Arc::clone(self), Arc::clone(writer));
        self.database.wait(async move { task.flush_one(&writer).await })?
    }

    /// Sends what all writers collected, and waits for it.
    pub(super) fn flush_all(self: &Arc<Self>) -> Result<()> {
        let task = Arc::clone(self);
        self.database.wait(async move { task.flush_these(task.writers.take_all()).await })?
    }

    /// Ends the messages of these conversations whose writers are gone; whether there were some.
    pub(super) fn flush_dropped(self: &Arc<Self>, ids: &[ConversationId]) -> Result<bool> {
        let dropped = self.writers.dropped(ids);
        if dropped.is_empty() {
            return Ok(false);
        }
        let task = Arc::clone(self);
        self.database.wait(async move { task.flush_these(dropped).await })??;
        Ok(true)
    }

    /// Sends what these collected: those of one conversation in turn, as each of them locks its row.
    async fn flush_these(self: &Arc<Self>, writers: Vec<Arc<Writer>>) -> Result<()> {
        let mut conversations: HashMap<ConversationId, Vec<Arc<Writer>>> = HashMap::new();
        for writer in writers {
            conversations.entry(writer.name.id()).or_default().push(writer);
        }
        let flushing = conversations.into_values().map(|writers| {
            let task = Arc::clone(self);
            tokio::spawn(async move {
                let mut result = Ok(());
                for writer in writers {
                    match task.flush_one(&writer).await {
                        // It lost its message, and with it what was collected.
                        Ok(()) | Err(Error::MessageClosed { .. }) => {}
                        failed => result = failed,
                    }
                }
                result
            })
        });
        let mut result = Ok(());
        for flushed in flushing.collect::<Vec<_>>() {
            match flushed.await {
                Ok(Ok(())) => {}
                Ok(failed) => result = failed,
                Err(_) => result = Err(Error::Closed),
            }
        }
        result
    }

    async fn flush_one(self: &Arc<Self>, writer: &Arc<Writer>) -> Result<()> {
        let mut parts = writer.turn.lock().await;
        let sent = self.send_collected(writer, &mut parts, None).await;
        if !matches!(sent, Ok(_) | Err(Error::MessageClosed { .. })) {
            // It is tried again with the next window.
            self.writers.collect(writer, &mut writer.buffer());
        }
        sent.map(|_| ())
    }

    /// Sends what a writer collected, and its end, if it has one: gives the seqs of what was sent.
    async fn send_collected(
        &self,
        writer: &Writer,
        parts: &mut Parts,
        end: Option<&Message>,
    ) -> Result<Option<(u64, u64)>> {
        if let Some(part) = parts.unanswered.take() {
            let is_last = part.is_last;
            match self.send(writer, parts, part).await {
                Ok(sent) if is_last => return Ok(Some(sent)),
                // The end may have been written before.
                Err(Error::Busy(cause)) if is_last => return Err(Error::OutcomeUnknown { cause }),
                Err(error @ Error::Io { .. }) if is_last => {
                    return Err(Error::OutcomeUnknown { cause: error.to_string() });
                }
                sent => _ = sent?,
            }
        }
        let is_dropped = writer.is_dropped();
        if !is_dropped {
            writer.check_open().inspect_err(|_| self.writers.remove(writer))?;
        }
        let fragments = writer.buffer().collected.clear();
        if fragments.is_empty() && end.is_none() && !is_dropped {
            return Ok(None);
        }
        let mut body = Body::fragments(writer.role, &fragments)?;
        let ends = match end {
            Some(end) => match body.finish(end)? {
                true => INTERRUPTED,
                false => FINISHED,
            },
            None if is_dropped => {
                body.interrupt(InterruptCause::Dropped)?;
                INTERRUPTED
            }
            None => GOES_ON,
        };
        parts.sent += 1;
        let statement = part(writer, parts.sent, self.gate.now(), &body, ends);
        let sent = self.send(writer, parts, Part { statement, is_last: ends != GOES_ON, is_repeated: false }).await;
        if parts.unanswered.is_none() && matches!(sent, Err(Error::Busy(_) | Error::Io { .. })) {
            // It was not written: it is collected again, and its end may be another one then.
            parts.sent -= 1;
            writer.buffer().collected.put_back(fragments);
        }
        sent.map(Some)
    }

    async fn send(&self, writer: &Writer, parts: &mut Parts, part: Part) -> Result<(u64, u64)> {
        let row = match self.database.calls().row(&part.statement).await {
            Ok(row) => row,
            Err(error) => {
                if matches!(error, Error::OutcomeUnknown { .. }) || part.is_repeated {
                    parts.unanswered = Some(Part { is_repeated: true, ..part });
                }
                return Err(error);
            }
        };
        let closed = match Outcome::of(&row)? {
            Outcome::Done => {
                let (first, last) = (number(&row, "o_first")?, number(&row, "o_last")?);
                if part.is_last {
                    writer.close(Closed::Finished);
                    self.writers.remove(writer);
                }
                self.followed.moved(writer.name.id(), writer.incarnation, last + 1);
                return Ok((first, last));
            }
            Outcome::Gone => Closed::Deleted,
            Outcome::LeaseExpired => Closed::Expired,
            Outcome::Closed => Closed::Elsewhere,
            other => return Err(other.unexpected()),
        };
        writer.close(closed);
        self.writers.remove(writer);
        Err(writer.check_open().err().unwrap_or_else(|| Outcome::Closed.unexpected()))
    }

    /// Sends what is collected, a window after the first of it came.
    pub(super) async fn send_windows(streams: Arc<Self>, window: Duration) {
        loop {
            let collecting = streams.writers.take_collecting();
            if !collecting.is_empty() {
                if let Err(error) = streams.flush_these(collecting).await {
                    tracing::warn!("what was streamed could not be written yet: {error}");
                }
                sleep(window).await;
                continue;
            }
            streams.writers.collects.notified().await;
            sleep(window).await;
        }
    }

    /// Interrupts the messages of programs that are gone, until the log is closed: a renewal of leases does not wait for it.
    pub(super) async fn sweep(streams: Arc<Self>, pause: Duration) {
        while !streams.gate.is_closed() {
            sleep(pause).await;
            if let Err(error) = streams.interrupt_expired().await {
                tracing::warn!("messages of programs that are gone could not be interrupted: {error}");
            }
        }
    }

    /// Interrupts the messages whose leases have run out, in order, and forgets programs that hold nothing any more. One that
    /// cannot be interrupted keeps no other one waiting; a database that does not answer ends it.
    pub(super) async fn interrupt_expired(self: &Arc<Self>) -> Result<()> {
        const EXPIRED: &str = "SELECT o.conv_id, t.incarnation, o.message FROM cs_open o \
            JOIN cs_conversation t ON t.conv_id = o.conv_id LEFT JOIN cs_holder h ON h.holder = o.holder \
            WHERE o.done IS NULL AND NOT t.deleted AND coalesce(h.until, '-infinity') <= clock_timestamp() \
            AND (o.conv_id, o.message) > ($2, $3) ORDER BY o.conv_id, o.message LIMIT $1";
        const FORGET: &str = "WITH gone AS (DELETE FROM cs_open o \
            WHERE o.done < clock_timestamp() - interval '1 minute' AND NOT cs_is_held_v1(o.holder)) \
            DELETE FROM cs_holder h WHERE h.until < clock_timestamp() - interval '1 minute' \
            AND NOT EXISTS (SELECT FROM cs_open o WHERE o.holder = h.holder)";
        let calls = self.database.calls();
        let mut after = (Vec::new(), -1_i64);
        let mut waited = Duration::ZERO;
        loop {
            let expired = Statement::repeatable(EXPIRED).with(AT_ONCE).with(after.0).with(after.1);
            let rows = calls.query(&expired).await?;
            after = (Vec::new(), -1);
            for row in &rows {
                let (id, message) = (rows::id(row, "conv_id")?, number(row, "message")?);
                let begun = Instant::now();
                if let Err(error) = self.interrupt(id, number(row, "incarnation")?, message).await {
                    tracing::warn!("message {message} of {id} could not be interrupted yet: {error}");
                    waited += begun.elapsed();
                    if waited >= calls.timeout() {
                        return Err(error);
                    }
                }
                after = (id.as_bytes().to_vec(), signed(message));
            }
            if (rows.len() as u64) < AT_ONCE {
                break;
            }
        }
        calls.query(&Statement::repeatable(FORGET)).await.map(|_| ())
    }

    /// Writes that a message takes no more, if nobody holds it.
    async fn interrupt(&self, id: ConversationId, incarnation: u64, message: u64) -> Result<()> {
        let mut body = Body::new();
        body.interrupt(InterruptCause::Reopened)?;
        let (digests, places) = items(&body);
        let statement = Statement::repeatable(PUSH)
            .with(id.as_bytes())
            .with(incarnation)
            .with(message)
            .with(None::<Vec<u8>>)
            .with(0_u64)
            .with(self.gate.now())
            .with(record::seal_entries(id, &body))
            .with(body.entries())
            .with(digests)
            .with(places)
            .with(INTERRUPTED);
        let row = self.database.calls().row(&statement).await?;
        if Outcome::of(&row)? == Outcome::Done {
            self.followed.moved(id, incarnation, number(&row, "o_last")? + 1);
        }
        Ok(())
    }
}

/// The statement of a part.
fn part(writer: &Writer, number: u64, now: i64, body: &Body, ends: u64) -> Statement {
    let id = writer.name.id();
    let (digests, places) = items(body);
    Statement::repeatable(PUSH)
        .writing()
        .with(id.as_bytes())
        .with(writer.incarnation)
        .with(writer.index)
        .with(&writer.holder)
        .with(number)
        .with(now)
        .with(record::seal_entries(id, body))
        .with(body.entries())
        .with(digests)
        .with(places)
        .with(ends)
}
