//! The place of a write: its seqs, its message indexes, and the head after it.

use std::fmt;
use std::sync::Arc;

use crate::embedded::commit::Committer;
use crate::embedded::state::{Pending, State, Unsealed};
use crate::embedded::stored;
use crate::embedded::sync::MutexGuard;
use crate::error::Result;
use crate::log::options::not_later;
use crate::log::replay::title;
use crate::log::{Clock, Durability, Receipt};
use crate::model::{ConversationId, Message, Name, Timestamp};
use crate::record::{self, Body, Head, Header, Lag, Origin, Replacement, TitleSource, key};

/// Gives writes their places.
#[derive(Clone)]
pub(crate) struct Numbering {
    clock: Clock,
    /// Which opening of the store this is.
    epoch: u64,
}

impl fmt::Debug for Numbering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Numbering").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// A write of one record, before it has a place.
pub(crate) struct Draft<'a> {
    /// The caller's name for the conversation.
    pub(crate) name: &'a Name,
    pub(crate) body: Body,
    /// How many messages begin in it.
    pub(crate) messages: u64,
    /// The message index to which the body's indexes are relative, if it is not the next one.
    pub(crate) base: Option<u64>,
    /// The messages that may give the conversation its title.
    pub(crate) said: &'a [Message],
    /// When it happened, if that was before now.
    pub(crate) time: Option<Timestamp>,
}

/// A write of one record in its place.
pub(crate) struct Placed {
    pub(crate) pending: Pending,
    /// The message index to which the record's indexes are relative.
    pub(crate) base: u64,
    /// The caller's receipt: it states that the write is durable only once it is.
    pub(crate) receipt: Receipt,
}

impl Placed {
    /// Queues the write. Returns at once, or when it is durable.
    pub(crate) fn queue(
        self,
        commit: &Committer,
        state: MutexGuard<'_, State>,
        durability: Durability,
    ) -> Result<Receipt> {
        commit.queue(state, self.pending, durability)?;
        Ok(Receipt { durable: durability == Durability::Durable, ..self.receipt })
    }
}

impl Numbering {
    pub(crate) fn new(clock: Clock, epoch: u64) -> Self {
        Self { clock, epoch }
    }

    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn now(&self) -> i64 {
        (self.clock)().as_micros()
    }

    /// The incarnation of a conversation that is created now.
    pub(crate) fn incarnation(&self, state: &mut State, id: ConversationId, now: i64) -> u64 {
        let created = state.count_created();
        let made = [self.epoch.to_be_bytes(), created.to_be_bytes(), now.to_be_bytes()].concat();
        stored::incarnation(state.last_commit().number, &[&made, id.as_bytes().as_slice()].concat())
    }

    /// Gives a draft its seqs and message indexes after the queued head. `change`: what it does to the head beside
    /// moving it.
    pub(crate) fn place(
        &self,
        state: &mut State,
        id: ConversationId,
        draft: Draft<'_>,
        change: impl FnOnce(&mut Head),
    ) -> Placed {
        let now = not_later(draft.time, self.now());
        let current = state.slots.slot(id).queued().cloned();
        let made = if current.is_none() { self.incarnation(state, id, now) } else { 0 };
        let (owner, key) = (draft.name.owner().unwrap_or_default(), draft.name.key());
        let mut head = current.as_deref().cloned().unwrap_or_else(|| Head::new(owner, key, now, made));
        let first_seq = head.next_seq;
        let base = draft.base.unwrap_or(head.next_message_index);
        head.next_seq += draft.body.entries();
        head.next_message_index += draft.messages;
        if draft.messages > 0 {
            // A later message follows them now.
            head.interrupted.clear();
        }
        head.last_activity = head.last_activity.max(now);
        head.lag = current.as_deref().map_or_else(Lag::default, |before| state.lag(id, before, head.last_activity));
        if head.title_source == TitleSource::Pending
            && let Some((relative, title)) = title(draft.said)
        {
            head.title = Some(title);
            head.title_source = TitleSource::Message(base + relative);
        }
        let bytes = draft.body.len();
        let items = item_ops(id, first_seq, &draft.body);
        let header = header(&head, now, first_seq, base, draft.messages);
        let record = Unsealed { conversation: id, first_seq, header, body: draft.body };
        let mut pending = Pending { record: Some(record), ops: items, bytes, ..Pending::default() };
        let receipt = Receipt {
            conversation: id,
            first_seq,
            last_seq: head.next_seq - 1,
            message_indexes: (base..base + draft.messages).collect(),
            durable: false,
            duplicate: false,
        };
        change(&mut head);
        pending.head = Some((id, Some(Arc::new(head))));
        Placed { pending, base, receipt }
    }
}

/// The header of a record with so many new messages. `head`: as it is after them.
pub(crate) fn header(head: &Head, time: i64, first_seq: u64, base: u64, messages: u64) -> Header {
    let is_first = first_seq == head.first_seq();
    let origin = is_first.then(|| Origin {
        owner: head.owner.clone(),
        key: head.key.clone(),
        incarnation: head.incarnation,
        created: head.created,
        parent: head.parent,
        last_hide: if head.parent.is_some() { head.last_hide } else { 0 },
        last_meta: if head.parent.is_some() { head.last_meta } else { 0 },
        first_message_index: head.next_message_index - messages,
    });
    let next_message_index = head.next_message_index;
    Header { time, base, next_message_index, commit: 0, cut: false, deleted: false, origin }
}

/// What a record of these entries adds to the index of item ids.
fn item_ops(id: ConversationId, first_seq: u64, body: &Body) -> Replacement {
    let items = body.items().iter();
    items
        .map(|(at, item)| (key::item(id, &record::digest(item.as_bytes()), first_seq + at), Some(Vec::new())))
        .collect()
}
