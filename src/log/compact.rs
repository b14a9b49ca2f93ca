//! Summaries: prompts use them in place of what they cover.

use super::Core;
use super::append::{Draft, Placed, Receipt};
use super::lifecycle::receipt;
use super::limits::check_summary;
use crate::error::{Error, Result};
use crate::model::Name;
use crate::record::{Body, Compaction};

impl Core {
    /// Lets a summary stand for all messages up to `through`.
    pub(crate) fn compact(&self, name: &Name, through: u64, summary: &str) -> Result<Receipt> {
        check_summary(summary)?;
        let id = name.id();
        let _frozen = self.freeze(id)?;
        let head = self.published_head(id)?.ok_or_else(|| Error::no_conversation(name))?;
        if !self.is_visible(id, &head, through)? {
            return Err(Error::NotFound { what: format!("a visible message {through} in conversation {name}") });
        }
        let body = Body::compaction(&Compaction { through, summary, tokens: None })?;
        let draft = Draft { name, body, messages: 0, base: None, said: &[] };
        let mut state = self.lock();
        state.check_writable()?;
        if let Some(index) = state.slot(id).writers.keys().filter(|index| **index <= through).min() {
            return Err(Error::InvalidInput(format!("message {index} is still being written: finish it first")));
        }
        let Placed { pending, first_seq, last_seq, .. } = self.place(&mut state, draft);
        self.queue_durable(state, pending)?;
        Ok(receipt(id, first_seq, last_seq))
    }
}
