//! The transcript format: one message a line, as JSON. Field by field in `docs/transcript.md`.

mod fields;
mod line;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::Message;
pub(crate) use line::was_mended;
pub use line::{Expected, Line};

impl Line {
    /// Reads one line.
    ///
    /// # Errors
    /// [`Expected`], with the column and the field.
    pub fn from_json(text: &str) -> Result<Self, Expected> {
        let whole = read::line(text);
        match crate::json::replace_lone_surrogates(text) {
            // In JSON that is kept as it is they need not be replaced.
            Cow::Owned(readable) if whole.is_err() => {
                let mut line = read::line(&readable)?;
                read::keep_lone_surrogates(text, &mut line);
                Ok(line)
            }
            _ => whole,
        }
    }
}

impl Message {
    /// Reads a message of the transcript format.
    ///
    /// ```
    /// use conversation_store::model::{Message, Role};
    ///
    /// let message = Message::from_json(r#"{"role": "user", "chunks": [{"type": "text", "text": "hello"}]}"#)?;
    /// assert_eq!(message.role, Role::User);
    /// # Ok::<(), conversation_store::model::Expected>(())
    /// ```
    ///
    /// # Errors
    /// [`Expected`], with the column and the field.
    pub fn from_json(text: &str) -> Result<Self, Expected> {
        Line::from_json(text).map(|line| line.message)
    }

    /// The message in the transcript format, on one line.
    ///
    /// # Panics
    /// Never: the format has no value that JSON cannot write.
    #[must_use]
    pub fn to_json(&self) -> String {
        write::to_text(self)
    }
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write::message(self.conversation.as_deref(), &self.message, serializer)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write::message(None, self, serializer)
    }
}
