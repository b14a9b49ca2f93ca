//! What is said of a conversation, and what is hidden or erased in it.

use std::collections::BTreeSet;

use conversation_store::model::{Body, Chunk, Json, Role};
use conversation_store::{Error, NewConversation, Receipt};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::plain::{Conversation, Kept, What};
use super::{World, name};

fn json(number: u8) -> Json {
    Json::new(format!("{{\"project\": {number}.0}}")).unwrap()
}

impl World<'_> {
    fn is_visible(&self, at: usize, message: u64) -> bool {
        self.conversations[at].as_ref().is_some_and(|known| known.is_visible(message))
    }

    /// Adds the entry that a call wrote.
    fn control(&mut self, at: usize, what: What, result: Result<Receipt, Error>) -> Result<(), TestCaseError> {
        let seqs = self.add(at, vec![(None, what)]);
        let receipt = result.unwrap();
        prop_assert_eq!((receipt.first_seq, receipt.last_seq), seqs);
        prop_assert!(receipt.durable && receipt.message_indexes.is_empty());
        self.check(at)
    }

    fn not_found(&self, at: usize, result: Result<Receipt, Error>) -> Result<(), TestCaseError> {
        prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
        self.check(at)
    }

    fn being_written(&self, at: usize, result: Result<Receipt, Error>) -> Result<(), TestCaseError> {
        prop_assert!(matches!(result, Err(Error::BeingWritten { .. })), "{result:?}");
        self.check(at)
    }

    pub(super) fn rewind(&mut self, at: usize, to: u64) -> Result<(), TestCaseError> {
        let to = self.counted_back(at, to);
        let result = self.store().rewind(name(at), to);
        if !self.is_visible(at, to) {
            return self.not_found(at, result);
        }
        for (_, writer) in &mut self.writers {
            writer.closed |= writer.conversation == at && writer.message >= to;
        }
        let end = self.conversations[at].as_ref().map_or(0, Conversation::next_message);
        self.control(at, What::Rewind { to, end }, result)
    }

    pub(super) fn remove(&mut self, at: usize, message: u64, chunk: Option<u32>) -> Result<(), TestCaseError> {
        let message = self.counted_back(at, message);
        let result = self.store().remove(name(at), message, chunk);
        let known = self.conversations[at].as_ref();
        let messages = known.map(|known| known.messages(&BTreeSet::new())).unwrap_or_default();
        let stored = messages.iter().find(|stored| stored.index == message);
        let is_there = stored.is_some_and(|stored| chunk.is_none_or(|chunk| stored.chunk_indexes.contains(&chunk)));
        if !is_there {
            return self.not_found(at, result);
        }
        if chunk.is_none() && self.is_written(at, |written| written == message) {
            return self.being_written(at, result);
        }
        self.control(at, What::Remove { message, chunk }, result)
    }

    pub(super) fn summarize(&mut self, at: usize, through: u64) -> Result<(), TestCaseError> {
        let through = self.counted_back(at, through);
        let summary = format!("summary {}", self.records);
        let result = self.store().summarize(name(at), through, &summary);
        if matches!(result, Err(Error::InvalidInput(_))) {
            // It may not part a call from its result: there is a call that it would cover.
            let known = self.conversations[at].as_ref().unwrap();
            let messages = known.messages(&BTreeSet::new());
            let covered = messages.iter().filter(|stored| stored.index <= through);
            let mut asking = covered.filter(|stored| stored.message.role == Role::Assistant);
            let calls = |chunk: &Chunk| matches!(chunk.body, Body::ToolCall { .. });
            let has_call = asking.any(|stored| stored.message.chunks.iter().any(calls));
            prop_assert!(has_call);
            return self.check(at);
        }
        if !self.is_visible(at, through) {
            return self.not_found(at, result);
        }
        if self.is_written(at, |written| written <= through) {
            return self.being_written(at, result);
        }
        self.control(at, What::Summary { through, summary }, result)
    }

    pub(super) fn create(&mut self, at: usize, tags: &[u8], metadata: Option<u8>) -> Result<(), TestCaseError> {
        let tags: Vec<String> = tags.iter().map(|tag| format!("tag {tag}")).collect();
        let mut new = tags.iter().fold(NewConversation::new(), NewConversation::with_tag);
        new.metadata = metadata.map(json);
        let result = self.store().create(name(at), &new);
        if self.conversations[at].is_some() {
            let last = self.last_seq(at);
            prop_assert!(matches!(result, Err(Error::NameTaken { actual, .. }) if actual == last), "{result:?}");
            return self.check(at);
        }
        if self.reserved.contains_key(&at) {
            prop_assert!(matches!(result, Err(Error::SharedByForks { .. })), "{result:?}");
            return self.check(at);
        }
        let mut given: Vec<String> = Vec::new();
        for tag in tags {
            if !given.contains(&tag) {
                given.push(tag);
            }
        }
        self.control(at, What::Meta { title: None, tags: Some(given), metadata: metadata.map(json) }, result)
    }

    pub(super) fn title(&mut self, at: usize, title: Option<&str>) -> Result<(), TestCaseError> {
        let result = self.store().set_title(name(at), title);
        if self.conversations[at].is_none() {
            return self.not_found(at, result);
        }
        if title.is_some() {
            let described = self.store().describe(name(at)).unwrap();
            prop_assert_eq!(described.title.as_deref(), title);
        }
        let title = Some(title.map(str::to_owned));
        self.control(at, What::Meta { title, tags: None, metadata: None }, result)
    }

    pub(super) fn set_metadata(&mut self, at: usize, metadata: u8) -> Result<(), TestCaseError> {
        let result = self.store().set_metadata(name(at), &json(metadata));
        if self.conversations[at].is_none() {
            return self.not_found(at, result);
        }
        self.control(at, What::Meta { title: None, tags: None, metadata: Some(json(metadata)) }, result)
    }

    pub(super) fn tag(&mut self, at: usize, tag: u8, remove: bool) -> Result<(), TestCaseError> {
        let tag = format!("tag {tag}");
        let result = match remove {
            true => self.store().untag(name(at), &[&tag]),
            false => self.store().tag(name(at), &[&tag]),
        };
        let Some(known) = &self.conversations[at] else {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return Ok(());
        };
        let mut tags = known.tags();
        let had = tags.contains(&tag);
        tags.retain(|known| !remove || *known != tag);
        if !remove && !had {
            tags.push(tag);
        }
        prop_assert_eq!(&result.unwrap(), &tags);
        // Nothing is written if they are the same as before.
        if had == remove {
            self.add(at, vec![(None, What::Meta { title: None, tags: Some(tags), metadata: None })]);
        }
        self.check(at)
    }

    pub(super) fn redact(&mut self, at: usize, message: u64, chunk: Option<u32>) -> Result<(), TestCaseError> {
        let message = self.counted_back(at, message);
        let result = self.store().redact(name(at), message, chunk);
        let lines = self.conversations[at].as_ref().map_or(&[][..], |conversation| &conversation.lines);
        let shared =
            (0..lines.len()).filter(|line| lines[*line].is_of(message, chunk)).map(|line| self.owner(at, line + 1));
        let sharing: BTreeSet<usize> = shared.chain([at]).collect();
        if sharing.iter().any(|at| self.is_written(*at, |written| written == message)) {
            prop_assert!(matches!(result, Err(Error::BeingWritten { .. })), "{result:?}");
            return self.check(at);
        }
        let mut found: BTreeSet<usize> =
            lines.iter().filter(|line| line.is_of(message, chunk)).map(|line| line.record).collect();
        let Some(last) = lines.iter().rposition(|line| found.contains(&line.record)) else {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return self.check(at);
        };
        // The appends are known by their keys alone now, to the conversation that they were made to.
        let owner = self.owner(at, last + 1);
        // A fork may share the beginning of the message only: the rest goes with it.
        for (other, conversation) in self.conversations.iter().enumerate() {
            let lines = conversation.iter().flat_map(|conversation| conversation.lines.iter().enumerate());
            let of_it = lines.filter(|(at, line)| line.is_of(message, chunk) && self.owner(other, at + 1) == owner);
            found.extend(of_it.map(|(_, line)| line.record));
        }
        if let Some(owner) = &mut self.conversations[owner] {
            let lines = &owner.lines;
            let seqs = |kept: &Kept| kept.first_seq as usize - 1..kept.last_seq as usize;
            for kept in owner.keys.values_mut() {
                if lines[seqs(kept)].iter().any(|line| found.contains(&line.record)) {
                    kept.content = None;
                }
            }
        }
        // All that share the records are affected.
        for conversation in self.conversations.iter_mut().flatten() {
            let mut seen = BTreeSet::new();
            for line in &mut conversation.lines {
                if found.contains(&line.record) && line.is_of(message, chunk) {
                    line.forget(&mut seen);
                }
            }
        }
        let quoting =
            self.conversations[at].as_ref().map_or_else(Vec::new, |conversation| conversation.quoting(message));
        let (_, last_seq) = self.add(at, vec![(None, What::Redact { message, chunk })]);
        let redaction = result.unwrap();
        prop_assert_eq!((redaction.seq, redaction.summaries), (last_seq, quoting));
        self.check(at)
    }
}
