//! The place of a write: its seqs, its message indexes, and the head after it.

use std::sync::Arc;

use super::core::Core;
use super::indexes::item_ops;
use super::state::{Pending, State, Unsealed};
use crate::log::Receipt;
use crate::log::replay::title;
use crate::model::{ConversationId, Message, Name};
use crate::record::{Body, Head, Header, Lag, Origin, TitleSource};

/// A write of one record, before it has a place.
pub(super) struct Draft<'a> {
    /// The caller's name for the conversation.
    pub(super) name: &'a Name,
    pub(super) body: Body,
    /// How many messages begin in it.
    pub(super) messages: u64,
    /// The message index to which the body's indexes are relative, if it is not the next one.
    pub(super) base: Option<u64>,
    /// The messages that may give the conversation its title.
    pub(super) said: &'a [Message],
}

/// A write of one record in its place.
pub(super) struct Placed {
    pub(super) pending: Pending,
    /// The message index to which the record's indexes are relative.
    pub(super) base: u64,
    /// The caller's receipt: it states that the write is durable only once it is.
    pub(super) receipt: Receipt,
}

impl Core {
    /// Gives a draft its seqs and message indexes after the queued head. `change`: what it does to the head beside
    /// moving it.
    pub(super) fn place(
        &self,
        state: &mut State,
        id: ConversationId,
        draft: Draft<'_>,
        change: impl FnOnce(&mut Head),
    ) -> Placed {
        let now = self.now();
        let current = state.slot(id).queued.clone();
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
pub(super) fn header(head: &Head, time: i64, first_seq: u64, base: u64, messages: u64) -> Header {
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
