//! The messages of a chat request, whatever it took to write them.

mod calls;
mod message;
mod part;

use super::provider;
use crate::error::Result;
use crate::provider::Target;
use crate::provider::ingest::fields::Fields;
use crate::provider::parse::{Notes, Parsed, no_messages};

pub(super) use calls::{Call, custom_call};
pub(super) use part::part;

/// Where thinking stands.
const THINKING: &[&str] = &["reasoning_content", "reasoning"];

/// Takes the thinking out of a message, or out of a piece of one. Some servers say it twice: the first counts.
pub(super) fn thinking(fields: &mut Fields<'_>) -> Option<String> {
    let found: Vec<String> = THINKING.iter().filter_map(|name| fields.string(name)).collect();
    found.into_iter().find(|text| !text.is_empty())
}

/// Takes the messages out of a request. Each gives one message, so their positions stay.
pub(super) fn parse(target: Target, request: &mut Fields<'_>) -> Result<Parsed> {
    let list = request.array("messages").ok_or_else(|| no_messages("messages"))?;
    let mut parsed = Parsed::default();
    for (at, raw) in list.into_iter().enumerate() {
        let mut notes = Notes::new(at, &mut parsed.notes);
        parsed.messages.push(message::message(raw, provider(target), &mut notes));
    }
    Ok(parsed)
}
