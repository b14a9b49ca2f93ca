//! What damage is, and what it leaves.

use crate::error::{Error, Result};
use crate::model::ConversationId;

/// Whether an error comes from damage to a value. An engine that cannot read at all is another matter.
fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::UnsupportedVersion { .. })
}

/// What was read, or the damage that prevented it; an error of the engine stays an error.
pub(crate) fn damage_of<T>(read: Result<T>) -> Result<std::result::Result<T, Error>> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(error) if is_damage(&error) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

/// What damage left of a conversation does not identify it.
pub(crate) fn set_aside(id: ConversationId, seq: Option<u64>, why: &str) -> Error {
    let detail = format!("{why}: it is left as it is; `delete` removes it");
    Error::Corrupt { conversation: Some(id.into()), seq, detail }
}
