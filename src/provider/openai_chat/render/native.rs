//! Fields, parts and calls of the server's own, which go back to it as they came: all that it does not refuse. And what only
//! OpenAI's own server is known to take: names of speakers, how closely an image is looked at, files by their ids.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json as object};

use super::request::{AnyCall, Field, Function, Held, Message, Part, RawCall, ToolCall};
use super::{Renderer, Said};
use crate::history::StoredMessage;
use crate::history::report::{Fact, Refusal, Unsent};
use crate::json;
use crate::json::fields::Fields;
use crate::model::{Body, Chunk, Json, Native, Role};
use crate::provider::check::judge::check;
use crate::provider::openai_chat::manner::{NAME, OPENAI_NAME, of_parts};
use crate::provider::prompt::arguments::embedded_object;
use crate::provider::prompt::foreign::as_text;
use crate::provider::prompt::turns::{Call, Turn};
use crate::provider::text::{is_blank, is_word};

/// Fields that messages have anyway.
const RESERVED: &[&str] =
    &["role", "content", "name", "refusal", "tool_calls", "function_call", "tool_call_id", "reasoning_content"];

impl<'a> Renderer<'a> {
    /// An opaque chunk: a field of the message, or a part of its content, of this server; or what another's item says.
    pub(super) fn opaque(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk, said: &mut Said<'a>) {
        let Body::Opaque { provider, kind, json } = &chunk.body else { return };
        let is_own = self.manner.providers.iter().any(|own| *own == provider || of_parts(own) == provider);
        if !is_own || !turn.is_by(self.manner.providers, None) {
            if turn.role != Role::Assistant {
                return self.note(Fact::Removed { kind, why: Unsent::Foreign(provider) }, turn.stored, at);
            }
            let text = as_text(&chunk.body, turn.stored, at, &mut self.report);
            return said.parts.extend(text.map(|text| Part::Text { text: Cow::Owned(text) }));
        }
        let (role, target) = (turn.role.as_str(), self.target.to_string());
        let typed = embedded_object(json).filter(|fields| fields.get("type").is_some_and(Value::is_string));
        let is_openais = provider == OPENAI_NAME && typed.is_some();
        let part = typed.filter(|part| part.get("type").is_some_and(|name| name == kind.as_str()));
        let refused = match (&part, turn.role) {
            // OpenAI's other wire has items, not parts.
            _ if is_openais => Some(Unsent::NotInRole(turn.role, &target)),
            // Its assistant says text.
            (Some(_), Role::Assistant) if provider == NAME || !self.manner.arrays => {
                Some(Unsent::NotInRole(turn.role, &target))
            }
            (Some(_), Role::User | Role::Assistant) => {
                self.refused(role, "content", &format!("[{json}]")).map(Unsent::Refused)
            }
            (None, Role::Assistant) if kind.contains('.') => Some(Unsent::BesideMessage),
            (None, Role::Assistant) if RESERVED.contains(&kind.as_str()) || said.names.contains(kind.as_str()) => {
                Some(Unsent::FieldTaken)
            }
            (None, Role::Assistant) if !kind.is_empty() && embedded(json) => {
                self.refused(role, kind, json.as_str()).map(Unsent::Refused)
            }
            _ => Some(Unsent::NotInRole(turn.role, &target)),
        };
        match (refused, part) {
            (Some(why), _) => self.note(Fact::Removed { kind, why }, turn.stored, at),
            (None, Some(_)) => said.parts.push(Part::Raw(raw(json))),
            (None, None) => {
                said.names.insert(kind);
                said.extra.push((Cow::Borrowed(kind), Field::Json(raw(json))));
            }
        }
    }

    /// Fields of a message that says nothing else.
    pub(super) fn note_alone(&mut self, stored: &StoredMessage) {
        for (at, chunk) in stored.message.chunks.iter().enumerate() {
            if let Body::Opaque { kind, .. } = &chunk.body {
                self.note(Fact::Removed { kind, why: Unsent::Alone }, stored, at);
            }
        }
    }

    /// The rule by which the target refuses this field of a message.
    pub(super) fn refused(&self, role: &str, field: &str, value: &str) -> Option<Refusal> {
        let name = Value::from(field);
        let content = if field == "content" { "" } else { r#""content":"x","# };
        let said = r#"{"role":"user","content":"x"}"#;
        let request = format!(r#"{{"messages":[{said},{{"role":"{role}",{content}{name}:{value}}},{said}]}}"#);
        // Nothing answers the calls here.
        let item = if field == "tool_calls" { "[0]" } else { "" };
        let place = format!("messages[1].{field}{item}");
        let findings = check(self.target, &request).unwrap_or_default();
        let refusal =
            findings.into_iter().find(|finding| finding.level.is_refused() && finding.place.starts_with(&place));
        refusal.map(Refusal::from)
    }

    /// Whether the target takes this text in this field of the assistant's. Which text it is does not matter, unless it is
    /// blank: so each field is looked at once.
    pub(super) fn takes_text(&self, field: &str, text: &str) -> bool {
        if is_blank(text) {
            return self.refused("assistant", field, &Value::from(text).to_string()).is_none();
        }
        if let Some(taken) = self.text_fields.borrow().get(field) {
            return *taken;
        }
        let taken = self.refused("assistant", field, r#""x""#).is_none();
        self.text_fields.borrow_mut().insert(field.to_owned(), taken);
        taken
    }

    /// The calls of a message: as they came where they are the server's and say the same.
    pub(super) fn calls(&mut self, turn: &Turn<'a>, calls: &[Call<'a>]) -> Vec<AnyCall<'a>> {
        calls.iter().map(|call| self.any_call(turn, call)).collect()
    }

    fn any_call(&mut self, turn: &Turn<'a>, call: &Call<'a>) -> AnyCall<'a> {
        let (id, name, arguments) = (call.id.clone(), call.name.clone(), call.arguments.clone());
        let native = turn.stored.message.chunks.get(call.chunk).and_then(|chunk| chunk.native.as_ref());
        if let Some(Native { json, .. }) = native.filter(|native| native.wire == NAME) {
            let is_own = turn.is_by(self.manner.providers, None);
            let given = embedded_object(json).filter(|_| is_own);
            if let Some(json) = given.as_ref().and_then(|given| self.custom_call(turn, call, given)) {
                // Its input is no JSON, and stays what it is.
                self.customs.insert((turn.stored.index, turn.stored.chunk_index(call.chunk)));
                return AnyCall::Raw(RawCall { name, json });
            }
            let why = match given {
                None => Some(Unsent::Unreadable),
                Some(given) if !is_call(&given, call) => Some(Unsent::Changed),
                Some(_) => self.refused("assistant", "tool_calls", &format!("[{json}]")).map(Unsent::Refused),
            };
            match why {
                None => return AnyCall::Raw(RawCall { name, json: raw(json) }),
                Some(why) => {
                    self.note(Fact::CallFieldsRemoved(why), turn.stored, call.chunk);
                }
            }
        }
        AnyCall::Made(ToolCall { id, r#type: "function", function: Function { name, arguments } })
    }
}

impl<'a> Renderer<'a> {
    /// The call of a custom tool, with its input, if the target takes it.
    fn custom_call(&self, turn: &Turn<'a>, call: &Call<'a>, given: &Map<String, Value>) -> Option<Box<RawValue>> {
        let input = given.get("custom")?.get("input")?.as_str()?;
        let Body::ToolCall { arguments, .. } = &turn.stored.message.chunks.get(call.chunk)?.body else { return None };
        if arguments != input {
            return None;
        }
        let written = object!({"id": call.id, "type": "custom", "custom": {"name": call.name, "input": input}});
        let is_taken = self.refused("assistant", "tool_calls", &format!("[{written}]")).is_none();
        RawValue::from_string(written.to_string()).ok().filter(|_| is_taken)
    }
}

/// Whether the fields are those of this call.
fn is_call(given: &Map<String, Value>, call: &Call<'_>) -> bool {
    let function = given.get("function");
    let text = |name: &str| function.and_then(|function| function.get(name)?.as_str()).unwrap_or_default();
    let id = given.get("id").and_then(Value::as_str).unwrap_or_default();
    (id, text("name"), text("arguments")) == (call.id.as_str(), &*call.name, &*call.arguments)
}

/// Whether parsers take it within a request.
fn embedded(json: &Json) -> bool {
    Json::new(format!("{{\"value\":{json}}}")).is_ok_and(|whole| embedded_object(&whole).is_some())
}

fn raw(json: &Json) -> Box<RawValue> {
    RawValue::from_string(json::compact(json.as_str()).into_owned()).unwrap_or_default()
}

/// Letters of a speaker's name (OC-24).
const SPEAKER: usize = 64;
/// Source: API reference, `image_url.detail`.
const DETAILS: &[&str] = &["auto", "low", "high"];

impl<'a> Renderer<'a> {
    /// The name of the one who speaks, on the message that was made of this one.
    pub(super) fn name(&mut self, stored: &StoredMessage, message: usize) {
        let given = stored.message.metadata.extra.get("name").filter(|_| self.echoes);
        let given: Option<String> = given.and_then(|name| serde_json::from_str(name.as_str()).ok());
        if let Some(Message::System { name, .. } | Message::User { name, .. } | Message::Assistant { name, .. }) =
            self.messages.get_mut(message)
        {
            *name = given.filter(|name| is_word(name, SPEAKER));
        }
    }

    /// How closely an image is looked at.
    pub(super) fn look(&self, part: &mut Part<'a>, chunk: Option<&Chunk>) {
        let given = chunk.filter(|_| self.echoes).and_then(|chunk| chunk.extra.get("detail"));
        let given: Option<String> = given.and_then(|detail| serde_json::from_str(detail.as_str()).ok());
        if let (Part::ImageUrl { image_url }, Some(given)) = (part, given) {
            image_url.detail = DETAILS.iter().find(|detail| **detail == given).copied();
        }
    }

    /// A file that the provider holds.
    pub(super) fn held(&self, turn: &Turn<'a>, chunk: &Chunk) -> Option<Part<'a>> {
        let native = chunk.native.as_ref().filter(|native| self.echoes && native.wire == NAME)?;
        if turn.role != Role::User || !turn.is_by(self.manner.providers, None) {
            return None;
        }
        let file_id = Fields::read(native.json.as_str()).ok()?.object("file")?.string("file_id")?;
        (!file_id.trim().is_empty()).then_some(Part::Held { file: Held { file_id } })
    }
}
