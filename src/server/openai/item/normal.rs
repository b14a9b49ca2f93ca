//! A client's item, checked and completed: its id, its type, its parts, its status. Everything else stays unchanged, in
//! its order.
//!
//! What is known of types of items. Nothing is required of other types: they appear faster than servers are released.

use std::time::SystemTime;

use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::json;
use crate::log::Limits;
use crate::model::{ConversationId, Extra, Json};
use crate::server::keys::{hex, random};
use crate::server::refusal::Refusal;

/// An item as it is stored and returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Normal {
    pub(crate) id: String,
    /// Its type.
    pub(super) kind: String,
    pub(super) fields: Extra,
}

impl Normal {
    /// As JSON, without white space between tokens.
    pub(crate) fn to_json(&self) -> String {
        object(self.fields.iter().map(|(name, value)| (name, value.as_str())))
    }
}

/// A client's item that was checked. Its id may still be missing.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    /// The client's id.
    pub(crate) id: Option<String>,
    kind: String,
    /// Everything except the id and the type.
    fields: Extra,
}

/// The text of an object.
pub(super) fn object<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let fields: Vec<String> = fields.map(|(name, value)| format!("{}:{value}", Value::from(name))).collect();
    format!("{{{}}}", fields.join(","))
}

/// JSON of a text.
pub(super) fn string(text: &str) -> Option<Json> {
    Json::new(Value::from(text).to_string()).ok()
}

impl Taken {
    /// Checks an item; `place` is its place in the request: `items[3]`. `is_strict`: unknown types are refused.
    pub(crate) fn new(raw: &RawValue, place: &str, is_strict: bool) -> Result<Self, Refusal> {
        if !raw.get().starts_with('{') {
            return Err(wrong(place, "an object"));
        }
        let given = Extra::from_object(&json::compact(raw.get())).map_err(|_| wrong(place, "an object"))?;
        let text = |name: &str| match given.get(name) {
            None => Ok(None),
            Some(value) => match serde_json::from_str(value.as_str()) {
                Ok(Value::Null) => Ok(None),
                Ok(Value::String(text)) => Ok(Some(text)),
                _ => Err(wrong(&format!("{place}.{name}"), "a string")),
            },
        };
        let (id, kind) = (text("id")?.filter(|id| !id.is_empty()), text("type")?);
        if let Some(id) = &id
            && id.len() > Limits::NAME_BYTES
        {
            return Err(too_long(format!("{place}.id"), Limits::NAME_BYTES, id.len()));
        }
        let mut fields = Extra::new();
        let others = given.iter().filter(|(name, _)| !["id", "type"].contains(name));
        others.for_each(|(name, value)| fields.push(name, value.clone()));
        let kind = kind.or_else(|| fields.get("role").map(|_| "message".to_owned()));
        let kind = kind.ok_or_else(|| Refusal::missing(&format!("{place}.type")))?;
        if kind == "item_reference" {
            let problem = "an item is not stored as a reference: send the item itself";
            return Err(Refusal::value(format!("{place}.type"), problem));
        }
        match find(&kind) {
            Some(known) => check(known, &fields, place)?,
            None if is_strict => {
                return Err(Refusal::value(format!("{place}.type"), &format!("{kind:?} is not known")));
            }
            None => {}
        }
        Ok(Self { id, kind, fields })
    }

    /// Its type.
    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// The item with its id, and with the fields that an answer of the API must have.
    pub(crate) fn complete(&self, id: &str) -> Normal {
        let mut fields = Extra::new();
        let named = [("id", id), ("type", self.kind.as_str())];
        named
            .into_iter()
            .filter_map(|(name, text)| Some((name, string(text)?)))
            .for_each(|(name, text)| fields.push(name, text));
        let is_message = self.kind == "message";
        let is_assistant = self.fields.get("role").is_some_and(|role| role.as_str() == "\"assistant\"");
        let (mut has_status, wants_status) = (false, find(&self.kind).is_some_and(|known| known.has_status));
        for (name, value) in self.fields.iter() {
            if name == "status" {
                has_status = value.as_str() != "null";
                if wants_status && !has_status {
                    continue;
                }
            }
            if is_message && name == "content" && value.as_str().starts_with('"') {
                fields.push(name, parts(value, is_assistant));
            } else {
                fields.push(name, value.clone());
            }
        }
        if wants_status && !has_status {
            string("completed").into_iter().for_each(|status| fields.push("status", status));
        }
        Normal { id: id.to_owned(), kind: self.kind.clone(), fields }
    }

    /// A new id for it.
    fn make_id(&self, source: &Source<'_>) -> Result<String, Refusal> {
        let digits = match source {
            Source::Key { conversation, key, at } => {
                let mut digest = Sha256::new();
                digest.update(conversation.as_bytes());
                digest.update((*at as u64).to_be_bytes());
                digest.update(key.as_bytes());
                hex(digest.finalize().get(..24).unwrap_or_default())
            }
            Source::Random => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                let seconds = since.map_or(0, |since| since.as_secs());
                format!("{seconds:08x}{}", hex(&random::<20>()?))
            }
        };
        Ok(format!("{}_{digits}", prefix(&self.kind)))
    }
}

/// The source of an id.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// The time, and randomness.
    Random,
    /// An idempotency key: a repetition produces the same id for the same place of the request.
    Key { conversation: ConversationId, key: &'a str, at: usize },
}

/// A text as the only part of a message.
fn parts(text: &Json, is_assistant: bool) -> Json {
    let parts = if is_assistant {
        format!("[{{\"type\":\"output_text\",\"text\":{text},\"annotations\":[],\"logprobs\":[]}}]")
    } else {
        format!("[{{\"type\":\"input_text\",\"text\":{text}}}]")
    };
    Json::new(parts).unwrap_or_else(|_| text.clone())
}

fn too_long(param: String, limit: usize, actual: usize) -> Refusal {
    let message = format!(
        "Invalid '{param}': string too long. Expected a string with maximum length {limit}, but got a string with length {actual} instead."
    );
    Refusal::invalid(param, "string_above_max_length", message)
}

fn wrong(param: &str, expected: &str) -> Refusal {
    let message = format!("Invalid type for '{param}': expected {expected}.");
    Refusal::invalid(param, "invalid_type", message)
}

fn check(known: &Type, fields: &Extra, place: &str) -> Result<(), Refusal> {
    for (name, kind) in known.fields {
        let param = format!("{place}.{name}");
        let value = fields.get(name).ok_or_else(|| Refusal::missing(&param))?;
        let first = value.as_str().bytes().next();
        let (is_right, expected) = match kind {
            Kind::Text => (first == Some(b'"'), "a string"),
            Kind::List => (first == Some(b'['), "an array"),
            Kind::Content => (matches!(first, Some(b'"' | b'[')), "a string or an array"),
        };
        if !is_right {
            return Err(wrong(&param, expected));
        }
        if first == Some(b'[') {
            check_parts(value, &param)?;
        }
        let limit = match *name {
            "call_id" => CALL_ID,
            "output" => OUTPUT,
            "encrypted_content" => COMPACTION,
            _ => usize::MAX,
        };
        // Escapes make the JSON of a text longer than the text, never shorter.
        if first == Some(b'"') && value.as_str().len() > limit {
            let length = serde_json::from_str::<String>(value.as_str()).map_or(0, |text| text.chars().count());
            if length > limit {
                return Err(too_long(param, limit, length));
            }
        }
        if *name == "call_id" && value.as_str() == "\"\"" {
            return Err(Refusal::value(param, "it must not be empty"));
        }
    }
    if known.name != "message" {
        return Ok(());
    }
    let role =
        fields.get("role").and_then(|role| serde_json::from_str::<String>(role.as_str()).ok()).unwrap_or_default();
    if !ROLES.contains(&role.as_str()) {
        return Err(Refusal::value(format!("{place}.role"), &format!("expected one of {}", ROLES.join(", "))));
    }
    Ok(())
}

/// Parts are objects with a type; the text of those that are known is a string.
fn check_parts(parts: &Json, place: &str) -> Result<(), Refusal> {
    let parts: Vec<&RawValue> = serde_json::from_str(parts.as_str()).map_err(|_| wrong(place, "an array"))?;
    for (at, part) in parts.iter().enumerate() {
        let place = format!("{place}[{at}]");
        let fields = Extra::from_object(part.get()).map_err(|_| wrong(&place, "an object"))?;
        let text = |name: &str| {
            let (param, value) = (format!("{place}.{name}"), fields.get(name));
            let text = value.ok_or_else(|| Refusal::missing(&param))?.as_str();
            serde_json::from_str::<String>(text).map_err(|_| wrong(&param, "a string"))
        };
        if let Some(field) = text_of(&text("type")?) {
            text(field)?;
        }
    }
    Ok(())
}

/// The items of a request, each with an id: the client's, or a new one.
pub(crate) fn normal(items: &[Taken], conversation: ConversationId, key: Option<&str>) -> Result<Vec<Normal>, Refusal> {
    let complete = |(at, item): (usize, &Taken)| {
        let source = key.map_or(Source::Random, |key| Source::Key { conversation, key, at });
        let id = item.id.clone().map_or_else(|| item.make_id(&source), Ok)?;
        Ok(item.complete(&id))
    };
    items.iter().enumerate().map(complete).collect()
}

/// What a field must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// A text, or a list of objects.
    Content,
    List,
}

/// A type of item: the prefix of its ids, whether an answer has a status, and its required fields.
/// Source: OpenAI's OpenAPI document of 2026-08-21.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    pub(super) name: &'static str,
    pub(super) prefix: &'static str,
    has_status: bool,
    pub(super) fields: &'static [(&'static str, Kind)],
}

const fn known(name: &'static str, prefix: &'static str) -> Type {
    Type { name, prefix, has_status: false, fields: &[] }
}

const fn whole(name: &'static str, prefix: &'static str, fields: &'static [(&'static str, Kind)]) -> Type {
    Type { name, prefix, has_status: true, fields }
}

const fn plain(name: &'static str, prefix: &'static str, fields: &'static [(&'static str, Kind)]) -> Type {
    Type { name, prefix, has_status: false, fields }
}

const TYPES: &[Type] = &[
    whole("message", "msg", &[("role", Kind::Text), ("content", Kind::Content)]),
    whole("function_call", "fc", &[("call_id", Kind::Text), ("name", Kind::Text), ("arguments", Kind::Text)]),
    whole("function_call_output", "fco", &[("call_id", Kind::Text), ("output", Kind::Content)]),
    plain("custom_tool_call", "ctc", &[("call_id", Kind::Text), ("name", Kind::Text), ("input", Kind::Text)]),
    plain("custom_tool_call_output", "ctco", &[("call_id", Kind::Text), ("output", Kind::Content)]),
    plain("reasoning", "rs", &[("summary", Kind::List)]),
    plain("compaction", "cmp", &[("encrypted_content", Kind::Text)]),
    whole("computer_call_output", "cuo", &[("call_id", Kind::Text)]),
    known("computer_call", "cu"),
    known("file_search_call", "fs"),
    known("web_search_call", "ws"),
    known("image_generation_call", "ig"),
    known("code_interpreter_call", "ci"),
    known("local_shell_call", "lsh"),
    known("local_shell_call_output", "lsho"),
    known("shell_call", "sh"),
    known("shell_call_output", "sho"),
    known("apply_patch_call", "apc"),
    known("apply_patch_call_output", "apco"),
    known("mcp_list_tools", "mcpl"),
    known("mcp_approval_request", "mcpr"),
    known("mcp_approval_response", "mcpa"),
    known("mcp_call", "mcp"),
    known("tool_search_call", "tsc"),
    known("tool_search_output", "tso"),
    known("additional_tools", "at"),
    known("program", "prog"),
    known("program_output", "prog"),
];

/// The roles of messages that OpenAI knows.
const ROLES: &[&str] = &["user", "assistant", "system", "developer", "tool", "critic", "discriminator", "unknown"];

/// The most characters of a call's id.
const CALL_ID: usize = 64;
/// The most characters of an output.
const OUTPUT: usize = 10_485_760;
/// The most characters of a compaction's content.
const COMPACTION: usize = 20_971_520;

fn find(name: &str) -> Option<&'static Type> {
    TYPES.iter().find(|known| known.name == name)
}

/// The field that holds the text of a part of this type.
fn text_of(part: &str) -> Option<&'static str> {
    match part {
        "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text" => Some("text"),
        "refusal" => Some("refusal"),
        _ => None,
    }
}

/// The prefix of a type's ids.
pub(crate) fn prefix(name: &str) -> &'static str {
    find(name).map_or("item", |known| known.prefix)
}
