//! Which conversations a request may read and write, and which store has them.

use crate::model::{ConversationId, Name};
use crate::server::app::Call;
use crate::store::Store;

/// Which conversations a request may read and write.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// What is stored.
    pub(super) kept: Store,
    /// What is not: in memory, under an owner that is one connection, or one request.
    pub(super) passing: Store,
    pub(super) connection: String,
}

/// A conversation, and the store that has it.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub(super) store: Store,
    pub(super) name: Name,
    pub(super) is_kept: bool,
}

impl Reach {
    pub(super) fn home(&self, call: &Call, conversation: ConversationId, is_kept: bool) -> Home {
        let (store, name) = match is_kept {
            true => (&self.kept, call.own(conversation)),
            false => (&self.passing, Name::from(conversation).with_owner(&*self.connection)),
        };
        Home { store: store.clone(), name, is_kept }
    }
}
