//! Everything that can be derived again is derived again, and compared.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{Core, items, read::Item};
use crate::engine::Order;
use crate::error::{Error, Result};
use crate::model::{ConversationId, Timestamp};
use crate::record::{self, Head, key};

/// What a check of the whole store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Conversations that were read.
    pub conversations: u64,
    /// Entries that were read, those that forks share once.
    pub entries: u64,
    /// What is wrong. Open messages are no problem: a crash leaves them, and loading closes them.
    pub problems: Vec<Problem>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The conversation, where it can be told.
    pub conversation: Option<ConversationId>,
    /// The seq, where it can be told.
    pub seq: Option<u64>,
    /// What does not fit.
    pub detail: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.conversation, self.seq) {
            (Some(id), Some(seq)) => write!(f, "conversation {id}, seq {seq}: {}", self.detail),
            (Some(id), None) => write!(f, "conversation {id}: {}", self.detail),
            _ => write!(f, "store: {}", self.detail),
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(id) = self.conversation {
            map.serialize_entry("conversation", &id.to_string())?;
        }
        if let Some(seq) = self.seq {
            map.serialize_entry("seq", &seq)?;
        }
        map.serialize_entry("detail", &self.detail)?;
        map.end()
    }
}

impl Problem {
    fn of(id: ConversationId, detail: impl Into<String>) -> Self {
        Self { conversation: Some(id), seq: None, detail: detail.into() }
    }

    fn from_error(id: ConversationId, error: &Error) -> Self {
        match error {
            Error::Corrupt { conversation, seq, detail } => {
                Self { conversation: conversation.or(Some(id)), seq: *seq, detail: detail.clone() }
            }
            other => Self::of(id, other.to_string()),
        }
    }
}

impl Core {
    /// Checks the store as it is durable now; `progress` is called with the number of conversations done, and of all.
    pub(crate) fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
        self.sync()?;
        let mut found = Verification::default();
        if let Some((from, to)) = self.health.went_back {
            let detail = Error::WentBack { from, to }.to_string();
            found.problems.push(Problem { conversation: None, seq: None, detail });
        }
        let ids = self.ids(key::HEAD)?;
        let all = ids.len() as u64;
        for id in &ids {
            self.verify_conversation(*id, &mut found)?;
            found.conversations += 1;
            progress(found.conversations, all);
        }
        self.verify_index(&mut found)?;
        self.verify_orphans(&ids, &mut found)?;
        Ok(found)
    }

    /// The conversations that have a key of this kind.
    pub(super) fn ids(&self, kind: u8) -> Result<BTreeSet<ConversationId>> {
        let mut ids = BTreeSet::new();
        // From one conversation to the next: their other keys are skipped.
        let mut start = vec![kind];
        let end = key::after(&[kind]);
        loop {
            let mut next = None;
            self.engine.scan(&start..&end, Order::Ascending, &mut |key, _| {
                next = key::parse_id(key);
                ControlFlow::Break(())
            })?;
            let Some(id) = next else { return Ok(ids) };
            ids.insert(id);
            start = key::after(&key::prefix(kind, id));
        }
    }

    fn verify_conversation(&self, id: ConversationId, found: &mut Verification) -> Result<()> {
        let head = match self.head_for_list(id) {
            Ok(Some(head)) => head,
            Ok(None) => return Ok(()),
            Err(error @ Error::Corrupt { .. }) => {
                found.problems.push(Problem::from_error(id, &error));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let segments = match self.segments(id, &head) {
            Ok(segments) => segments,
            Err(error @ Error::Corrupt { .. }) => {
                found.problems.push(Problem::from_error(id, &error));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let first = segments.last().map_or(1, |segment| segment.first);
        let (mut next_message_index, mut items) = (None, BTreeSet::new());
        let problems = found.problems.len();
        self.read(id, &segments, first..=u64::MAX - 1, Order::Ascending, &mut |item| {
            match item {
                Item::Damaged(error) => found.problems.push(Problem::from_error(id, &error)),
                Item::Record { record, .. } => {
                    items::keys_of(id, record, head.next_seq - 1, &mut items);
                    for line in record.lines() {
                        let read = line.and_then(|(seq, line)| crate::entry::Entry::read(record, seq, &line));
                        found.entries += 1;
                        found.problems.extend(read.err().map(|error| Problem::from_error(id, &error)));
                    }
                    next_message_index = Some(record.header.next_message_index);
                    if let Some(origin) = &record.header.origin
                        && (&origin.key, origin.parent) != (&head.key, head.parent)
                    {
                        found.problems.push(Problem::of(id, "key or parent differ between head and first record"));
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        if next_message_index.is_some_and(|next| next != head.next_message_index) {
            found.problems.push(Problem::of(id, "the head's message index is not that of the last record"));
        }
        // Item ids in a record that cannot be read are not known.
        if found.problems.len() == problems && self.item_keys(id, head.next_seq - 1)? != items {
            found.problems.push(Problem::of(id, "the index of its item ids is not what its entries give"));
        }
        let minute = Timestamp::from_micros(head.last_activity).minute();
        if self.engine.get(&key::index(minute, id))?.is_none() {
            found.problems.push(Problem::of(id, "it is missing in the listing index"));
        }
        self.verify_receipts(id, &head, found)
    }

    fn verify_receipts(&self, id: ConversationId, head: &Head, found: &mut Verification) -> Result<()> {
        let prefix = key::prefix(key::RECEIPT, id);
        self.engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
            match record::open::<record::Receipt>("an idempotency record", key, value) {
                Ok(receipt) if receipt.last_seq < head.next_seq => {}
                Ok(_) => found.problems.push(Problem::of(id, "an idempotency record points behind the last entry")),
                Err(error) => found.problems.push(Problem::from_error(id, &error)),
            }
            ControlFlow::Continue(())
        })
    }

    fn verify_index(&self, found: &mut Verification) -> Result<()> {
        let mut result = Ok(());
        let prefix = [key::INDEX];
        self.engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, _| {
            let Some((minute, id)) = key::parse_index(key) else {
                found.problems.push(Problem {
                    conversation: None,
                    seq: None,
                    detail: "a key of the listing index cannot be read".to_owned(),
                });
                return ControlFlow::Continue(());
            };
            match self.head_for_list(id) {
                Ok(Some(head)) if Timestamp::from_micros(head.last_activity).minute() == minute => {}
                Ok(Some(_)) => {
                    found.problems.push(Problem::of(id, "it stands in the listing index under a wrong minute"))
                }
                Ok(None) => found.problems.push(Problem::of(id, "it stands in the listing index, but has no head")),
                Err(Error::Corrupt { .. }) => {}
                Err(error) => {
                    result = Err(error);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })?;
        result
    }

    fn verify_orphans(&self, heads: &BTreeSet<ConversationId>, found: &mut Verification) -> Result<()> {
        let deleted = self.ids(key::TOMBSTONE)?;
        for id in self.ids(key::ITEM)?.difference(heads).filter(|id| !deleted.contains(id)) {
            if self.head_for_list(*id)?.is_none() {
                found.problems.push(Problem::of(*id, "it stands in the index of item ids, but has no head"));
            }
        }
        for id in self.ids(key::RECORD)?.difference(heads).filter(|id| !deleted.contains(id)) {
            if self.head_for_list(*id)?.is_none() {
                found.problems.push(Problem::of(*id, "it has records, but no head"));
            }
        }
        Ok(())
    }
}
