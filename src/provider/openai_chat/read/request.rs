//! The messages of a chat request, whatever it took to write them.

use super::message::message;
use crate::error::Result;
use crate::provider::openai_chat::manner::provider;
use crate::provider::read::fields::Fields;
use crate::provider::read::parsed::{Notes, Parsed, no_messages};
use crate::provider::target::Target;

/// Takes the messages out of a request. Each gives one message, so their positions stay.
pub(crate) fn parse(target: Target, request: &mut Fields<'_>) -> Result<Parsed> {
    let list = request.array("messages").ok_or_else(|| no_messages("messages"))?;
    let mut parsed = Parsed::default();
    for (at, raw) in list.into_iter().enumerate() {
        let mut notes = Notes::new(at, format!("messages[{at}]"), &mut parsed.notes);
        let message = message(raw, provider(target), &mut notes);
        let places = notes.into_places();
        parsed.push(Some(at), message, places);
    }
    Ok(parsed)
}
