//! The messages of a Responses request, whatever it took to write them.
//!
//! Items of the model that follow each other are one message: what it reasoned belongs to what it said. Two plain messages
//! of the model in a row stay two.

use serde_json::value::RawValue;

use super::given::given;
use super::said::opaque;
use super::said::{Origin, kind, said};
use crate::error::Result;
use crate::model::json_text;
use crate::model::{Body, Chunk, Json, Message, Native, Role};
use crate::provider::openai_responses::manner::NAME;
use crate::provider::read::fields::{Fields, string};
use crate::provider::read::parsed::{Notes, Parsed, no_messages, stranger};
use crate::provider::target::Target;

/// Takes the messages out of a request. `instructions` is its first.
pub(crate) fn parse(_: Target, request: &mut Fields<'_>) -> Result<Parsed> {
    let mut items = Items::default();
    match request.string("input") {
        Some(text) => {
            let places = Notes::new(0, "input".to_owned(), &mut items.parsed.notes).into_places();
            items.parsed.push(None, Message::user(text), places);
        }
        None => {
            let list = request.array("input").ok_or_else(|| no_messages("input"))?;
            list.into_iter().enumerate().for_each(|(at, raw)| items.take(at, raw));
        }
    }
    let mut parsed = items.parsed;
    if let Some(raw) = request.peek("instructions")
        && let Some(text) = string(raw)
    {
        request.take("instructions");
        let json = Json::new(format!("{{\"instructions\":{raw}}}")).ok();
        let native = json.map(|json| Native { wire: NAME.to_owned(), json });
        let instructions = Message::new(Role::System, [Chunk { native, ..Chunk::text(text) }]);
        let places = Notes::new(0, "instructions".to_owned(), &mut parsed.notes).into_places();
        parsed.push(None, instructions, places);
        parsed.messages.rotate_right(1);
        parsed.places.rotate_right(1);
        parsed.notes.iter_mut().for_each(|note| note.message_index = note.message_index.map(|index| index + 1));
    }
    Ok(parsed)
}

/// Items as they become messages.
#[derive(Debug, Default)]
struct Items {
    parsed: Parsed,
    last: Last,
}

/// What the last item was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    /// Not the model's: what the model says next is a new message.
    #[default]
    Given,
    /// A message of the model that says no more than its parts: rendered, the next such one would be one with it.
    Plain,
    /// Any other item of the model.
    Item,
    /// Any item of the model, after calls that are not answered yet.
    Called,
}

impl Items {
    fn take(&mut self, at: usize, raw: &RawValue) {
        let whole = format!("input[{at}]");
        let mut notes = Notes::new(self.parsed.messages.len(), whole.clone(), &mut self.parsed.notes);
        let fields = Fields::of(raw);
        let given = match fields {
            Some(_) => given(raw, &mut notes),
            // A string is what the user said.
            None => Some(stranger(raw, "item", opaque("item", raw), &mut notes)),
        };
        let places = notes.into_places();
        if let Some(message) = given {
            self.parsed.push(Some(at), message, places);
            self.last = Last::Given;
            return;
        }
        let fields = fields.unwrap_or_default();
        let mut parts = Vec::new();
        let chunks = said(raw, Origin::Request, &mut parts);
        let is_kept = |chunk: &Chunk| {
            chunk.native.as_ref().is_some_and(|native| native.json.as_str() == json_text::compact(raw.get()))
        };
        let is_plain = kind(&fields) == "message" && !chunks.iter().any(is_kept);
        let calls = chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolCall { .. }));
        if self.last == Last::Given || self.last == Last::Plain && is_plain {
            self.parsed.push(Some(at), Message::assistant([]), places);
        }
        self.last = match self.last {
            Last::Called => Last::Called,
            _ if calls => Last::Called,
            _ if is_plain => Last::Plain,
            _ => Last::Item,
        };
        if let (Some(message), Some(place)) = (self.parsed.messages.last_mut(), self.parsed.places.last_mut()) {
            message.chunks.extend(chunks);
            place.chunks.extend(parts.into_iter().map(|part| format!("{whole}{part}")));
            place.items = place.items.take().map(|items| items.start..at + 1);
        }
    }
}
