//! Blocks of the provider's own, kept with a chunk or as an opaque chunk: given back as they came where they still fit.
//!
//! What is not known of a block's type is not sent: the provider takes no unknown keys (AN-33). Source of the types:
//! `ContentBlockParam` of the official Python SDK (anthropic 2.11.0).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::request::{Block, Raw, RawKind};
use crate::history::OUTCOME_UNKNOWN;
use crate::json;
use crate::model::{File, Json, Native};
use crate::provider::anthropic::check::message::{Seen, check_message};
use crate::provider::anthropic::manner::{Manner, NAME};
use crate::provider::anthropic::types::{CALLED, SENT_RESULTS, WITH_RESULTS};
use crate::provider::check::finding::Finding;
use crate::provider::check::findings::Findings;
use crate::provider::prompt::arguments::embedded_object;
use crate::provider::prompt::media::bytes::{decode_base64, is_web_address, sniff};
use crate::provider::prompt::turns::Origin;
use crate::provider::text::is_blank;

/// A block of the provider's own, read.
pub(crate) struct NativeBlock<'a> {
    json: &'a Json,
    fields: Map<String, Value>,
}

impl<'a> NativeBlock<'a> {
    /// The block that came with a chunk, if it is of this wire.
    pub(crate) fn of(native: Option<&'a Native>) -> Option<Self> {
        native.filter(|native| native.wire == NAME).and_then(|native| Self::read(&native.json))
    }

    /// `None` if it is no object, holds half characters, or is nested too deep.
    pub(crate) fn read(json: &'a Json) -> Option<Self> {
        Some(Self { json, fields: embedded_object(json)? })
    }

    /// The block as it came.
    pub(crate) fn block(&self, kind: RawKind, origin: Option<Origin<'a>>) -> Block<'a> {
        // It was read a moment ago.
        let json = RawValue::from_string(json::one_line(self.json.as_str()).into_owned()).unwrap_or_default();
        Block::Raw(Raw { json, kind, origin })
    }

    fn text_of(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn kind(&self) -> &str {
        self.text_of("type")
    }

    /// The block of this text, if its citations are taken, and whether it is as it came. What only answers have in their
    /// citations, the id of the file (`CitationCharLocation.file_id`), goes.
    pub(crate) fn text_block(mut self, text: &str) -> Option<(Block<'a>, bool)> {
        let is_text = self.kind() == "text" && self.text_of("text") == text;
        let mut as_it_came = true;
        let fits = match self.fields.get_mut("citations") {
            Some(Value::Array(citations)) if !citations.is_empty() => {
                for citation in citations.iter_mut() {
                    as_it_came &= citation.as_object_mut().and_then(|fields| fields.remove("file_id")).is_none();
                }
                citations.iter().all(Value::is_object)
            }
            // Without citations the text is all.
            _ => false,
        };
        let fits = fits && self.refusal("assistant").is_none();
        if !is_text || !fits {
            return None;
        }
        if as_it_came {
            return Some((self.block(RawKind::Other, None), true));
        }
        let json = serde_json::value::to_raw_value(&self.fields).ok()?;
        Some((Block::Raw(Raw { json, kind: RawKind::Other, origin: None }), false))
    }

    /// Is this the call, with no arguments but these?
    pub(crate) fn is_call(&self, id: &str, name: &str, arguments: &RawValue) -> bool {
        self.kind() == "tool_use"
            && (self.text_of("id"), self.text_of("name")) == (id, name)
            && self.fields.get("toolset_name").is_none_or(|name| name.is_null() || name.is_string())
            && self.is_called_directly()
            && self.is_input(arguments)
            && self.refusal("assistant").is_none()
    }

    fn is_input(&self, arguments: &RawValue) -> bool {
        let given = json::value::<Value>(arguments.get()).ok();
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

    /// The id of a call of a tool that the provider runs. `known` gives whether such a call was made before.
    pub(crate) fn server_call(&self, known: impl Fn(&str) -> bool) -> Option<&str> {
        let fits = self.kind() == "server_tool_use"
            && has_only(&self.fields, &["type", "id", "name", "input"], &["caller"])
            && CALLED.contains(&self.text_of("name"))
            && self.fields.get("input").is_some_and(Value::is_object)
            && self.is_called_by(known);
        Some(self.text_of("id")).filter(|id| fits && is_server_id(id))
    }

    /// The id of the call that this is the result of.
    pub(crate) fn server_result(&self, known: impl Fn(&str) -> bool) -> Option<&str> {
        let fits = SENT_RESULTS.contains(&self.kind())
            && has_only(&self.fields, &["type", "tool_use_id", "content"], &["caller"])
            && match self.fields.get("content") {
                Some(Value::Object(outcome)) => is_named(outcome),
                Some(Value::Array(found)) if self.kind() == "web_search_tool_result" => {
                    found.iter().all(|found| found.as_object().is_some_and(is_named))
                }
                _ => false,
            }
            && self.is_called_by(known);
        Some(self.text_of("tool_use_id")).filter(|id| fits && is_server_id(id))
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

    /// The result of that call, if it is of blocks that the user may send: as it came, but for the call's id. With another id it
    /// is the result of that call only if it says what is stored, which `is_same` finds out.
    pub(crate) fn result(mut self, id: &str, manner: &Manner, is_same: impl FnOnce() -> bool) -> Option<Block<'a>> {
        if !self.is_result(manner) {
            return None;
        }
        if self.text_of("tool_use_id") == id {
            return Some(self.block(RawKind::ToolResult, None));
        }
        if !is_same() {
            return None;
        }
        self.fields.insert("tool_use_id".to_owned(), id.into());
        let json = serde_json::value::to_raw_value(&self.fields).ok()?;
        Some(Block::Raw(Raw { json, kind: RawKind::ToolResult, origin: None }))
    }

    fn is_result(&self, manner: &Manner) -> bool {
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
            && self.fields.get("is_error").is_none_or(|failed| failed == &Value::Bool(false))
            && self
                .fields
                .get("content")
                .and_then(Value::as_array)
                .is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_part))
    }

    /// The block in a user message, if one may hold it: as it came, but for the mark of what is cached.
    pub(crate) fn user_block(mut self, manner: &Manner, origin: Origin<'a>) -> Option<Block<'a>> {
        let was_marked = self.fields.remove("cache_control").is_some();
        let kind = self.in_user_message(manner)?;
        if !was_marked {
            return Some(self.block(kind, Some(origin)));
        }
        let json = serde_json::value::to_raw_value(&self.fields).ok()?;
        Some(Block::Raw(Raw { json, kind, origin: Some(origin) }))
    }

    /// What the block counts as in a user message, if one may hold it.
    pub(crate) fn in_user_message(&self, manner: &Manner) -> Option<RawKind> {
        let (fits, kind) = match self.kind() {
            "image" => (is_stored_image(&self.fields, manner), RawKind::Image),
            "document" => (is_document(&self.fields, manner), RawKind::Other),
            "search_result" => (is_search_result(&self.fields), RawKind::Other),
            "" => (false, RawKind::Other),
            kind => (
                !TYPED.contains(&kind)
                    && !ASSISTANTS.contains(&kind)
                    && self.answers().is_none()
                    && self.asks().is_none(),
                RawKind::Other,
            ),
        };
        (fits && self.refusal("user").is_none()).then_some(kind)
    }

    /// The file that a document, or what was found, is for others.
    pub(crate) fn file(&self) -> Option<File> {
        let words = |name: &str| self.fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let of_text = |text: String| File {
            name: words("title"),
            data: Some(STANDARD.encode(text)),
            mime_type: Some("text/plain".to_owned()),
            ..File::default()
        };
        if self.kind() == "search_result" {
            let found = texts(self.fields.get("content")?)?;
            return Some(of_text(format!("{}\n\n{found}", self.text_of("source"))));
        }
        let source = self.fields.get("source").and_then(Value::as_object).filter(|_| self.kind() == "document")?;
        let (kind, data) = (source.get("type")?.as_str()?, |name: &str| Some(source.get(name)?.as_str()?.to_owned()));
        match kind {
            "base64" => {
                Some(File { name: words("title"), data: Some(data("data")?), mime_type: data("media_type"), url: None })
            }
            "text" => Some(of_text(data("data")?)),
            "content" => Some(of_text(texts(source.get("content")?)?)),
            "url" => {
                let mime_type = Some("application/pdf".to_owned());
                Some(File { name: words("title"), url: Some(data("url")?), mime_type, data: None })
            }
            _ => None,
        }
    }

    /// Whether this is a block of its own, of any type, known or not, that the assistant may hold.
    pub(crate) fn is_block(&self) -> bool {
        !self.kind().is_empty() && !TYPED.contains(&self.kind())
    }

    /// The id of a call that the provider runs itself.
    pub(crate) fn asks(&self) -> Option<&str> {
        let id = self.text_of("id");
        (self.kind().ends_with("tool_use") && !id.is_empty()).then_some(id)
    }

    /// The id of the call that this is the result of.
    pub(crate) fn answers(&self) -> Option<&str> {
        self.fields.get("tool_use_id").map(|id| id.as_str().unwrap_or_default())
    }

    /// The call that a program made which an earlier call runs.
    pub(crate) fn called_by(&self) -> Option<&str> {
        self.fields.get("caller")?.get("tool_id")?.as_str()
    }

    /// A result in the place of one that did not come: that the tool is not there. `None` for tools whose results are not
    /// known.
    pub(crate) fn made_result(&self) -> Option<Value> {
        let id = self.asks()?;
        let name = self.text_of("name");
        let name = if name.starts_with("tool_search_tool") { "tool_search" } else { name };
        match self.kind() {
            "mcp_tool_use" => Some(json!({"type": "mcp_tool_result", "tool_use_id": id, "is_error": true,
                "content": [{"type": "text", "text": OUTCOME_UNKNOWN}]})),
            "server_tool_use" if WITH_RESULTS.contains(&name) => {
                let result = format!("{name}_tool_result");
                let error = format!("{result}_error");
                Some(
                    json!({"type": result, "tool_use_id": id, "content": {"type": error, "error_code": "unavailable"}}),
                )
            }
            _ => None,
        }
    }

    /// Why the target refuses the block in a message of this role.
    pub(crate) fn refusal(&self, role: &str) -> Option<Finding> {
        let message = json!({"role": role, "content": [self.fields]});
        let mut findings = Findings::default();
        check_message(&message, "", false, &mut Seen::default(), &mut findings);
        findings.into_kept().into_iter().find(|finding| finding.level.is_refused())
    }
}

/// Blocks that are chunks of their own kind: as bare blocks they are not what their type has.
const TYPED: &[&str] = &[
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "image",
    "document",
    "message",
    "content_block",
];
/// Blocks that only the assistant says.
const ASSISTANTS: &[&str] = &["compaction", "fallback"];

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

/// An id of the provider's own calls: `^srvtoolu_[a-zA-Z0-9_]+$`. From memory of the error that others get.
pub(crate) fn is_server_id(id: &str) -> bool {
    let rest = id.strip_prefix("srvtoolu_").unwrap_or_default();
    !rest.is_empty() && rest.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
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

/// A text, or the texts of blocks that are nothing else.
fn texts(content: &Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let text = |block: &Value| {
        let is_text = block.get("type").is_some_and(|name| name == "text");
        Some(block.get("text").filter(|_| is_text)?.as_str()?.to_owned())
    };
    let texts: Option<Vec<String>> = content.as_array()?.iter().map(text).collect();
    Some(texts?.join("\n\n"))
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
            let is_address = is_web_address(url);
            manner.addresses && has_only(source, &["type", "url"], &[]) && is_address
        }
        _ => false,
    }
}

fn is_document(fields: &Map<String, Value>, manner: &Manner) -> bool {
    let is_content = |content: &Value| {
        let is_text = |part: &Value| {
            part.as_object()
                .is_some_and(|part| part.get("type").is_some_and(|name| name == "text") && is_plain_text(part))
        };
        is_filled(content) || content.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_text))
    };
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
            "content" => has_only(source, &["type", "content"], &[]) && source.get("content").is_some_and(is_content),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::target::Target;

    #[test]
    fn only_a_block_that_says_the_same_goes_back() {
        let read = |json: &str| -> NativeBlock<'static> {
            NativeBlock::read(Box::leak(Box::new(Json::new(json).unwrap()))).unwrap()
        };
        let text = || {
            read(
                r#"{"type":"text","text":"a","citations":[{"type":"char_location","cited_text":"b","document_index":0,
                "document_title":null,"start_char_index":0,"end_char_index":1,"file_id":"f"}]}"#,
            )
        };
        assert!(text().text_block("b").is_none());
        let Some((Block::Raw(raw), false)) = text().text_block("a") else { panic!("it goes back without its file") };
        assert!(raw.json.get().contains("cited_text") && !raw.json.get().contains("file_id"));

        let call = read(r#"{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}}"#);
        for (id, name, arguments, is_it) in [
            ("toolu_1", "f", r#"{"a": 1}"#, true),
            ("toolu_2", "f", r#"{"a":1}"#, false),
            ("toolu_1", "g", r#"{"a":1}"#, false),
            ("toolu_1", "f", r#"{"a":2}"#, false),
        ] {
            let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
            assert_eq!(call.is_call(id, name, &arguments), is_it, "{id} {name} {arguments}");
        }
        let (anthropic, bedrock) =
            (Manner::of(Target::ANTHROPIC), Manner::of("anthropic/bedrock".parse::<Target>().unwrap()));
        let result = read(r#"{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"x"}]}"#);
        assert!(result.is_result(anthropic));
        let image = read(r#"{"type":"image","source":{"type":"url","url":"https://a.example/b.png"}}"#);
        assert!(image.in_user_message(anthropic).is_some() && image.in_user_message(bedrock).is_none());

        let native = |wire: &str| Native { wire: wire.to_owned(), json: Json::new(r#"{"type":"text"}"#).unwrap() };
        assert!(NativeBlock::of(Some(&native(NAME))).is_some() && NativeBlock::of(Some(&native("gemini"))).is_none());
        assert!(is_server_id("srvtoolu_1a") && !["srvtoolu_", "toolu_1", "srvtoolu_a-b"].into_iter().any(is_server_id));
    }
}
