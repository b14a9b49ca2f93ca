//! Blocks of the provider's own, kept with a chunk or as an opaque chunk: given back as they came where they still fit.
//!
//! What is not known of a block's type is not sent: the provider takes no unknown keys (AN-33). Source of the types:
//! `ContentBlockParam` of the official Python SDK (anthropic 2.11.0).

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Manner;
use super::text::is_blank;
use super::wire::{Block, Origin, Own, OwnKind};
use crate::json;
use crate::model::{Json, Native};
use crate::provider::arguments::EMBEDDED_DEPTH;
use crate::provider::media::{decode_base64, sniff};

/// Tools that the provider runs itself, by the names that their calls may have.
const SERVER_TOOLS: &[&str] = &[
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
];
/// The types of their results.
const SERVER_RESULTS: &[&str] = &[
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
];
/// Citations by type, with the fields that each of them has.
const CITATIONS: &[(&str, &[(&str, Field)])] = &[
    (
        "char_location",
        &[
            ("cited_text", Field::Text),
            ("document_index", Field::Number),
            ("document_title", Field::Title),
            ("start_char_index", Field::Number),
            ("end_char_index", Field::Number),
        ],
    ),
    (
        "page_location",
        &[
            ("cited_text", Field::Text),
            ("document_index", Field::Number),
            ("document_title", Field::Title),
            ("start_page_number", Field::Number),
            ("end_page_number", Field::Number),
        ],
    ),
    (
        "content_block_location",
        &[
            ("cited_text", Field::Text),
            ("document_index", Field::Number),
            ("document_title", Field::Title),
            ("start_block_index", Field::Number),
            ("end_block_index", Field::Number),
        ],
    ),
    (
        "web_search_result_location",
        &[("cited_text", Field::Text), ("encrypted_index", Field::Text), ("title", Field::Title), ("url", Field::Text)],
    ),
    (
        "search_result_location",
        &[
            ("cited_text", Field::Text),
            ("search_result_index", Field::Number),
            ("source", Field::Text),
            ("title", Field::Title),
            ("start_block_index", Field::Number),
            ("end_block_index", Field::Number),
        ],
    ),
];

/// What a citation's field holds.
#[derive(Clone, Copy)]
enum Field {
    Text,
    Number,
    /// Text or null.
    Title,
}

/// A block of the provider's own, read.
pub(super) struct Given<'a> {
    json: &'a Json,
    fields: Map<String, Value>,
}

impl<'a> Given<'a> {
    /// The block that came with a chunk, if it is of this wire.
    pub(super) fn of(native: Option<&'a Native>) -> Option<Self> {
        native.filter(|native| native.wire == super::NAME).and_then(|native| Self::read(&native.json))
    }

    /// `None` if it is no object, holds half characters, or is nested too deep.
    pub(super) fn read(json: &'a Json) -> Option<Self> {
        if json::depth(json.as_str()) > EMBEDDED_DEPTH {
            return None;
        }
        let fields = serde_json::from_str(json.as_str()).ok()?;
        Some(Self { json, fields })
    }

    /// The block as it came.
    pub(super) fn block(&self, kind: OwnKind, origin: Option<Origin<'a>>) -> Block<'a> {
        // It was read a moment ago.
        let json = RawValue::from_string(json::one_line(self.json.as_str()).into_owned()).unwrap_or_default();
        Block::Own(Own { json, kind, origin })
    }

    fn text_of(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn kind(&self) -> &str {
        self.text_of("type")
    }

    /// The block of this text, if its citations are taken, and whether it is as it came. What only answers have in their
    /// citations, the id of the file (`CitationCharLocation.file_id`), goes.
    pub(super) fn text_block(mut self, text: &str) -> Option<(Block<'a>, bool)> {
        let is_text = self.kind() == "text"
            && has_only(&self.fields, &["type", "text"], &["citations"])
            && self.text_of("text") == text;
        let mut as_it_came = true;
        let fits = match self.fields.get_mut("citations") {
            None | Some(Value::Null) => true,
            Some(Value::Array(citations)) => citations.iter_mut().all(|citation| {
                let named = citation.as_object_mut().and_then(|fields| fields.remove("file_id"));
                as_it_came &= named.is_none();
                is_citation(citation)
            }),
            Some(_) => false,
        };
        if !is_text || !fits {
            return None;
        }
        if as_it_came {
            return Some((self.block(OwnKind::Other, None), true));
        }
        let json = serde_json::value::to_raw_value(&self.fields).ok()?;
        Some((Block::Own(Own { json, kind: OwnKind::Other, origin: None }), false))
    }

    /// Is this the call, with no arguments but these?
    pub(super) fn is_call(&self, id: &str, name: &str, arguments: &RawValue) -> bool {
        self.kind() == "tool_use"
            && has_only(&self.fields, &["type", "id", "name", "input"], &["caller", "toolset_name"])
            && (self.text_of("id"), self.text_of("name")) == (id, name)
            && self.fields.get("toolset_name").is_none_or(|name| name.is_null() || name.is_string())
            && self.is_called_directly()
            && self.is_input(arguments)
    }

    fn is_input(&self, arguments: &RawValue) -> bool {
        let given = serde_json::from_str::<Value>(arguments.get()).ok();
        given.is_some_and(|given| given.is_object() && self.fields.get("input") == Some(&given))
    }

    fn is_called_directly(&self) -> bool {
        match self.fields.get("caller") {
            None => true,
            Some(caller) => caller.as_object().is_some_and(|caller| {
                has_only(caller, &["type"], &[]) && caller.get("type").is_some_and(|name| name == "direct")
            }),
        }
    }

    /// The id of a call of a tool that the provider runs. `known` tells whether such a call was made before.
    pub(super) fn server_call(&self, known: impl Fn(&str) -> bool) -> Option<&str> {
        let fits = self.kind() == "server_tool_use"
            && has_only(&self.fields, &["type", "id", "name", "input"], &["caller"])
            && SERVER_TOOLS.contains(&self.text_of("name"))
            && self.fields.get("input").is_some_and(Value::is_object)
            && self.is_called_by(known);
        Some(self.text_of("id")).filter(|id| fits && is_id(id))
    }

    /// The id of the call that this is the result of.
    pub(super) fn server_result(&self, known: impl Fn(&str) -> bool) -> Option<&str> {
        let fits = SERVER_RESULTS.contains(&self.kind())
            && has_only(&self.fields, &["type", "tool_use_id", "content"], &["caller"])
            && match self.fields.get("content") {
                Some(Value::Object(outcome)) => is_named(outcome),
                Some(Value::Array(found)) if self.kind() == "web_search_tool_result" => {
                    found.iter().all(|found| found.as_object().is_some_and(is_named))
                }
                _ => false,
            }
            && self.is_called_by(known);
        Some(self.text_of("tool_use_id")).filter(|id| fits && is_id(id))
    }

    /// By the model, or by code that an earlier call runs.
    fn is_called_by(&self, known: impl Fn(&str) -> bool) -> bool {
        self.is_called_directly()
            || self.fields.get("caller").and_then(Value::as_object).is_some_and(|caller| {
                has_only(caller, &["type", "tool_id"], &[])
                    && caller.get("type").is_some_and(Value::is_string)
                    && caller.get("tool_id").and_then(Value::as_str).is_some_and(known)
            })
    }

    /// Is this the result of that call, of blocks that the user may send?
    pub(super) fn is_result(&self, id: &str, manner: &Manner) -> bool {
        let is_part = |part: &Value| {
            let Some(fields) = part.as_object() else { return false };
            match fields.get("type").and_then(Value::as_str) {
                Some("text") => is_plain_text(fields),
                Some("tool_reference") => {
                    has_only(fields, &["type", "tool_name"], &[]) && fields.get("tool_name").is_some_and(is_filled)
                }
                Some("search_result") => is_search_result(fields),
                Some("document") => is_document(fields, manner),
                _ => false,
            }
        };
        self.kind() == "tool_result"
            && has_only(&self.fields, &["type", "tool_use_id", "content"], &["is_error"])
            && self.text_of("tool_use_id") == id
            && self.fields.get("is_error").is_none_or(|failed| failed == &Value::Bool(false))
            && self
                .fields
                .get("content")
                .and_then(Value::as_array)
                .is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_part))
    }

    /// What the block counts as in a user message, if one may hold it.
    pub(super) fn in_user_message(&self, manner: &Manner) -> Option<OwnKind> {
        let (fits, kind) = match self.kind() {
            "image" => (is_stored_image(&self.fields, manner), OwnKind::Image),
            "document" => (is_document(&self.fields, manner), OwnKind::Other),
            "search_result" => (is_search_result(&self.fields), OwnKind::Other),
            "container_upload" => {
                let named = self.fields.get("file_id").is_some_and(is_filled);
                (named && has_only(&self.fields, &["type", "file_id"], &[]), OwnKind::Other)
            }
            _ => (false, OwnKind::Other),
        };
        fits.then_some(kind)
    }
}

/// All of the required fields, and no others than these and the optional ones.
fn has_only(fields: &Map<String, Value>, required: &[&str], optional: &[&str]) -> bool {
    required.iter().all(|name| fields.contains_key(*name))
        && fields.keys().all(|name| required.contains(&name.as_str()) || optional.contains(&name.as_str()))
}

fn is_filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !is_blank(text))
}

fn is_named(fields: &Map<String, Value>) -> bool {
    fields.get("type").is_some_and(is_filled)
}

/// AN-16.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.chars().all(super::is_id_character)
}

fn is_citation(citation: &Value) -> bool {
    let Some(fields) = citation.as_object() else { return false };
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    CITATIONS.iter().find(|(name, _)| *name == kind).is_some_and(|(_, wanted)| {
        fields.len() == wanted.len() + 1
            && wanted.iter().all(|(name, field)| match (field, fields.get(*name)) {
                (Field::Text, Some(value)) => value.is_string(),
                (Field::Number, Some(value)) => value.is_u64(),
                (Field::Title, Some(value)) => value.is_string() || value.is_null(),
                (_, None) => false,
            })
    })
}

fn is_plain_text(fields: &Map<String, Value>) -> bool {
    has_only(fields, &["type", "text"], &[]) && fields.get("text").is_some_and(is_filled)
}

fn is_citing(fields: &Map<String, Value>) -> bool {
    fields.get("citations").is_none_or(|citing| {
        citing.as_object().is_some_and(|citing| {
            has_only(citing, &[], &["enabled"]) && citing.get("enabled").is_none_or(Value::is_boolean)
        })
    })
}

fn is_search_result(fields: &Map<String, Value>) -> bool {
    let is_text = |part: &Value| part.as_object().is_some_and(|part| is_named(part) && is_plain_text(part));
    has_only(fields, &["type", "content", "source", "title"], &["citations"])
        && ["source", "title"].iter().all(|name| fields.get(*name).is_some_and(is_filled))
        && fields.get("content").and_then(Value::as_array).is_some_and(|parts| {
            !parts.is_empty()
                && parts.iter().all(|part| is_text(part) && part.get("type").is_some_and(|name| name == "text"))
        })
        && is_citing(fields)
}

fn is_stored_image(fields: &Map<String, Value>, manner: &Manner) -> bool {
    let source = fields.get("source").and_then(Value::as_object);
    has_only(fields, &["type", "source"], &[]) && source.is_some_and(|source| is_elsewhere(source, manner))
}

/// A source that is a stored file or an address.
fn is_elsewhere(source: &Map<String, Value>, manner: &Manner) -> bool {
    match source.get("type").and_then(Value::as_str) {
        Some("file") => has_only(source, &["type", "file_id"], &[]) && source.get("file_id").is_some_and(is_filled),
        Some("url") => {
            let url = source.get("url").and_then(Value::as_str).unwrap_or_default();
            let is_address = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
            manner.addresses && has_only(source, &["type", "url"], &[]) && is_address
        }
        _ => false,
    }
}

fn is_document(fields: &Map<String, Value>, manner: &Manner) -> bool {
    let is_source = |source: &Map<String, Value>| {
        let text = |name: &str| source.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_whole = has_only(source, &["type", "media_type", "data"], &[]);
        match text("type") {
            "base64" => {
                let bytes = decode_base64(text("data"));
                let is_pdf = bytes.is_some_and(|bytes| sniff(&bytes) == Some("application/pdf"));
                is_whole && text("media_type") == "application/pdf" && is_pdf
            }
            "text" => is_whole && text("media_type") == "text/plain" && !is_blank(text("data")),
            _ => is_elsewhere(source, manner),
        }
    };
    let is_word = |name: &str| fields.get(name).is_none_or(|text| text.is_null() || is_filled(text));
    has_only(fields, &["type", "source"], &["title", "context", "citations"])
        && fields.get("source").and_then(Value::as_object).is_some_and(is_source)
        && is_word("title")
        && is_word("context")
        && is_citing(fields)
}
