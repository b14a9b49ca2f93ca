//! Summaries: prompts use them in place of what they cover.

use super::core::Core;
use crate::error::{Error, Result};
use crate::log::Receipt;
use crate::log::limits::check_summary;
use crate::model::Name;
use crate::record::{Body, Replacement, Summary};

impl Core {
    /// Lets a summary stand for all messages up to `through`.
    pub(crate) fn summarize(&self, name: &Name, through: u64, text: &str) -> Result<Receipt> {
        check_summary(text)?;
        let id = name.id();
        let frozen = self.freeze(id)?;
        let head = frozen.head(name)?;
        if !self.is_visible(id, &head, through)? {
            return Err(Error::NotFound { what: format!("a visible message {through} in conversation {name}") });
        }
        frozen.check_written(name, 0..=through)?;
        let body = Body::summary(&Summary { through, text, tokens: None })?;
        self.write_control(&frozen, name, body, Replacement::new(), |_| ())
    }
}
