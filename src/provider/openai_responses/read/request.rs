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
    let items = match request.string("input") {
        Some(text) => Items { messages: vec![Message::user(text)], ..Items::default() },
        None => {
            let list = request.array("input").ok_or_else(|| no_messages("input"))?;
            let mut items = Items::default();
            list.into_iter().for_each(|raw| items.take(raw));
            items
        }
    };
    let mut parsed = Parsed { messages: items.messages, notes: items.notes };
    if let Some(raw) = request.peek("instructions")
        && let Some(text) = string(raw)
    {
        request.take("instructions");
        let json = Json::new(format!("{{\"instructions\":{raw}}}")).ok();
        let native = json.map(|json| Native { wire: NAME.to_owned(), json });
        let instructions = Message::new(Role::System, [Chunk { native, ..Chunk::text(text) }]);
        parsed.messages.insert(0, instructions);
        parsed.notes.iter_mut().for_each(|note| note.message_index = note.message_index.map(|index| index + 1));
    }
    Ok(parsed)
}

/// Items as they become messages.
#[derive(Debug, Default)]
struct Items {
    messages: Vec<Message>,
    notes: Vec<crate::history::ReportLine>,
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
    fn take(&mut self, raw: &RawValue) {
        let fields = Fields::of(raw);
        let mut notes = Notes::new(self.messages.len(), &mut self.notes);
        let (Some(fields), given) = (fields, given(raw, &mut notes)) else {
            return self.stranger(raw);
        };
        if let Some(message) = given {
            self.messages.push(message);
            self.last = Last::Given;
            return;
        }
        let chunks = said(raw, Origin::Request);
        let is_kept = |chunk: &Chunk| {
            chunk.native.as_ref().is_some_and(|native| native.json.as_str() == json_text::compact(raw.get()))
        };
        let is_plain = kind(&fields) == "message" && !chunks.iter().any(is_kept);
        let calls = chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolCall { .. }));
        if self.last == Last::Given || self.last == Last::Plain && is_plain {
            self.messages.push(Message::assistant([]));
        }
        self.last = match self.last {
            Last::Called => Last::Called,
            _ if calls => Last::Called,
            _ if is_plain => Last::Plain,
            _ => Last::Item,
        };
        if let Some(message) = self.messages.last_mut() {
            message.chunks.extend(chunks);
        }
    }

    /// What is in the place of an item: a string is what the user said.
    fn stranger(&mut self, raw: &RawValue) {
        let mut notes = Notes::new(self.messages.len(), &mut self.notes);
        let message = stranger(raw, "item", opaque("item", raw), &mut notes);
        self.messages.push(message);
        self.last = Last::Given;
    }
}
