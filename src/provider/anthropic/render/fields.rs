//! The fields of the provider's own blocks, as it takes them: no others, none blank. Source: `ContentBlockParam` of the official Python SDK (anthropic 2.11.0).

use serde_json::{Map, Value};

use crate::provider::anthropic::manner::Manner;
use crate::provider::prompt::media::bytes::{decode_base64, is_web_address, sniff};
use crate::provider::text::is_blank;

/// All of the required fields, and no others than these and the optional ones.
pub(crate) fn has_only(fields: &Map<String, Value>, required: &[&str], optional: &[&str]) -> bool {
    required.iter().all(|name| fields.contains_key(*name))
        && fields.keys().all(|name| required.contains(&name.as_str()) || optional.contains(&name.as_str()))
}

pub(crate) fn is_filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !is_blank(text))
}

pub(crate) fn is_named(fields: &Map<String, Value>) -> bool {
    fields.get("type").is_some_and(is_filled)
}

/// An id of the provider's own calls: `^srvtoolu_[a-zA-Z0-9_]+$`. From memory of the error that others get.
pub(crate) fn is_server_id(id: &str) -> bool {
    let rest = id.strip_prefix("srvtoolu_").unwrap_or_default();
    !rest.is_empty() && rest.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

pub(crate) fn is_plain_text(fields: &Map<String, Value>) -> bool {
    has_only(fields, &["type", "text"], &[]) && fields.get("text").is_some_and(is_filled)
}

fn is_citing(fields: &Map<String, Value>) -> bool {
    fields.get("citations").is_none_or(|citing| {
        citing.as_object().is_some_and(|citing| {
            has_only(citing, &[], &["enabled"]) && citing.get("enabled").is_none_or(Value::is_boolean)
        })
    })
}

pub(crate) fn is_search_result(fields: &Map<String, Value>) -> bool {
    let is_text = |part: &Value| part.as_object().is_some_and(|part| is_named(part) && is_plain_text(part));
    has_only(fields, &["type", "content", "source", "title"], &["citations"])
        && ["source", "title"].iter().all(|name| fields.get(*name).is_some_and(is_filled))
        && fields.get("content").and_then(Value::as_array).is_some_and(|parts| {
            !parts.is_empty()
                && parts.iter().all(|part| is_text(part) && part.get("type").is_some_and(|name| name == "text"))
        })
        && is_citing(fields)
}

pub(crate) fn is_stored_image(fields: &Map<String, Value>, manner: &Manner) -> bool {
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

pub(crate) fn is_document(fields: &Map<String, Value>, manner: &Manner) -> bool {
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
