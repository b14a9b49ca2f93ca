//! What a write changes in the indexes: of conversations, and of item ids.

use crate::embedded::engine::Batch;
use crate::model::ConversationId;
use crate::record::{self, Body, Head, Lag, Replacement, index_keys, is_unfinished, key, listed_micros};

/// What a record of these entries adds to the index of item ids.
pub(crate) fn item_ops(id: ConversationId, first_seq: u64, body: &Body) -> Replacement {
    let items = body.items().iter();
    items
        .map(|(at, item)| (key::item(id, &record::digest(item.as_bytes()), first_seq + at), Some(Vec::new())))
        .collect()
}

/// Moves a conversation in the indexes of conversations.
pub(crate) fn move_in_indexes(id: ConversationId, before: Option<&Head>, after: Option<&Head>, batch: &mut Batch) {
    if let (Some(before), Some(after)) = (before, after)
        && (&before.owner, &before.tags, is_unfinished(before), before.lag == Lag::default())
            == (&after.owner, &after.tags, is_unfinished(after), after.lag == Lag::default())
    {
        // Most writes only make it the newest, or not even that.
        if listed_micros(before.listed()) != listed_micros(after.listed()) {
            let owner = after.owner_digest();
            batch.remove(key::index(&owner, listed_micros(before.listed()), id));
            batch.put(key::index(&owner, listed_micros(after.listed()), id), Vec::new());
        }
        return;
    }
    let keys = |head: Option<&Head>| head.map(|head| index_keys(id, head)).unwrap_or_default();
    let (old, new) = (keys(before), keys(after));
    old.iter().filter(|key| !new.contains(key)).for_each(|key| batch.remove(key.clone()));
    new.into_iter().filter(|key| !old.contains(key)).for_each(|key| batch.put(key, Vec::new()));
}
