//! What a write changes in the indexes: of conversations, and of item ids.

use crate::model::{ConversationId, Timestamp};
use crate::record::{self, Body, Head, Replacement, key};

/// What a record of these entries adds to the index of item ids.
pub(super) fn item_ops(id: ConversationId, first_seq: u64, body: &Body) -> Replacement {
    let items = body.items().iter();
    items
        .map(|(at, item)| (key::item(id, &record::digest(item.as_bytes()), first_seq + at), Some(Vec::new())))
        .collect()
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
