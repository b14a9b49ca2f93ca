//! Readers see what the model has.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::super::model::{What, next_message};
use super::op::ITEMS;
use super::{World, name};
use crate::embedded::engine;
use crate::embedded::recovery;
use crate::error::Error;
use crate::log::ListQuery;
use crate::log::{items, reading};

impl World {
    /// Whether readers see what the model has.
    pub(super) fn check(&self, at: usize) -> Result<(), TestCaseError> {
        let name = name(at);
        let Some(known) = self.conversations[at].as_ref().filter(|known| known.published.is_some()) else {
            let missing = matches!(super::super::load(self.log(), &name), Err(Error::NotFound { .. }));
            prop_assert!(missing);
            return Ok(());
        };
        let live = self.writers.iter().filter(|(_, writer)| writer.conversation == at && !writer.closed);
        let live: BTreeSet<u64> = live.map(|(_, writer)| writer.message).collect();
        let grouped = super::super::load(self.log(), &name).unwrap();
        prop_assert!(grouped.damage.is_empty(), "{:?}", grouped.damage);
        prop_assert_eq!(grouped.summary, known.summary());
        prop_assert_eq!(grouped.messages, known.messages(&live));
        let item = super::super::describe(self.log(), &name);
        let lines = known.visible();
        prop_assert_eq!((item.last_seq, item.messages), (lines.len() as u64, next_message(lines)));
        prop_assert_eq!(&item.tags, &known.tags);
        for item in ITEMS {
            let view = reading::view(self.log(), &name).unwrap();
            let found = items::find(self.log(), &view, item).unwrap();
            let place = found.as_ref().map(|item| (item.seq, item.message_index, item.chunk_index));
            prop_assert_eq!(place, known.find(item));
        }
        prop_assert_eq!(item.created_at.as_micros(), known.created);
        prop_assert_eq!(item.last_activity.as_micros(), known.published_activity);
        let parent = known.parent.map(|(parent, last)| (self::name(parent).id(), last as u64));
        prop_assert_eq!(item.parent.map(|fork| (fork.conversation, fork.at_seq)), parent);
        Ok(())
    }

    pub(super) fn check_all(&self) -> Result<(), TestCaseError> {
        let mut listed = Vec::new();
        for (at, known) in self.conversations.iter().enumerate() {
            self.check(at)?;
            let Some(known) = known.as_ref().filter(|known| known.published.is_some()) else { continue };
            listed.push((known.published_activity, name(at).id()));
            let entries =
                super::super::entries(self.log(), name(at), 1..=u64::MAX - 1, engine::Order::Ascending).unwrap();
            prop_assert_eq!(entries.len(), known.visible().len());
            for ((seq, entry), line) in (1..).zip(&entries).zip(known.visible()) {
                let (kind, chunk_index) = match &line.what {
                    What::Whole { chunk, .. } => ("chunk", Some(u32::try_from(*chunk).unwrap())),
                    What::Fragment(chunk, _) => ("chunk", Some(*chunk)),
                    What::Redact { chunk, .. } => ("redact", *chunk),
                    What::Begin(_) | What::Empty(_) => ("begin", None),
                    What::Finish(_) => ("finish", None),
                    What::Interrupt => ("interrupt", None),
                    What::Rewind { .. } => ("rewind", None),
                    What::Title | What::Tags(_) => ("meta", None),
                    What::Summary { .. } => ("summary", None),
                };
                let message = match line.what {
                    What::Rewind { to, .. } => Some(to),
                    What::Redact { message, .. } => Some(message),
                    What::Summary { through, .. } => Some(through),
                    _ => line.message,
                };
                prop_assert_eq!((entry.seq, entry.kind.name(), entry.chunk_index), (seq, kind, chunk_index));
                prop_assert_eq!(entry.message_index, message);
            }
        }
        listed.sort_unstable();
        listed.reverse();
        let page = self.log().core().catalogue.list(&ListQuery::new()).unwrap();
        prop_assert_eq!(
            page.items.into_iter().map(|item| item.id).collect::<Vec<_>>(),
            listed.iter().map(|(_, id)| *id).collect::<Vec<_>>()
        );
        prop_assert!(page.next.is_none());
        Ok(())
    }

    /// Whether what can be derived equals what is stored. Makes what is queued durable.
    pub(super) fn verify(&mut self) -> Result<(), TestCaseError> {
        self.log().flush().unwrap();
        self.flush_buffers();
        self.publish();
        prop_assert_eq!(recovery::verify(self.log().core(), &mut |_, _| ()).unwrap().problems, []);
        self.check_all()
    }
}
