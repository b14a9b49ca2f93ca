//! What a write changes in the indexes: of conversations, and of item ids.

use crate::embedded::engine::Batch;
use crate::model::ConversationId;
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
    let mut keys = vec![key::index(&owner, listed_micros(head.last_activity), id)];
    keys.extend(head.tags.iter().map(|tag| key::tag(&owner, &record::digest(tag.as_bytes()), id)));
    if is_unfinished(head) {
        keys.push(key::unfinished(id));
    }
    keys
}

/// A time in the list: 0 for those before 1970.
pub(super) fn listed_micros(micros: i64) -> u64 {
    u64::try_from(micros).unwrap_or(0)
}

fn is_unfinished(head: &Head) -> bool {
    !head.open.is_empty() || !head.interrupted.is_empty()
}

/// Moves a conversation in the indexes of conversations.
pub(super) fn move_in_indexes(id: ConversationId, before: Option<&Head>, after: Option<&Head>, batch: &mut Batch) {
    if let (Some(before), Some(after)) = (before, after)
        && (&before.owner, &before.tags, is_unfinished(before)) == (&after.owner, &after.tags, is_unfinished(after))
    {
        // Most writes only make it the newest.
        if listed_micros(before.last_activity) != listed_micros(after.last_activity) {
            let owner = after.owner_digest();
            batch.remove(key::index(&owner, listed_micros(before.last_activity), id));
            batch.put(key::index(&owner, listed_micros(after.last_activity), id), Vec::new());
        }
        return;
    }
    let keys = |head: Option<&Head>| head.map(|head| index_keys(id, head)).unwrap_or_default();
    let (old, new) = (keys(before), keys(after));
    old.iter().filter(|key| !new.contains(key)).for_each(|key| batch.remove(key.clone()));
    new.into_iter().filter(|key| !old.contains(key)).for_each(|key| batch.put(key, Vec::new()));
}
