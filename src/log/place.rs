//! Where a write comes to stand: its seqs, its message indexes, and the head behind it.

use std::sync::Arc;

use super::core::Core;
use super::items;
use super::options::Receipt;
use super::state::{Pending, State, Unsealed};
use super::title::title;
use crate::model::{ConversationId, Message, Timestamp};
use crate::record::{Body, Head, Header, Origin, TitleSource, key};

/// A write of one record, before it has a place.
pub(super) struct Draft<'a> {
    /// The caller's name for the conversation, if this may be its first record.
    pub(super) key: Option<&'a str>,
    pub(super) body: Body,
    /// How many messages begin in it.
    pub(super) messages: u64,
    /// The message index to which the body's are relative, if it is not the next one.
    pub(super) base: Option<u64>,
    /// What may give the conversation its title.
    pub(super) said: &'a [Message],
}

/// A write of one record in its place.
pub(super) struct Placed {
    pub(super) pending: Pending,
    /// The message index to which the record's are relative.
    pub(super) base: u64,
    /// What the caller is told: that it is durable only once it is.
    pub(super) receipt: Receipt,
}

impl Core {
    /// Gives a draft its seqs and message indexes behind the queued head. `change`: what it does to the head beside moving
    /// it.
    pub(super) fn place(
        &self,
        state: &mut State,
        id: ConversationId,
        draft: Draft<'_>,
        change: impl FnOnce(&mut Head),
    ) -> Placed {
        let now = self.now();
        let current = state.slot(id).queued.clone();
        let mut head = current.as_deref().cloned().unwrap_or_else(|| Head {
            next_seq: 1,
            next_message_index: 0,
            last_rewind: 0,
            created: now,
            last_activity: now,
            key: draft.key.map(str::to_owned),
            parent: None,
            title: None,
            title_source: TitleSource::Pending,
            tags: Vec::new(),
        });
        let first_seq = head.next_seq;
        let base = draft.base.unwrap_or(head.next_message_index);
        head.next_seq += draft.body.entries();
        head.next_message_index += draft.messages;
        head.last_activity = head.last_activity.max(now);
        if head.title_source == TitleSource::Pending
            && let Some((relative, title)) = title(draft.said)
        {
            head.title = Some(title);
            head.title_source = TitleSource::Message(base + relative);
        }
        let is_first = first_seq == head.parent.map_or(1, |(_, at_seq)| at_seq + 1);
        let origin = is_first.then(|| Origin {
            key: head.key.clone(),
            created: head.created,
            parent: head.parent,
            last_rewind: if head.parent.is_some() { head.last_rewind } else { 0 },
            first_message_index: head.next_message_index - draft.messages,
        });
        let next_message_index = head.next_message_index;
        let header = Header { time: now, base, next_message_index, cut: false, origin };
        let bytes = draft.body.len();
        let items = items::ops(id, first_seq, &draft.body);
        let record = Unsealed { conversation: id, first_seq, header, body: draft.body };
        let mut pending = Pending { record: Some(record), ops: items, bytes, ..Pending::default() };
        index_ops(id, current.as_deref(), &head, &mut pending);
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

/// Moves a conversation in the listing index, if its minute of last activity changed.
pub(super) fn index_ops(id: ConversationId, before: Option<&Head>, after: &Head, pending: &mut Pending) {
    let minute = |head: &Head| Timestamp::from_micros(head.last_activity).minute();
    let (old, new) = (before.map(minute), minute(after));
    if old == Some(new) {
        return;
    }
    if let Some(old) = old {
        pending.ops.push((key::index(old, id), None));
    }
    pending.ops.push((key::index(new, id), Some(Vec::new())));
}
