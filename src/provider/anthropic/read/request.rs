//! The messages of a Messages request, whatever it took to write them.

use serde_json::value::RawValue;

use super::block::block;
use super::message::message;
use crate::error::Result;
use crate::model::{Chunk, Message};
use crate::provider::anthropic::manner::provider;
use crate::provider::read::fields::{Fields, array, string};
use crate::provider::read::parsed::{Notes, Parsed, no_messages, opaque};
use crate::provider::target::Target;

/// Takes `system` and the messages out of a request. Each message gives one, so their positions stay, after that of
/// `system`.
pub(crate) fn parse(target: Target, request: &mut Fields<'_>) -> Result<Parsed> {
    let list = request.array("messages").ok_or_else(|| no_messages("messages"))?;
    let mut parsed = Parsed::default();
    let provider = provider(target);
    let mut notes = Notes::new(0, "system".to_owned(), &mut parsed.notes);
    if let Some(system) = request.take("system").and_then(|raw| system(raw, provider, &mut notes)) {
        let places = notes.into_places();
        parsed.push(None, system, places);
    }
    for (at, raw) in list.into_iter().enumerate() {
        let mut notes = Notes::new(parsed.messages.len(), format!("messages[{at}]"), &mut parsed.notes);
        let message = message(raw, provider, &mut notes);
        let places = notes.into_places();
        parsed.push(Some(at), message, places);
    }
    Ok(parsed)
}

/// A string, or an array of text blocks.
fn system(raw: &RawValue, provider: &str, notes: &mut Notes<'_>) -> Option<Message> {
    if let Some(text) = string(raw) {
        return (!text.is_empty()).then(|| Message::system(text));
    }
    let chunks: Vec<Chunk> = match array(raw) {
        Some(blocks) => notes.each("", blocks, |raw, _| block(raw, provider)),
        None => vec![opaque(raw, "system", provider)?],
    };
    let mut message = Message::system("");
    message.chunks = chunks;
    (!message.chunks.is_empty()).then_some(message)
}
