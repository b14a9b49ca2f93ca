//! Which of the conversations that had a name one is.

use crate::embedded::commit::state::State;
use crate::embedded::core::Core;
use crate::model::ConversationId;
use crate::record;

impl Core {
    /// A number that distinguishes a conversation that is created now from others of its id, and from records that are
    /// older than it: the number of the last commit, then bits of something that no two conversations of a store share.
    pub(crate) fn incarnation(&self, state: &mut State, id: ConversationId, now: i64) -> u64 {
        state.made += 1;
        let made = [self.epoch.to_be_bytes(), state.made.to_be_bytes(), now.to_be_bytes()].concat();
        let [.., a, b, c] = record::digest(&[&made, id.as_bytes().as_slice()].concat());
        let any = u64::from(u32::from_be_bytes([0, a, b, c])) & ((1 << ANY_BITS) - 1);
        (state.commit.number.min(u64::MAX >> ANY_BITS) << ANY_BITS) | any
    }
}

/// The last bits of an incarnation, after the number of a commit.
const ANY_BITS: u32 = 20;

/// The last commit before an incarnation was created: its records are of later ones.
pub(crate) const fn born(incarnation: u64) -> u64 {
    incarnation >> ANY_BITS
}
