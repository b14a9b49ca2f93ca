//! Where the indexes of conversations list one.

use super::digest::digest;
use super::head::{Head, Lag};
use super::key;
use crate::model::ConversationId;

/// Where the indexes of conversations list one: in the list of its owner, under its tags, among those with unfinished
/// messages, among those whose place in the list is not that of their last activity.
pub(crate) fn index_keys(id: ConversationId, head: &Head) -> Vec<Vec<u8>> {
    let owner = head.owner_digest();
    let mut keys = vec![key::index(&owner, listed_micros(head.listed()), id)];
    keys.extend(head.tags.iter().map(|tag| key::tag(&owner, &digest(tag.as_bytes()), id)));
    if is_unfinished(head) {
        keys.push(key::unfinished(id));
    }
    if head.lag != Lag::default() {
        keys.push(key::lagging(id));
    }
    keys
}

/// A time in the list: 0 for those before 1970.
pub(crate) fn listed_micros(micros: i64) -> u64 {
    u64::try_from(micros).unwrap_or(0)
}

/// Whether it has messages that are not finished, as the index counts them.
pub(crate) fn is_unfinished(head: &Head) -> bool {
    !head.open.is_empty() || !head.interrupted.is_empty()
}
