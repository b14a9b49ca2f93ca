//! The threads of a measurement, and what each of them does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, ConversationId, FinishReason, Message, Metadata, Role};
use conversation_store::{AppendOptions, Durability, Receipt, Store};

use super::super::failure::Failure;
use super::acks::Acks;
use super::latency::Latency;

/// Appends to a conversation before the next one begins.
const APPENDS: usize = 20;
/// Deltas of a streamed message, and the pause between them.
const DELTAS: usize = 40;
const PAUSE: Duration = Duration::from_millis(5);
const FILLER: &str = "The quick brown fox jumps over the lazy dog, and goes on. ";

/// What each thread does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) durability: Durability,
    /// Bytes of a message.
    pub(super) chunk_bytes: usize,
    /// The least time from the start of one append to the start of the next.
    pub(super) pause: Option<Duration>,
    pub(super) mixed: bool,
}

/// The operations on a store.
#[derive(Debug)]
pub(super) struct Load<'a> {
    store: &'a Store,
    acks: Acks,
    work: Work,
    stopped: AtomicBool,
    streamed: AtomicU64,
    text_bytes: AtomicU64,
}

/// What was done.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) latency: Latency,
    /// Messages that were streamed to their end.
    pub(super) streamed: u64,
    pub(super) text_bytes: u64,
}

impl<'a> Load<'a> {
    pub(super) fn new(store: &'a Store, acks: Acks, work: Work) -> Self {
        let (stopped, streamed, text_bytes) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        Self { store, acks, work, stopped, streamed, text_bytes }
    }

    /// Runs this many threads for this long. `progress` is called with the time that has passed.
    pub(super) fn run(
        &self,
        threads: u16,
        streams: u16,
        length: Duration,
        progress: impl Fn(Duration),
    ) -> Result<Done, Failure> {
        let begun = Instant::now();
        let mut latency = Latency::new();
        let result = thread::scope(|scope| {
            let appending: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.until_stopped(Self::converse))).collect();
            let streaming: Vec<_> = (0..streams).map(|_| scope.spawn(|| self.until_stopped(Self::stream))).collect();
            while begun.elapsed() < length && !self.stopped.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(20).min(length.saturating_sub(begun.elapsed())));
                progress(begun.elapsed());
            }
            self.stopped.store(true, Ordering::Release);
            let mut result = Ok(());
            for thread in appending.into_iter().chain(streaming) {
                match thread.join() {
                    Ok(Ok(own)) => latency.add(&own),
                    Ok(Err(failure)) => result = Err(failure),
                    Err(_) => result = Err(Failure::failed("a thread of the measurement panicked")),
                }
            }
            result
        });
        result?;
        let (streamed, text_bytes) = (self.streamed.load(Ordering::Relaxed), self.text_bytes.load(Ordering::Relaxed));
        Ok(Done { latency, streamed, text_bytes })
    }

    fn until_stopped(&self, step: fn(&Self, &mut Latency) -> Result<(), Failure>) -> Result<Latency, Failure> {
        let mut latency = Latency::new();
        while !self.stopped.load(Ordering::Acquire) {
            step(self, &mut latency).inspect_err(|_| self.stopped.store(true, Ordering::Release))?;
        }
        Ok(latency)
    }

    /// One conversation.
    fn converse(&self, latency: &mut Latency) -> Result<(), Failure> {
        let mut id = ConversationId::new();
        for step in 0..APPENDS {
            if self.stopped.load(Ordering::Acquire) {
                break;
            }
            let mut options = AppendOptions::new().with_durability(self.work.durability);
            if self.work.mixed && step.is_multiple_of(4) {
                options = options.with_idempotency_key(format!("step {step}"));
            }
            let message = self.message(id, step);
            let begun = Instant::now();
            let receipt = self.store.append_with(id, &[message], &options)?;
            latency.note(begun.elapsed());
            self.acknowledge(&receipt)?;
            if self.work.mixed {
                id = self.change(id, step, &receipt)?;
            }
            if let Some(pause) = self.work.pause {
                thread::sleep(pause.saturating_sub(begun.elapsed()));
            }
        }
        Ok(())
    }

    /// Something else that happens to a conversation. Returns the conversation to continue with.
    fn change(&self, id: ConversationId, step: usize, last: &Receipt) -> Result<ConversationId, Failure> {
        match step {
            4 => self.acknowledge(&self.store.set_title(id, Some("A measurement"))?)?,
            8 => {
                let index = last.message_indexes.last().copied().unwrap_or_default();
                self.acknowledge(&self.store.rewind(id, index)?)?;
            }
            12 => {
                let at_seq = last.last_seq - 1;
                let child = self.store.fork(id, Some(at_seq))?;
                self.acks.note(child, at_seq)?;
                return Ok(child);
            }
            _ => {}
        }
        Ok(id)
    }

    /// One conversation with a streamed answer; every fourth writer is dropped before the end.
    fn stream(&self, _: &mut Latency) -> Result<(), Failure> {
        let id = ConversationId::new();
        self.acknowledge(&self.store.append(id, &[Message::user("Tell me.")])?)?;
        let mut writer = self.store.begin(id, Role::Assistant, Metadata::default())?;
        self.acks.note(id, writer.first_seq())?;
        let delta = text(&id.to_string(), self.work.chunk_bytes.div_ceil(DELTAS));
        let is_finished = id.as_bytes().last().is_none_or(|byte| byte % 4 != 0);
        let deltas = if is_finished { DELTAS } else { DELTAS / 2 };
        for _ in 0..deltas {
            if self.stopped.load(Ordering::Acquire) {
                return Ok(());
            }
            writer.push(0, Chunk::text(&delta))?;
            self.text_bytes.fetch_add(delta.len() as u64, Ordering::Relaxed);
            thread::sleep(PAUSE);
        }
        if is_finished {
            self.acknowledge(&writer.finish(Some(FinishReason::Stop), None)?)?;
            self.streamed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn message(&self, id: ConversationId, step: usize) -> Message {
        let text = text(&format!("{id} {step} "), self.work.chunk_bytes);
        self.text_bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
        if step.is_multiple_of(2) { Message::user(text) } else { Message::assistant([Chunk::text(text)]) }
    }

    fn acknowledge(&self, receipt: &Receipt) -> Result<(), Failure> {
        self.acks.note(receipt.conversation, receipt.last_seq)
    }
}

/// This many bytes, beginning as given.
fn text(begin: &str, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + FILLER.len());
    text.push_str(begin);
    while text.len() < bytes {
        text.push_str(FILLER);
    }
    text.truncate(bytes);
    text
}
