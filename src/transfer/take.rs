//! What readers share: texts, times, lists of chunks into messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use super::foreign::Foreign;
use crate::json::fields::{Fields, array, string};
use crate::model::extra::{Owner, json};
use crate::model::{Body, Chunk, Extra, File, Image, Json, Message, Output, Part, PartBody, Role, Timestamp};

/// Numbers above this are milliseconds since 1970, not seconds: the year 5138.
const MILLISECONDS: f64 = 1e11;
const MILLISECONDS_LAST: f64 = 1e14;

/// A moment: seconds or milliseconds since 1970, or RFC 3339. A moment without a zone is one of UTC.
pub(crate) fn moment(raw: &RawValue) -> Option<Timestamp> {
    if let Some(text) = string(raw) {
        let utc = || format!("{}Z", text.trim().replacen(' ', "T", 1)).parse();
        return text.trim().parse().or_else(|_| utc()).ok();
    }
    let number: f64 = raw.get().parse().ok()?;
    let micros = match number.abs() {
        ..MILLISECONDS => number * 1e6,
        ..MILLISECONDS_LAST => number * 1e3,
        _ => number,
    };
    // A float out of range becomes the nearest integer.
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    Some(Timestamp::from_micros(micros.round() as i64))
}

/// Takes a field that holds a moment.
pub(crate) fn moment_of(fields: &mut Fields<'_>, name: &str) -> Option<Timestamp> {
    let moment = fields.peek(name).and_then(moment)?;
    fields.take(name);
    Some(moment)
}

/// The JSON text of something that can be written as JSON.
pub(crate) fn json_of(value: &impl serde::Serialize) -> Option<Json> {
    Json::new(serde_json::to_string(value).ok()?).ok()
}

/// The fields of a message that nobody read.
pub(crate) fn keep(fields: Fields<'_>, message: Option<&mut Message>) {
    if let Some(message) = message {
        fields.extend(Owner::Message, &mut message.metadata.extra);
    }
}

/// The fields of a chunk that nobody read.
pub(crate) fn with_rest(fields: Fields<'_>, body: Body) -> Chunk {
    let mut chunk = Chunk::from(body);
    fields.extend(Owner::Chunk, &mut chunk.extra);
    chunk
}

/// A block that has no place, kept unchanged.
pub(crate) fn opaque(raw: &RawValue, kind: impl Into<String>, format: &str) -> Option<Chunk> {
    Some(Body::Opaque { provider: format.to_owned(), kind: kind.into(), json: json(raw)? }.into())
}

/// A value in the place of a block: a string is text, `null` is nothing, any other value is kept.
pub(crate) fn stray(raw: &RawValue, format: &str) -> Option<Chunk> {
    match string(raw) {
        Some(text) if text.is_empty() => None,
        Some(text) => Some(Chunk::text(text)),
        None => opaque(raw, "part", format),
    }
}

/// Chunks in the order of the export, as messages: results belong to the tool, and what follows them is a new message.
/// Consecutive results are one message each.
pub(crate) fn messages(role: Role, chunks: Vec<Chunk>) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for chunk in chunks {
        let is_result = matches!(chunk.body, Body::ToolResult { .. });
        let role = if is_result { Role::Tool } else { role };
        match messages.last_mut() {
            Some(last) if last.role == role && !is_result => last.chunks.push(chunk),
            _ => messages.push(Message::new(role, [chunk])),
        }
    }
    messages
}

/// The rest of a conversation's fields. What is nested too deep, or empty, is left out.
pub(crate) fn rest(fields: Fields<'_>) -> Extra {
    let mut extra = Extra::new();
    for (name, raw) in fields.rest() {
        if !crate::json::fields::is_empty(raw)
            && let Some(json) = json(raw)
        {
            extra.push(name, json);
        }
    }
    extra
}

/// A picture that came with the export as a data URL, otherwise its name.
pub(crate) fn picture(found: Option<(String, Vec<u8>)>, reference: &str, mime_type: Option<String>) -> Chunk {
    match found {
        Some((name, bytes)) => {
            let mime_type = mime_type.unwrap_or_else(|| mime_of(&name).to_owned());
            Chunk::image(format!("data:{mime_type};base64,{}", STANDARD.encode(bytes)))
        }
        None => Body::Image(Image { url: reference.to_owned(), mime_type }).into(),
    }
}

/// A document that came with the export, otherwise its name.
pub(crate) fn document(
    found: Option<(String, Vec<u8>)>,
    reference: &str,
    name: Option<String>,
    mime_type: Option<String>,
) -> Chunk {
    let (data, url) = match &found {
        Some((_, bytes)) => (Some(STANDARD.encode(bytes)), None),
        None => (None, Some(reference.to_owned()).filter(|url| !url.is_empty())),
    };
    let mime_type = mime_type.or_else(|| found.as_ref().map(|(name, _)| mime_of(name).to_owned()));
    Body::File(File { name, url, data, mime_type }).into()
}

/// Extensions of files, and media types; of several extensions of a type, the first is written.
const TYPES: &[(&str, &str)] = &[
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("pdf", "application/pdf"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("json", "application/json"),
    ("wav", "audio/wav"),
    ("mp3", "audio/mpeg"),
];

/// The extension for a media type; `bin` for one that is not known.
pub(crate) fn extension_of(mime_type: &str) -> &'static str {
    TYPES.iter().find(|(_, known)| *known == mime_type).map_or("bin", |(extension, _)| extension)
}

/// The media type for a file's name.
pub(crate) fn mime_of(name: &str) -> &'static str {
    let extension = name.rsplit('.').next().unwrap_or_default().to_lowercase();
    TYPES.iter().find(|(known, _)| *known == extension).map_or("application/octet-stream", |(_, mime)| mime)
}

/// A tool's result: a string, parts of text, or any JSON.
pub(crate) fn output(raw: Option<&RawValue>) -> Output {
    let Some(raw) = raw else { return Output::Text(String::new()) };
    if let Some(text) = string(raw) {
        return Output::Text(text);
    }
    let Some(parts) = array(raw) else { return Output::Parts(json(raw).map(json_part).into_iter().collect()) };
    let part = |raw: &RawValue| {
        let mut fields = Fields::of(raw);
        let kind = fields.as_mut().and_then(|fields| fields.string("type"));
        let text = fields.as_mut().filter(|_| matches!(kind.as_deref(), Some("text" | "input_text" | "output_text")));
        match (text.and_then(|fields| fields.string("text")), fields) {
            (Some(text), Some(fields)) => {
                Some(Part { body: PartBody::Text { text }, extra: fields.extra(Owner::Chunk) })
            }
            _ => json(raw).map(json_part),
        }
    };
    Output::Parts(parts.into_iter().filter_map(part).collect())
}

fn json_part(json: Json) -> Part {
    PartBody::Json { json }.into()
}

/// Arguments of a call: an object's JSON text without white space, or the string that holds it, unchanged.
pub(crate) fn arguments(raw: Option<&RawValue>) -> String {
    raw.map(|raw| string(raw).unwrap_or_else(|| crate::json::compact(raw.get()).into_owned())).unwrap_or_default()
}

/// A result.
pub(crate) fn result(id: &str, name: Option<String>, output: Output, is_error: Option<bool>) -> Body {
    Body::ToolResult { tool_call_id: id.to_owned(), name, output, is_error }
}

/// A conversation's title, if it has one.
pub(crate) fn title(fields: &mut Fields<'_>, name: &str) -> Option<String> {
    fields.string(name).filter(|title| !title.trim().is_empty())
}

/// Tags a conversation if a field is true. The field stays among the rest.
pub(crate) fn tag_if(fields: &Fields<'_>, name: &str, tag: &str, foreign: &mut Foreign) {
    if fields.peek(name).is_some_and(|raw| raw.get() == "true") {
        foreign.tags.push(tag.to_owned());
    }
}

/// Tags of a list of strings.
pub(crate) fn tags_of(raw: Option<&RawValue>, foreign: &mut Foreign) {
    let names = raw
        .and_then(array)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|raw| string(raw).or_else(|| Fields::of(raw).and_then(|mut fields| fields.string("name"))));
    for name in names.filter(|name| !name.trim().is_empty()) {
        if !foreign.tags.contains(&name) {
            foreign.tags.push(name);
        }
    }
}
