//! The place of a write: its seqs, its message indexes, and the head after it.

use std::sync::Arc;

use super::core::Core;
use super::items;
use super::state::{Pending, State, Unsealed};
use crate::log::Receipt;
use crate::log::title::title;
use crate::model::{ConversationId, Message, Name, Timestamp};
use crate::record::{self, Body, Head, Header, Origin, Replacement, TitleSource, key};

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
    /// A number that distinguishes a conversation that is created now from others of its id, and from records that are
    /// older than it: the number of the last commit, then bits of something that no two conversations of a store share.
    pub(super) fn incarnation(&self, state: &mut State, id: ConversationId, now: i64) -> u64 {
        state.made += 1;
        let made = [self.epoch.to_be_bytes(), state.made.to_be_bytes(), now.to_be_bytes()].concat();
        let [.., a, b, c] = record::digest(&[&made, id.as_bytes().as_slice()].concat());
        let any = u64::from(u32::from_be_bytes([0, a, b, c])) & ((1 << ANY_BITS) - 1);
        (state.commit.number.min(u64::MAX >> ANY_BITS) << ANY_BITS) | any
    }

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
        let mut head = current.as_deref().cloned().unwrap_or_else(|| Head {
            next_seq: 1,
            next_message_index: 0,
            last_hide: 0,
            last_meta: 0,
            incarnation: made,
            owner: draft.name.owner().unwrap_or_default().to_owned(),
            created: now,
            last_activity: now,
            key: draft.name.key().map(str::to_owned),
            parent: None,
            title: None,
            title_source: TitleSource::Pending,
            tags: Vec::new(),
            open: Vec::new(),
            interrupted: Vec::new(),
        });
        let first_seq = head.next_seq;
        let base = draft.base.unwrap_or(head.next_message_index);
        head.next_seq += draft.body.entries();
        head.next_message_index += draft.messages;
        if draft.messages > 0 {
            // A later message follows them now.
            head.interrupted.clear();
        }
        head.last_activity = head.last_activity.max(now);
        if head.title_source == TitleSource::Pending
            && let Some((relative, title)) = title(draft.said)
        {
            head.title = Some(title);
            head.title_source = TitleSource::Message(base + relative);
        }
        let is_first = first_seq == head.first_seq();
        let origin = is_first.then(|| Origin {
            owner: head.owner.clone(),
            key: head.key.clone(),
            incarnation: head.incarnation,
            created: head.created,
            parent: head.parent,
            last_hide: if head.parent.is_some() { head.last_hide } else { 0 },
            last_meta: if head.parent.is_some() { head.last_meta } else { 0 },
            first_message_index: head.next_message_index - draft.messages,
        });
        let next_message_index = head.next_message_index;
        let header = Header { time: now, base, next_message_index, commit: 0, cut: false, deleted: false, origin };
        let bytes = draft.body.len();
        let items = items::ops(id, first_seq, &draft.body);
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
        index_ops(id, current.as_deref(), Some(&head), &mut pending.ops);
        pending.head = Some((id, Some(Arc::new(head))));
        Placed { pending, base, receipt }
    }
}

/// Where the indexes of conversations list one: in the list of its owner, under its tags, among those with unfinished
/// messages.
pub(super) fn index_keys(id: ConversationId, head: &Head) -> Vec<Vec<u8>> {
    let owner = head.owner_digest();
    let mut keys = vec![key::index(&owner, Timestamp::from_micros(head.last_activity).second(), id)];
    keys.extend(head.tags.iter().map(|tag| key::tag(&owner, &record::digest(tag.as_bytes()), id)));
    if !head.open.is_empty() || !head.interrupted.is_empty() {
        keys.push(key::unfinished(id));
    }
    keys
}

/// Whether two heads of one conversation have the same keys in the indexes. Most appends change none within one second.
fn is_indexed_alike(before: &Head, after: &Head) -> bool {
    let second = |head: &Head| Timestamp::from_micros(head.last_activity).second();
    let is_unfinished = |head: &Head| !head.open.is_empty() || !head.interrupted.is_empty();
    (second(before), is_unfinished(before)) == (second(after), is_unfinished(after))
        && (&before.owner, &before.tags) == (&after.owner, &after.tags)
}

/// Moves a conversation in the indexes of conversations.
pub(super) fn index_ops(id: ConversationId, before: Option<&Head>, after: Option<&Head>, ops: &mut Replacement) {
    if let (Some(before), Some(after)) = (before, after)
        && is_indexed_alike(before, after)
    {
        return;
    }
    let keys = |head: Option<&Head>| head.map(|head| index_keys(id, head)).unwrap_or_default();
    let (old, new) = (keys(before), keys(after));
    ops.extend(old.iter().filter(|key| !new.contains(key)).map(|key| (key.clone(), None)));
    ops.extend(new.iter().filter(|key| !old.contains(key)).map(|key| (key.clone(), Some(Vec::new()))));
}

/// The last bits of an incarnation, after the number of a commit.
const ANY_BITS: u32 = 20;

/// The last commit before an incarnation was created: its records are of later ones.
pub(super) const fn born(incarnation: u64) -> u64 {
    incarnation >> ANY_BITS
}
