//! Appends and open messages; closes, crashes and openings.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::super::engines::Forgetful;
use super::super::model::{Conversation, Kept, What, Writer, grow};
use super::op::Expect;
use super::{NAMES, Place, World, name};
use crate::error::Error;
use crate::log::{AppendOptions, Changes, Durability, ExpectedHead};
use crate::model::{Chunk, FinishReason, Message, Metadata, Role};

/// The delta of a chunk: its index decides its kind.
fn delta(chunk: u32, text: String) -> Chunk {
    match chunk {
        0 => Chunk::text(text),
        1 => Chunk::thinking(text),
        _ => Chunk::tool_call("call", "tool", text),
    }
}

impl World {
    pub(super) fn append(
        &mut self,
        at: usize,
        messages: &[Message],
        buffered: bool,
        expected: Expect,
        key: Option<u8>,
    ) -> Result<(), TestCaseError> {
        let known = self.conversations[at].as_ref();
        let last = known.map_or(0, |conversation| conversation.lines.len() as u64);
        let (expected, fits) = match expected {
            Expect::Any => (ExpectedHead::Any, true),
            Expect::New => (ExpectedHead::NewConversation, known.is_none()),
            Expect::Actual => (ExpectedHead::At(last), true),
            Expect::Wrong => (ExpectedHead::At(last + 1), false),
        };
        let durability = if buffered { Durability::Buffered } else { Durability::Durable };
        let mut options = AppendOptions::new().with_expected(expected).with_durability(durability);
        if let Some(key) = key {
            options = options.with_idempotency_key(format!("key {key}"));
        }
        let result = self.log().core().appender.append(&name(at), messages, &Changes::new(), &options);
        let kept = key.and_then(|key| known?.keys.get(&key)).cloned();
        match kept {
            Some(kept) if kept.content.as_deref().is_none_or(|content| content == messages) => {
                let receipt = result.unwrap();
                let published = known.and_then(|conversation| conversation.published).unwrap_or(0) as u64;
                prop_assert!(receipt.duplicate);
                prop_assert_eq!((receipt.first_seq, receipt.last_seq), (kept.first_seq, kept.last_seq));
                prop_assert_eq!(&receipt.message_indexes, &kept.message_indexes);
                prop_assert_eq!(receipt.durable, !buffered || published >= kept.last_seq);
                if !buffered && published < kept.last_seq {
                    self.publish();
                }
            }
            Some(_) => prop_assert!(matches!(result, Err(Error::KeyReused { .. })), "{result:?}"),
            None if known.is_none() && self.reserved.contains_key(&at) => {
                prop_assert!(matches!(result, Err(Error::SharedByForks { .. })), "{result:?}");
            }
            None if !fits => {
                let Err(Error::StaleHead { actual, .. } | Error::NameTaken { actual, .. }) = result else {
                    panic!("a conflict is expected: {result:?}")
                };
                prop_assert_eq!(actual, last);
            }
            None => {
                let receipt = result.unwrap();
                let base = self.conversations[at].as_ref().map_or(0, Conversation::next_message);
                let mut lines = Vec::new();
                for (index, message) in (base..).zip(messages) {
                    if message.chunks.is_empty() {
                        lines.push((Some(index), What::Empty(message.clone())));
                    }
                    for chunk in 0..message.chunks.len() {
                        lines.push((Some(index), What::Whole { message: message.clone(), chunk }));
                    }
                }
                let (first_seq, last_seq) = self.add(at, lines);
                let message_indexes: Vec<u64> = (base..base + messages.len() as u64).collect();
                prop_assert_eq!((receipt.first_seq, receipt.last_seq), (first_seq, last_seq));
                prop_assert_eq!(&receipt.message_indexes, &message_indexes);
                prop_assert_eq!((receipt.durable, receipt.duplicate), (!buffered, false));
                if let (Some(key), Some(conversation)) = (key, &mut self.conversations[at]) {
                    let content = Some(messages.to_vec());
                    conversation.keys.insert(key, Kept { content, first_seq, last_seq, message_indexes });
                }
                if !buffered {
                    self.publish();
                }
            }
        }
        self.check(at)
    }

    pub(super) fn begin(&mut self, at: usize, role: Role) -> Result<(), TestCaseError> {
        let result = self.log().core().appender.begin(&name(at), role, Metadata::default(), &AppendOptions::new());
        if self.conversations[at].is_none() && self.reserved.contains_key(&at) {
            prop_assert!(matches!(result, Err(Error::SharedByForks { .. })), "{result:?}");
            return Ok(());
        }
        let (handle, receipt) = result.unwrap();
        let message = self.conversations[at].as_ref().map_or(0, Conversation::next_message);
        let (first_seq, last_seq) = self.add(at, vec![(Some(message), What::Begin(role))]);
        self.publish();
        prop_assert_eq!((receipt.first_seq, receipt.last_seq), (first_seq, last_seq));
        prop_assert_eq!(receipt.message_indexes, [message]);
        let writer = Writer { conversation: at, message, closed: false, pending: Vec::new(), begun: BTreeSet::new() };
        self.writers.push((handle.unwrap(), writer));
        self.check(at)
    }

    /// The writer that a number means: one of the newest.
    fn writer(&self, number: usize) -> Option<usize> {
        self.writers.len().checked_sub(number + 1)
    }

    pub(super) fn push(&mut self, writer: usize, chunk: u32, text: &str) -> Result<(), TestCaseError> {
        let Some(writer) = self.writer(writer) else { return Ok(()) };
        let delta = delta(chunk, text.to_owned());
        let result = self.log().core().appender.push(&self.writers[writer].0, chunk, delta.clone());
        let known = &mut self.writers[writer].1;
        if known.closed {
            prop_assert!(matches!(result, Err(Error::MessageClosed { .. })), "{result:?}");
            return Ok(());
        }
        prop_assert!(result.is_ok(), "{result:?}");
        if known.pending.is_empty() {
            self.buffering.push(writer);
        }
        grow(&mut known.pending, chunk, delta);
        known.begun.insert(chunk);
        let at = known.conversation;
        self.check(at)
    }

    /// A delta that does not fit its chunk.
    pub(super) fn push_other(&mut self, writer: usize, chunk: u32) -> Result<(), TestCaseError> {
        let Some(writer) = self.writer(writer) else { return Ok(()) };
        let (handle, known) = &self.writers[writer];
        if known.begun.contains(&chunk) && !known.closed {
            let result = self.log().core().appender.push(handle, chunk, Chunk::image("https://example.org/a.png"));
            prop_assert!(matches!(result, Err(Error::InvalidInput(_))), "{result:?}");
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, writer: usize) -> Result<(), TestCaseError> {
        let Some(writer) = self.writer(writer) else { return Ok(()) };
        let handle = Arc::clone(&self.writers[writer].0);
        let result = self.log().core().appender.finish(&handle, Some(FinishReason::Stop), None, Metadata::default());
        self.log().core().appender.abandon(&handle);
        let Writer { conversation: at, message, closed, .. } = self.writers[writer].1;
        if closed {
            prop_assert!(matches!(result, Err(Error::MessageClosed { .. })), "{result:?}");
            return Ok(());
        }
        self.flush_writer(writer);
        let (_, last_seq) = self.add(at, vec![(Some(message), What::Finish(FinishReason::Stop))]);
        self.publish();
        prop_assert_eq!(result.unwrap().last_seq, last_seq);
        self.writers[writer].1.closed = true;
        self.check(at)
    }

    pub(super) fn abandon(&mut self, writer: usize) -> Result<(), TestCaseError> {
        let Some(writer) = self.writer(writer) else { return Ok(()) };
        self.log().core().appender.abandon(&self.writers[writer].0);
        let Writer { conversation: at, message, closed, .. } = self.writers[writer].1;
        if !closed {
            // What was collected and the interruption are one record.
            let pending = std::mem::take(&mut self.writers[writer].1.pending);
            let fragments = pending.into_iter().map(|(chunk, delta)| What::Fragment(chunk, delta));
            let lines = fragments.chain([What::Interrupt]).map(|what| (Some(message), what)).collect();
            self.add(at, lines);
        }
        self.writers[writer].1.closed = true;
        self.check(at)
    }
}

impl World {
    pub(super) fn reopen(&mut self) -> Result<(), TestCaseError> {
        self.log().close().unwrap();
        self.flush_buffers();
        self.publish();
        self.restart(None)
    }

    pub(super) fn power_cut(&mut self) -> Result<(), TestCaseError> {
        let Place::Memory(engine) = &self.place else { return self.reopen() };
        let left = engine.cut();
        self.buffering.clear();
        for conversation in &mut self.conversations {
            let Some(known) = conversation else { continue };
            let Some(published) = known.published else {
                *conversation = None;
                continue;
            };
            known.lines.truncate(published);
            known.activity = known.published_activity;
            known.keys.retain(|_, kept| kept.last_seq <= published as u64);
        }
        self.restart(Some(left))
    }

    fn restart(&mut self, left: Option<Arc<Forgetful>>) -> Result<(), TestCaseError> {
        if let Some(log) = self.log.take() {
            let handles = self.writers.drain(..).map(|(handle, _)| handle);
            handles.for_each(|handle| log.core().appender.abandon(&handle));
        }
        if let Some(left) = left {
            self.place = Place::Memory(left);
        }
        self.open();
        for at in 0..NAMES {
            let open = self.conversations[at].as_ref().map(Conversation::open).unwrap_or_default();
            for message in open {
                self.add(at, vec![(Some(message), What::Interrupt)]);
            }
        }
        self.publish();
        self.check_all()
    }
}
