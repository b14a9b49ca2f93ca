//! A request that is of another wire than somebody said.

use serde_json::value::RawValue;

use super::align::Reading;
use crate::error::{Error, Result};
use crate::json::fields::{Fields, array};
use crate::provider::WIRES;
use crate::provider::check::judge::check;
use crate::provider::read::parse::Readable;
use crate::provider::target::{Target, Wire};

/// The wire that a request looks like, if that is another one than it is read as: `read_as` refuses it, and the other leaves
/// at most half as many of its messages unread. Takes as long as a check of each wire.
///
/// ```
/// use conversation_store::provider::{Target, likely_wire};
///
/// let request = r#"{"max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]}"#;
/// let wire = likely_wire(Target::OPENAI_CHAT, request).map(|wire| wire.name);
/// assert_eq!(wire, Some("anthropic"));
/// ```
#[must_use]
pub fn likely_wire(read_as: Target, request: &str) -> Option<&'static Wire> {
    let text = Readable::of(request);
    let (strange, _) = strange(read_as, &text).filter(|(strange, _)| *strange > 0)?;
    other_wire(read_as, &text, strange)
}

/// Refuses a request of which most cannot be read as one of `from`, where another wire leaves at most half as many messages
/// unread. A request that `from` accepts is one of `from`, whatever it holds that the package does not know.
pub(super) fn refuse_other_wire(from: Target, text: &Readable<'_>) -> Result<()> {
    let Some((strange, all)) = strange(from, text).filter(|(strange, all)| strange * 2 > *all) else { return Ok(()) };
    other_wire(from, text, strange).map_or(Ok(()), |wire| {
        Err(Error::InvalidInput(format!(
            "{strange} of {all} messages cannot be read as {from}; it looks like a request of {}: say so with --from",
            wire.name
        )))
    })
}

/// The wire that a request looks like of which `from` cannot read so many messages.
fn other_wire(from: Target, text: &Readable<'_>, strange: usize) -> Option<&'static Wire> {
    let (wire, less) = likely(from, text)?;
    (less * 2 <= strange && !is_accepted(from, text)).then_some(wire)
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
