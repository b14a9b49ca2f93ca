//! A request that is of another wire than somebody said.

use serde_json::value::RawValue;

use super::align::Reading;
use crate::error::{Error, Result};
use crate::provider::WIRES;
use crate::provider::check::judge::check;
use crate::provider::read::fields::{Fields, array};
use crate::provider::read::parse::Readable;
use crate::provider::target::{Target, Wire};

/// Refuses a request of which most cannot be read as one of `from`, where another wire leaves at most half as many messages
/// unread. A request that `from` accepts is one of `from`, whatever it holds that the package does not know.
pub(super) fn refuse_other_wire(from: Target, text: &Readable<'_>) -> Result<()> {
    let Some((strange, all)) = strange(from, text) else { return Ok(()) };
    if strange * 2 <= all || is_accepted(from, text) {
        return Ok(());
    }
    match likely(from, text).filter(|(_, less)| *less * 2 <= strange) {
        Some((wire, _)) => Err(Error::InvalidInput(format!(
            "{strange} of {all} messages cannot be read as {from}; it looks like a request of {}: say so with --from",
            wire.name
        ))),
        None => Ok(()),
    }
}

/// Whether `from` refuses nothing of the request.
fn is_accepted(from: Target, text: &Readable<'_>) -> bool {
    check(from, text.get()).is_ok_and(|findings| !findings.iter().any(|finding| finding.level.is_refused()))
}

/// The error of a request that cannot be read, with the wire that it looks like.
pub(super) fn hinted(error: Error, from: Target, text: &Readable<'_>) -> Error {
    match (error, likely(from, text)) {
        (Error::InvalidInput(problem), Some((wire, _))) => {
            Error::InvalidInput(format!("{problem}; it looks like a request of {}: say so with --from", wire.name))
        }
        (error, _) => error,
    }
}

/// The wire, other than `from`, that reads the most of the request, and how many messages it cannot read.
fn likely(from: Target, text: &Readable<'_>) -> Option<(&'static Wire, usize)> {
    let others = WIRES.iter().copied().filter(|wire| wire.name != from.wire().name);
    let read = others.filter_map(|wire| {
        let (strange, all) = strange(Target::of(wire), text)?;
        (all > 0 && strange * 2 <= all).then_some((wire, strange))
    });
    read.min_by_key(|(_, strange)| *strange)
}

/// How many of its messages a wire cannot read as they stand, and how many there are.
fn strange(target: Target, text: &Readable<'_>) -> Option<(usize, usize)> {
    let request: &RawValue = text.raw().ok()?;
    let list =
        if request.get().starts_with('[') { request } else { Fields::of(request)?.peek(target.wire().messages)? };
    let items = array(list)?;
    let strange = items.iter().filter(|item| Reading::of_item(target, item).is_strange).count();
    Some((strange, items.len()))
}
