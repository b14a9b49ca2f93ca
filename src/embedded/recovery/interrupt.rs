//! Messages whose program ended before it finished them: the next opening records that in the log.

use crate::embedded::appending::numbering::Draft;
use crate::embedded::core::Core;
use crate::embedded::stored::damage::damage_of;
use crate::error::Result;
use crate::log::Durability;
use crate::model::ConversationId;
use crate::record::{Body, InterruptCause, key};

impl Core {
    /// Interrupts the messages that earlier openings of the store left open. For opening only: nobody else writes.
    pub(crate) fn interrupt_left_open(&self) -> Result<()> {
        for id in self.ids(key::UNFINISHED)? {
            // Nobody knows whether what would replace a damaged head is complete.
            let Ok(Some(_)) = damage_of(self.stored_head(id))? else { continue };
            let Ok(head) = damage_of(self.published_head(id))? else { continue };
            let open = head.map(|head| head.open.clone()).unwrap_or_default();
            for message in open {
                self.interrupt(id, message, InterruptCause::Reopened, Durability::Buffered)?;
            }
        }
        self.sync()
    }

    /// Writes that a message takes no more content.
    pub(crate) fn interrupt(
        &self,
        id: ConversationId,
        message: u64,
        cause: InterruptCause,
        durability: Durability,
    ) -> Result<()> {
        let mut body = Body::new();
        body.interrupt(cause)?;
        let _pin = self.pin(id)?;
        let mut state = self.writable(id, durability)?;
        if !state.slot(id).queued.as_ref().is_some_and(|head| head.open.contains(&message)) {
            return Ok(());
        }
        let draft = Draft { name: &id.into(), body, messages: 0, base: Some(message), said: &[] };
        let placed = self.place(&mut state, id, draft, |head| head.interrupt(message));
        self.queue(state, placed, durability).map(|_| ())
    }
}
