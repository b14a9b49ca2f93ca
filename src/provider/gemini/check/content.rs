//! One content: its role, its fields, its parts, their signatures.

use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::shape::Fault;
use crate::provider::check::value::{Object, entry, field, is_filled, kind, text};
use crate::provider::gemini::rules::{
    GM_03, GM_04, GM_05, GM_06, GM_10, GM_15, GM_16, GM_18, GM_19, GM_20, GM_22, GM_23, GM_26, GM_28, GM_29,
};
use crate::provider::gemini::types::CONTENT;
use crate::provider::prompt::media::bytes::decode_any_base64;
use crate::provider::text::{is_blank, is_spelling_of, is_word_with};
use serde_json::Value;

/// Characters of a function's name.
const NAME: usize = 128;
/// What a part may carry, one at a time.
const DATA: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];
/// Types of inline data that every model takes, and those that some models or Vertex refuse (from reports, see GM-19).
pub(crate) const TYPES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "application/pdf",
    "text/plain",
    "audio/wav",
    "audio/x-wav",
    "audio/mp3",
    "audio/mpeg",
    "audio/aiff",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
    "audio/x-aac",
    "audio/m4a",
    "audio/mp4",
    "audio/webm",
    "audio/l16",
    "audio/opus",
    "audio/pcm",
    "video/mp4",
    "video/mpeg",
    "video/mov",
    "video/quicktime",
    "video/avi",
    "video/x-flv",
    "video/flv",
    "video/mpg",
    "video/mpegps",
    "video/webm",
    "video/wmv",
    "video/3gpp",
];
const TYPES_OF_SOME: &[&str] = &[
    "image/gif",
    "image/bmp",
    "image/avif",
    "text/html",
    "text/css",
    "text/markdown",
    "text/md",
    "text/csv",
    "text/xml",
    "text/rtf",
    "text/javascript",
    "application/x-javascript",
    "application/javascript",
    "text/x-python",
    "application/x-python",
    "application/json",
    "application/xml",
    "application/rtf",
];

/// Returns whether it holds inline data.
pub(crate) fn check_content(content: &Value, place: &str, out: &mut Findings) -> bool {
    let Some(content) = content.as_object() else {
        out.push(GM_28.at(place, format!("expected an object, got {}", kind(content))));
        return false;
    };
    let place_of_parts = format!("{place}.parts");
    let parts = content.get("parts").and_then(Value::as_array);
    check_fields(content, place, out);
    let role = content.get("role").unwrap_or(&Value::Null);
    if role.is_null() {
        out.push(GM_03.at(format!("{place}.role"), "no role").with_level(Level::Soft));
    } else if !["user", "model", "function"].iter().any(|known| role == known) {
        out.push(GM_03.at(format!("{place}.role"), format!("role is {}", kind(role))));
    }
    let Some(parts) = parts.filter(|parts| !parts.is_empty()) else {
        out.push(GM_04.at(place_of_parts, "missing, not an array, or empty"));
        return false;
    };
    let mut inline = false;
    for (i, part) in parts.iter().enumerate() {
        let place = format!("{place_of_parts}[{i}]");
        match part.as_object() {
            Some(part) => inline |= check_part(part, role, &place, out),
            None => out.push(GM_28.at(place, format!("expected an object, got {}", kind(part)))),
        }
    }
    inline
}

/// Compares with the official type, but for what other rules say better.
fn check_fields(content: &Object, place: &str, out: &mut Findings) {
    let parts = format!("{place}.parts");
    for misfit in CONTENT.misfits(content, place) {
        let rule = match (misfit.fault, misfit.place.rsplit('.').next().unwrap_or_default()) {
            (Fault::Unknown, _) => &GM_22,
            (_, "args" | "response") => &GM_15,
            (_, "thoughtSignature" | "thought_signature") => &GM_18,
            _ if misfit.place == parts => &GM_04,
            _ => &GM_28,
        };
        out.push(rule.of(misfit));
    }
}

/// Returns whether it holds inline data.
pub(crate) fn check_part(part: &Object, role: &Value, place: &str, out: &mut Findings) -> bool {
    let data: Vec<_> = DATA.iter().copied().filter(|name| is_set(part, name)).collect();
    let signed = field(part, "thoughtSignature").is_some_and(is_filled);
    check_one(&data, part, signed, place, out);
    match part.get("text").and_then(Value::as_str) {
        Some("") if !signed => out.push(GM_06.at(format!("{place}.text"), "text is empty")),
        Some(text) if !text.is_empty() && is_blank(text) => {
            out.push(GM_06.at(format!("{place}.text"), "text is blank"));
        }
        _ => {}
    }
    check_signature(part, role, place, out);
    if part.get("thought") == Some(&Value::Bool(true)) && !signed {
        out.push(GM_26.at(place, "a thought without its signature"));
    }
    if let Some((name, file)) = object(part, "fileData") {
        let (uri, value) = entry(file, "fileUri").unwrap_or(("fileUri", &Value::Null));
        if !is_filled(value) {
            out.push(GM_20.at(format!("{place}.{name}.{uri}"), "missing or empty"));
        }
    }
    check_function(part, "functionCall", "args", place, out);
    check_function(part, "functionResponse", "response", place, out);
    if data.contains(&"functionCall") && !role.is_null() && role != "model" {
        out.push(GM_23.at(place, format!("functionCall in a turn of the role {role}")));
    }
    if data.contains(&"functionResponse") && role == "model" {
        out.push(GM_23.at(place, "functionResponse in a turn of the model"));
    }
    let inline = object(part, "inlineData");
    if let Some((name, blob)) = inline {
        check_inline(blob, &format!("{place}.{name}"), out);
    }
    inline.is_some()
}

fn check_one(data: &[&str], part: &Object, signed: bool, place: &str, out: &mut Findings) {
    let beside = ["thoughtSignature", "thought"];
    match data {
        [_] => {}
        [] => {
            let only_signature =
                signed && part.keys().all(|name| beside.iter().any(|known| is_spelling_of(known, name)));
            let other = part.iter().any(|(name, value)| {
                !value.is_null() && !beside.iter().chain(DATA).any(|known| is_spelling_of(known, name))
            });
            let level = match (only_signature, other) {
                (true, _) => Level::Soft,
                (false, true) => Level::Unknown,
                (false, false) => Level::Hard,
            };
            out.push(GM_05.at(place, "carries nothing that is known").with_level(level));
        }
        several => out.push(GM_05.at(place, format!("carries {} at a time", several.join(", ")))),
    }
}

fn check_signature(part: &Object, role: &Value, place: &str, out: &mut Findings) {
    let Some((name, signature)) = entry(part, "thoughtSignature").filter(|(_, value)| !value.is_null()) else { return };
    let place = format!("{place}.{name}");
    if signature.as_str().and_then(decode_any_base64).is_none() {
        out.push(GM_18.at(&place, "not base64"));
    }
    if role != "model" {
        out.push(GM_29.at(place, "outside of a turn of the model"));
    }
}

fn check_inline(blob: &Object, place: &str, out: &mut Findings) {
    let (name, declared) = entry(blob, "mimeType").unwrap_or(("mimeType", &Value::Null));
    let essence = declared.as_str().and_then(|name| name.split(';').next());
    let essence = essence.map(|name| name.trim().to_ascii_lowercase()).unwrap_or_default();
    let place_of_type = format!("{place}.{name}");
    if TYPES_OF_SOME.contains(&essence.as_str()) {
        let problem = format!("some models refuse {}", kind(declared));
        out.push(GM_19.at(place_of_type, problem).with_level(Level::Soft));
    } else if !TYPES.contains(&essence.as_str()) {
        out.push(GM_19.at(place_of_type, format!("mimeType is {}", kind(declared))));
    }
    let data = blob.get("data").and_then(Value::as_str).filter(|data| !data.is_empty());
    if data.and_then(decode_any_base64).is_none() {
        out.push(GM_19.at(format!("{place}.data"), "data is not base64"));
    }
}

/// A call or a response: its name, and the object that it passes under `key`.
fn check_function(part: &Object, name: &str, key: &str, place: &str, out: &mut Findings) {
    let Some((name, function)) = object(part, name) else { return };
    let place = format!("{place}.{name}");
    match text(function, "name") {
        "" => out.push(GM_10.at(format!("{place}.name"), "missing, empty, or not a string")),
        name if !is_function_name(name) => {
            let problem = format!("name is {name:?}, which no function can be declared as");
            out.push(GM_16.at(format!("{place}.name"), problem).with_level(Level::Soft));
        }
        _ => {}
    }
    match function.get(key).unwrap_or(&Value::Null) {
        Value::Object(_) => {}
        Value::Null if key == "response" => {
            out.push(GM_15.at(format!("{place}.{key}"), "missing").with_level(Level::Soft));
        }
        Value::Null => {}
        other => out.push(GM_15.at(format!("{place}.{key}"), format!("expected an object, got {}", kind(other)))),
    }
}

fn is_set(part: &Object, name: &str) -> bool {
    field(part, name).is_some_and(|value| !value.is_null())
}

/// With its name as it is spelled there.
fn object<'a>(part: &'a Object, name: &str) -> Option<(&'a str, &'a Object)> {
    let (name, value) = entry(part, name)?;
    Some((name, value.as_object()?))
}

/// Whether it is a name that a function may have (GM-16).
pub(crate) fn is_function_name(name: &str) -> bool {
    is_word_with(name, NAME, b"_.:-") && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}
