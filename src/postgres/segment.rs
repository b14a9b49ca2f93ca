//! In whose logs a conversation's entries are.

use crate::model::ConversationId;

/// The entries that a conversation reads from one log: its own, or an ancestor's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) conversation: ConversationId,
    pub(super) first: u64,
    pub(super) last: u64,
    /// The incarnation whose records these are.
    pub(super) incarnation: u64,
}
