//! Conversations that are created without messages.

use crate::embedded::appending::numbering::Draft;
use crate::embedded::core::Core;
use crate::error::{Error, Result};
use crate::log::decision::{self, Decision};
use crate::log::{Durability, NewConversation, Receipt};
use crate::model::Name;

impl Core {
    /// Creates a conversation without messages.
    pub(crate) fn create(&self, name: &Name, new: &NewConversation) -> Result<Receipt> {
        let Decision { body, change, .. } = decision::create(name, new)?;
        let id = name.id();
        let _pin = self.pin(id)?;
        let mut state = self.writable(id, Durability::Durable)?;
        let slot = state.slot(id);
        if let Some(head) = &slot.queued {
            return Err(Error::NameTaken { conversation: name.clone(), actual: head.next_seq - 1 });
        }
        slot.check_free(name)?;
        let draft = Draft { name, body, messages: 0, base: None, said: &[] };
        let placed = self.place(&mut state, id, draft, |head| change.apply(head));
        self.queue(state, placed, Durability::Durable)
    }
}
