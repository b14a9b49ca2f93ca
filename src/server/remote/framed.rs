//! Bodies: a frame in, a frame out.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::log::remote::{MEDIA_TYPE, frame};
use crate::server::app::{Outcome, reply};
use crate::server::refusal::Refusal;

/// The JSON of a body, and the bytes after it.
pub(super) fn asked<T: DeserializeOwned>(body: &[u8]) -> Result<(T, &[u8]), Refusal> {
    Ok(frame::read(body)?)
}

/// 200, with a frame.
pub(super) fn answer(head: &impl Serialize, bytes: &[u8]) -> Outcome {
    Ok(reply(200, MEDIA_TYPE, frame::write(head, bytes)?))
}
