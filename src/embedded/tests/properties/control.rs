//! Rewinds, titles, tags, redactions; forks and deletions.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::super::model::{Conversation, Kept, What, hidden};
use super::super::{change_tags, load, rewind, set_title, summarize};
use super::{World, name};
use crate::error::Error;
use crate::log::ForkAt;

impl World {
    /// The index of a message that is counted from the end.
    fn counted_back(&self, at: usize, message: u64) -> u64 {
        self.conversations[at].as_ref().map_or(0, Conversation::next_message).wrapping_sub(message)
    }

    pub(super) fn rewind(&mut self, at: usize, to: u64) -> Result<(), TestCaseError> {
        let to = self.counted_back(at, to);
        let result = rewind(self.log(), name(at), to);
        self.settle(at);
        let visible = |conversation: &Conversation| {
            to < conversation.next_message() && !hidden(&conversation.lines).contains(&to)
        };
        if !self.conversations[at].as_ref().is_some_and(visible) {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return self.check(at);
        }
        let end = self.conversations[at].as_ref().map_or(0, Conversation::next_message);
        let (first_seq, last_seq) = self.add(at, vec![(None, What::Rewind { to, end })]);
        self.publish();
        let receipt = result.unwrap();
        prop_assert_eq!((receipt.first_seq, receipt.last_seq), (first_seq, last_seq));
        for (_, writer) in &mut self.writers {
            writer.closed |= writer.conversation == at && writer.message >= to;
        }
        self.check(at)
    }

    pub(super) fn summarize(&mut self, at: usize, through: u64) -> Result<(), TestCaseError> {
        let through = self.counted_back(at, through);
        let summary = format!("summary {}", self.records);
        let result = summarize(self.log(), name(at), through, &summary);
        self.settle(at);
        let visible = |conversation: &Conversation| {
            through < conversation.next_message() && !hidden(&conversation.lines).contains(&through)
        };
        if !self.conversations[at].as_ref().is_some_and(visible) {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return self.check(at);
        }
        let mut live = self.writers.iter().map(|(_, writer)| writer);
        if live.any(|writer| writer.conversation == at && writer.message <= through && !writer.closed) {
            prop_assert!(matches!(result, Err(Error::BeingWritten { .. })), "{result:?}");
            return self.check(at);
        }
        // Whether it separates a call from its result is the history's concern. That the log asks, and then writes
        // nothing, is its own.
        let loaded = load(self.log(), name(at)).unwrap();
        if crate::history::Conversation::from_grouped(loaded).parted_call(through).is_some() {
            prop_assert!(matches!(result, Err(Error::InvalidInput(_))), "{result:?}");
            return self.check(at);
        }
        let (first_seq, last_seq) = self.add(at, vec![(None, What::Summary { through, summary })]);
        self.publish();
        let receipt = result.unwrap();
        prop_assert_eq!((receipt.first_seq, receipt.last_seq), (first_seq, last_seq));
        self.check(at)
    }

    pub(super) fn title(&mut self, at: usize) -> Result<(), TestCaseError> {
        let result = set_title(self.log(), name(at), "a title");
        self.settle(at);
        if self.conversations[at].is_none() {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return Ok(());
        }
        let (_, last_seq) = self.add(at, vec![(None, What::Title)]);
        self.publish();
        prop_assert_eq!(result.unwrap().last_seq, last_seq);
        prop_assert_eq!(super::super::describe(self.log(), name(at)).title.unwrap(), "a title");
        self.check(at)
    }

    pub(super) fn tag(&mut self, at: usize, tag: u8, remove: bool) -> Result<(), TestCaseError> {
        let tag = format!("tag {tag}");
        let (gone, new) = if remove { (vec![tag.as_str()], vec![]) } else { (vec![], vec![tag.as_str()]) };
        let result = change_tags(self.log(), name(at), &gone, &new);
        self.settle(at);
        let Some(known) = &mut self.conversations[at] else {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return Ok(());
        };
        let had = known.tags.contains(&tag);
        known.tags.retain(|known| !remove || *known != tag);
        if !remove && !had {
            known.tags.push(tag);
        }
        prop_assert_eq!(result.unwrap(), known.tags.clone());
        if had == remove {
            let tags = known.tags.clone();
            self.add(at, vec![(None, What::Tags(tags))]);
            self.publish();
        }
        self.check(at)
    }

    pub(super) fn redact(&mut self, at: usize, message: u64, chunk: Option<u32>) -> Result<(), TestCaseError> {
        let message = self.counted_back(at, message);
        let result = self.log().core().families.redact(&name(at), message, chunk);
        self.settle(at);
        let lines = self.conversations[at].as_ref().map_or(&[][..], |conversation| &conversation.lines);
        let shared =
            (0..lines.len()).filter(|line| lines[*line].is_of(message, chunk)).map(|line| self.owner(at, line + 1));
        let sharing: BTreeSet<usize> = shared.chain([at]).collect();
        let live = self.writers.iter().map(|(_, writer)| writer);
        let live = live.filter(|writer| writer.message == message && !writer.closed);
        let writing: Vec<usize> =
            live.map(|writer| writer.conversation).filter(|other| sharing.contains(other)).collect();
        if !writing.is_empty() {
            prop_assert!(matches!(result, Err(Error::BeingWritten { .. })), "{result:?}");
            if !writing.contains(&at) {
                // The conversation in which it is written had to be still for that to be seen.
                writing.into_iter().for_each(|other| self.settle(other));
            }
            return self.check(at);
        }
        let lines = self.conversations[at].as_ref().map_or(&[][..], |conversation| &conversation.lines);
        let mut found: BTreeSet<usize> =
            lines.iter().filter(|line| line.is_of(message, chunk)).map(|line| line.record).collect();
        let Some(last) = lines.iter().rposition(|line| found.contains(&line.record)) else {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return self.check(at);
        };
        // The appends are known by their keys alone now, to the conversation that received them.
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
        self.publish();
        let redaction = result.unwrap();
        prop_assert_eq!((redaction.seq, redaction.summaries), (last_seq, quoting));
        self.check(at)
    }
}

impl World {
    pub(super) fn fork(&mut self, at: usize, seq: Option<usize>, child: usize) -> Result<(), TestCaseError> {
        let end = self.conversations[at].as_ref().map_or(0, |conversation| conversation.lines.len() + 1);
        let seq = seq.map(|seq| end.saturating_sub(seq));
        let at_seq = seq.map(|seq| seq as u64);
        let result = self.log().core().families.fork(&name(at), ForkAt { seq: at_seq, time: None }, &name(child));
        self.settle(at);
        let Some(parent) = &self.conversations[at] else {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return Ok(());
        };
        let last = seq.unwrap_or(parent.lines.len());
        if last > parent.lines.len() {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return Ok(());
        }
        if let Some(existing) = &self.conversations[child] {
            let Err(Error::NameTaken { actual, .. }) = result else { panic!("a conflict is expected: {result:?}") };
            prop_assert_eq!(actual, existing.lines.len() as u64);
            return Ok(());
        }
        if self.reserved.contains_key(&child) {
            prop_assert!(matches!(result, Err(Error::SharedByForks { .. })), "{result:?}");
            return Ok(());
        }
        prop_assert!(result.is_ok(), "{result:?}");
        let lines = parent.lines[..last].to_vec();
        // Its title is the parent's title at the fork point.
        let tags = lines.iter().rev().find_map(|line| match &line.what {
            What::Tags(tags) => Some(tags.clone()),
            _ => None,
        });
        let mut fork = Conversation { lines, tags: tags.unwrap_or_default(), ..Conversation::new(self.now()) };
        fork.parent = Some((if last > 0 { self.owner(at, last) } else { at }, last));
        self.conversations[child] = Some(fork);
        self.publish();
        self.check(at)?;
        self.check(child)
    }

    /// The conversation whose own lines end this conversation's lines up to here.
    pub(super) fn owner(&self, at: usize, last: usize) -> usize {
        let parent = match &self.conversations[at] {
            Some(conversation) => conversation.parent,
            None => self.reserved.get(&at).copied().flatten(),
        };
        match parent {
            Some((parent, shared)) if last <= shared => self.owner(parent, last),
            _ => at,
        }
    }

    pub(super) fn delete(&mut self, at: usize) -> Result<(), TestCaseError> {
        let result = self.log().core().families.delete(&name(at), None);
        self.settle(at);
        if self.conversations[at].is_none() {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return Ok(());
        }
        prop_assert!(result.is_ok(), "{result:?}");
        self.publish();
        let deleted = self.conversations[at].take();
        self.reserved.insert(at, deleted.and_then(|deleted| deleted.parent));
        self.free_what_no_fork_reads();
        for (_, writer) in &mut self.writers {
            writer.closed |= writer.conversation == at;
        }
        self.check(at)
    }

    /// A name is free again with the last fork that reads what it named.
    fn free_what_no_fork_reads(&mut self) {
        loop {
            let live = self.conversations.iter().flatten().filter_map(|conversation| conversation.parent);
            let read: BTreeSet<usize> = live
                .chain(self.reserved.values().copied().flatten())
                .filter(|(_, to)| *to > 0)
                .map(|(of, _)| of)
                .collect();
            let before = self.reserved.len();
            self.reserved.retain(|at, _| read.contains(at));
            if self.reserved.len() == before {
                return;
            }
        }
    }
}
