//! The last step of every wire's renderer.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Error, Result};
use crate::provider::target::Target;

/// The request as it is sent.
pub(crate) fn written(request: &impl Serialize) -> Result<Box<RawValue>> {
    to_raw_value(request).map_err(|error| Error::InvalidInput(format!("the prompt cannot be written: {error}")))
}

pub(crate) fn nothing_to_send(target: Target) -> Error {
    Error::NothingToSend(format!("no message of the conversation has content that {target} takes"))
}
