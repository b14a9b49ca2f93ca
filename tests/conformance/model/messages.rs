//! Messages: each gets its seqs and its index when it is written, whole or streamed.

use std::collections::BTreeSet;

use conversation_store::model::{Chunk, FinishReason, Message, Metadata, Role};
use conversation_store::{AppendOptions, Begun, Durability, Error, ExpectedHead, Interruption, Receipt};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::op::{End, Expect};
use super::plain::{Content, Conversation, Kept, What, Writer};
use super::{World, name};

/// The delta of a chunk: which kind it is, its index says.
fn delta(chunk: u32, text: String) -> Chunk {
    match chunk {
        0 => Chunk::text(text),
        1 => Chunk::thinking(text),
        _ => Chunk::tool_call("call", "tool", text),
    }
}

/// What becomes of a write.
enum Fate {
    Taken,
    Repeated(Box<Kept>),
    KeyReused,
    Shared,
    Unexpected(u64),
}

impl World<'_> {
    fn options(&self, at: usize, expected: Expect, key: Option<u8>) -> AppendOptions {
        let last = self.last_seq(at);
        let options = AppendOptions::new().with_expected(match expected {
            Expect::Any => ExpectedHead::Any,
            Expect::New => ExpectedHead::NewConversation,
            Expect::Actual => ExpectedHead::At(last),
            Expect::Wrong => ExpectedHead::At(last + 1),
        });
        match key {
            Some(key) => options.with_idempotency_key(format!("key {key}")),
            None => options,
        }
    }

    fn fate(&self, at: usize, content: &Content, expected: Expect, key: Option<u8>) -> Fate {
        let known = self.conversations[at].as_ref();
        let fits = match expected {
            Expect::Any | Expect::Actual => true,
            Expect::New => known.is_none(),
            Expect::Wrong => false,
        };
        match key.and_then(|key| known?.keys.get(&key)) {
            Some(kept) if kept.content.as_ref().is_none_or(|known| known == content) => {
                Fate::Repeated(Box::new(kept.clone()))
            }
            Some(_) => Fate::KeyReused,
            None if known.is_none() && self.reserved.contains_key(&at) => Fate::Shared,
            None if !fits => Fate::Unexpected(self.last_seq(at)),
            None => Fate::Taken,
        }
    }

    /// Whether a write that was not taken got its answer.
    fn refused(&self, fate: &Fate, result: Result<Receipt, Error>) -> Result<(), TestCaseError> {
        match (fate, result) {
            (Fate::Repeated(kept), Ok(receipt)) => {
                prop_assert!(receipt.duplicate);
                prop_assert_eq!((receipt.first_seq, receipt.last_seq), (kept.first_seq, kept.last_seq));
                prop_assert_eq!(&receipt.message_indexes, &kept.message_indexes);
            }
            (Fate::KeyReused, Err(Error::KeyReused { .. })) | (Fate::Shared, Err(Error::SharedByForks { .. })) => {}
            (Fate::Unexpected(last), Err(Error::StaleHead { actual, .. } | Error::NameTaken { actual, .. })) => {
                prop_assert_eq!(actual, *last);
            }
            (_, result) => prop_assert!(false, "not what was to come: {result:?}"),
        }
        Ok(())
    }

    fn keep(&mut self, at: usize, key: Option<u8>, content: Content, receipt: &Receipt) {
        if let (Some(key), Some(conversation)) = (key, &mut self.conversations[at]) {
            let Receipt { first_seq, last_seq, message_indexes, .. } = receipt.clone();
            conversation.keys.insert(key, Kept { content: Some(content), first_seq, last_seq, message_indexes });
        }
    }

    pub(super) fn append(
        &mut self,
        at: usize,
        messages: &[Message],
        buffered: bool,
        expected: Expect,
        key: Option<u8>,
    ) -> Result<(), TestCaseError> {
        let content = Content::Append(messages.to_vec());
        let fate = self.fate(at, &content, expected, key);
        let durability = if buffered { Durability::Buffered } else { Durability::Durable };
        let options = self.options(at, expected, key).with_durability(durability);
        let result = self.store().append_with(name(at), messages, &options);
        self.store().sync().unwrap();
        if !matches!(fate, Fate::Taken) {
            self.refused(&fate, result)?;
            return self.check(at);
        }
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
        let seqs = self.add(at, lines);
        let message_indexes: Vec<u64> = (base..base + messages.len() as u64).collect();
        prop_assert_eq!((receipt.first_seq, receipt.last_seq), seqs);
        prop_assert_eq!(&receipt.message_indexes, &message_indexes);
        prop_assert!(!receipt.duplicate && (buffered || receipt.durable));
        self.keep(at, key, content, &receipt);
        self.check(at)
    }

    pub(super) fn begin(
        &mut self,
        at: usize,
        role: Role,
        item: Option<&str>,
        expected: Expect,
        key: Option<u8>,
    ) -> Result<(), TestCaseError> {
        let metadata = Metadata { id: item.map(str::to_owned), ..Metadata::default() };
        let content = Content::Begin(role, metadata.clone());
        let fate = self.fate(at, &content, expected, key);
        let options = self.options(at, expected, key);
        let writer = match self.store().begin_with(name(at), role, metadata.clone(), &options) {
            Ok(Begun::Writer(writer)) if matches!(fate, Fate::Taken) => writer,
            Ok(Begun::Duplicate(receipt)) => return self.refused(&fate, Ok(receipt)),
            Err(error) => return self.refused(&fate, Err(error)),
            Ok(Begun::Writer(writer)) => panic!("{writer:?} should not be"),
        };
        let message = self.conversations[at].as_ref().map_or(0, Conversation::next_message);
        let (first_seq, last_seq) = self.add(at, vec![(Some(message), What::Begin(role, metadata))]);
        prop_assert_eq!((writer.first_seq(), writer.message_index()), (first_seq, message));
        if let (Some(key), Some(conversation)) = (key, &mut self.conversations[at]) {
            let kept = Kept { content: Some(content), first_seq, last_seq, message_indexes: vec![message] };
            conversation.keys.insert(key, kept);
        }
        let known = Writer { conversation: at, message, closed: false, begun: BTreeSet::new() };
        self.writers.push((writer, known));
        self.check(at)
    }

    /// The writer that a number means: one of the newest.
    fn writer(&self, number: usize) -> Option<usize> {
        self.writers.len().checked_sub(number + 1)
    }

    pub(super) fn push(
        &mut self,
        writer: usize,
        deltas: Vec<(u32, String)>,
        end: Option<End>,
    ) -> Result<(), TestCaseError> {
        let Some(writer) = self.writer(writer) else { return Ok(()) };
        let (handle, known) = &mut self.writers[writer];
        let Writer { conversation: at, message, closed, .. } = *known;
        // What comes in one window is one fragment of each chunk.
        let mut fragments: Vec<(u32, String)> = Vec::new();
        for (chunk, text) in deltas {
            let result = handle.push(chunk, delta(chunk, text.clone()));
            if closed {
                prop_assert!(matches!(result, Err(Error::MessageClosed { .. })), "{result:?}");
                continue;
            }
            prop_assert!(result.is_ok(), "{result:?}");
            known.begun.insert(chunk);
            match fragments.iter_mut().find(|(known, _)| *known == chunk) {
                Some((_, before)) => before.push_str(&text),
                None => fragments.push((chunk, text)),
            }
        }
        let fragment = |(chunk, text)| (Some(message), What::Fragment(chunk, delta(chunk, text)));
        let fragments: Vec<_> = fragments.into_iter().map(fragment).collect();
        match end {
            None => {
                self.store().sync().unwrap();
                if !fragments.is_empty() {
                    self.add(at, fragments);
                }
            }
            Some(End::Finish) => {
                let result = self.writers.remove(writer).0.finish(Some(FinishReason::Stop), None);
                if closed {
                    prop_assert!(matches!(result, Err(Error::MessageClosed { .. })), "{result:?}");
                } else {
                    if !fragments.is_empty() {
                        self.add(at, fragments);
                    }
                    let (_, last_seq) = self.add(at, vec![(Some(message), What::Finish(FinishReason::Stop))]);
                    prop_assert_eq!(result.unwrap().last_seq, last_seq);
                }
            }
            Some(End::Drop) => {
                drop(self.writers.remove(writer));
                self.store().sync().unwrap();
                if !closed {
                    // What was collected and the interruption are one record.
                    let end = (Some(message), What::Interrupt(Interruption::Dropped));
                    self.add(at, fragments.into_iter().chain([end]).collect());
                }
            }
        }
        self.check(at)
    }

    /// A delta that does not fit its chunk.
    pub(super) fn push_other(&mut self, writer: usize, chunk: u32) -> Result<(), TestCaseError> {
        let Some(writer) = self.writer(writer) else { return Ok(()) };
        let (handle, known) = &mut self.writers[writer];
        if known.begun.contains(&chunk) && !known.closed {
            let result = handle.push(chunk, Chunk::image("https://example.org/a.png"));
            prop_assert!(matches!(result, Err(Error::InvalidInput(_))), "{result:?}");
        }
        Ok(())
    }
}
