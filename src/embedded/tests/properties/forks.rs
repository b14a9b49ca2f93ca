//! Forks read what they share, also when it was deleted; a name is free when nothing reads its entries.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::super::model::{Conversation, What};
use super::{World, name};
use crate::error::Error;

impl World {
    pub(super) fn fork(&mut self, at: usize, seq: Option<usize>, child: usize) -> Result<(), TestCaseError> {
        let end = self.conversations[at].as_ref().map_or(0, |conversation| conversation.lines.len() + 1);
        let seq = seq.map(|seq| end.saturating_sub(seq));
        let at_seq = seq.map(|seq| seq as u64);
        let result = self.log().core().families.fork(&name(at), at_seq, &name(child));
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
