//! Conversations that are at old places in the list when a store is opened.

use crate::embedded::core::Core;
use crate::embedded::stored::damage::damage_of;
use crate::error::Result;
use crate::log::Durability;
use crate::record::key;

impl Core {
    /// Moves them to the places of their last activity. For opening only: nobody else writes.
    pub(crate) fn catch_up(&self) -> Result<()> {
        for id in self.ids(key::LAGGING)? {
            // What is damaged stays as it is.
            let Ok(Some(_)) = damage_of(self.stored_head(id))? else { continue };
            let Ok(Some(_)) = damage_of(self.published_head(id))? else { continue };
            let _pin = self.pin(id)?;
            let mut state = self.writable(id, Durability::Buffered)?;
            if let Some(head) = state.slot(id).queued.clone() {
                state.lagging.extend([id]);
                state.catch_up(id, &head);
            }
        }
        self.sync()
    }

    /// Finds them in a store that is only read.
    pub(crate) fn find_lagging(&self) -> Result<()> {
        let ids = self.ids(key::LAGGING)?;
        self.lock().lagging.extend(ids);
        Ok(())
    }
}
