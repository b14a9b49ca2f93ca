//! What is wrong with settings.

use crate::error::Error;

/// The longest time that can be set, in seconds: moments that far away can still be computed.
pub(super) const YEAR: u64 = 365 * 86_400;

pub(super) fn invalid(what: &str, problem: &str) -> Error {
    Error::InvalidInput(format!("{what}: {problem}"))
}
