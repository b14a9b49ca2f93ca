//! A part, whole: as a request or an answer holds it.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::json;
use crate::json::fields::{Fields, string, text};
use crate::model::extra::{Owner, compact, json};
use crate::model::{Audio, Body, Chunk, File, Image, Native, Output, Part, PartBody};
use crate::provider::gemini::manner::{NAME, NO_SIGNATURE};
use crate::provider::gemini::render::object::plain;
use crate::provider::prompt::media::bytes::IMAGE_TYPES;
use crate::provider::text::is_spelling_of;

/// Where a part comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An answer: the message says who made it.
    Answer,
    /// A request. Nobody says who signed its parts: they are the wire's own as long as they are kept as they are.
    Request,
}

/// The part as a chunk; it is kept as it came where the chunk would not give it back. What is not known becomes an opaque
/// one of this provider.
pub(crate) fn part(raw: &RawValue, origin: Origin, provider: &str, names: &mut Names) -> Option<Chunk> {
    let Some(mut fields) = Fields::of(raw) else {
        return string(raw).map(Chunk::text).or_else(|| opaque("part", raw, provider));
    };
    let thought = take(&mut fields, "thought").is_some_and(|raw| raw.get() == "true");
    let signature = take(&mut fields, "thoughtSignature").and_then(string);
    let signature = signature.filter(|signature| !signature.is_empty() && signature != NO_SIGNATURE);
    let kind = fields.names().next().unwrap_or("part").to_owned();
    let read = body(&mut fields, thought, signature.clone(), names);
    let Some(Read { mut chunk, is_whole }) = read else { return opaque(&kind, raw, provider) };
    // Only texts have a place for it.
    let is_thought = thought && !matches!(chunk.body, Body::Thinking { .. });
    let says_more = !is_whole || is_thought || fields.names().any(|name| fields.peek(name).is_some());
    let is_signed = match (&chunk.body, origin) {
        (Body::Thinking { .. } | Body::ToolCall { .. }, Origin::Answer) => false,
        _ => signature.is_some(),
    };
    if says_more || is_signed {
        // Answers are indented, which nobody needs. The spaces in a request stay, as those in a call's arguments do.
        let kept = match origin {
            Origin::Answer => compact(raw),
            Origin::Request => json(raw),
        };
        chunk.native = kept.map(|json| Native { wire: NAME.to_owned(), json });
    }
    if let Body::ToolCall { arguments, .. } = &mut chunk.body
        && origin == Origin::Answer
    {
        // Answers are indented: what is kept of them is not.
        *arguments = json::compact(arguments);
    }
    Some(chunk)
}

/// A chunk, and whether it says all that its data did.
struct Read {
    chunk: Chunk,
    is_whole: bool,
}

fn body(fields: &mut Fields<'_>, thought: bool, signature: Option<String>, names: &mut Names) -> Option<Read> {
    if let Some(text) = fields.string("text") {
        let body = match thought {
            true => Body::Thinking { text, signature, redacted: None },
            false => Body::Text { text, annotations: None },
        };
        return Some(Read { chunk: body.into(), is_whole: true });
    }
    if let Some(call) = take(fields, "functionCall").and_then(Fields::of) {
        return Some(call_of(call, signature, names));
    }
    if let Some(answer) = take(fields, "functionResponse").and_then(Fields::of) {
        return Some(Read { chunk: response(answer, names), is_whole: true });
    }
    if let Some(blob) = take(fields, "inlineData").and_then(Fields::of) {
        return inline(blob);
    }
    take(fields, "fileData").and_then(Fields::of).and_then(file)
}

fn call_of(mut call: Fields<'_>, signature: Option<String>, names: &mut Names) -> Read {
    let name = call.text("name").unwrap_or_default();
    let (given, args) = (call.string("id"), call.take("args"));
    let is_whole = given.is_none() && args.is_some() && call.rest().next().is_none();
    let arguments = args.map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
    let id = names.id(given, &name);
    let chunk = Chunk::from(Body::ToolCall { id, name, arguments, signature, server: false });
    Read { chunk, is_whole }
}

fn inline(mut blob: Fields<'_>) -> Option<Read> {
    let mime_type = take(&mut blob, "mimeType").map(text).unwrap_or_default();
    let data = blob.string("data")?;
    let body = if IMAGE_TYPES.contains(&mime_type.as_str()) {
        Body::Image(Image { url: format!("data:{mime_type};base64,{data}"), mime_type: None })
    } else if mime_type.starts_with("audio/") {
        Body::Audio(Audio { data: Some(data), mime_type: Some(mime_type), ..Audio::default() })
    } else {
        Body::File(File { data: Some(data), mime_type: Some(mime_type), ..File::default() })
    };
    Some(Read { chunk: body.into(), is_whole: blob.rest().next().is_none() })
}

fn file(mut file: Fields<'_>) -> Option<Read> {
    let mime_type = take(&mut file, "mimeType").map(text);
    let url = take(&mut file, "fileUri").and_then(string)?;
    let is_http = url.starts_with("https://") || url.starts_with("http://");
    let is = |start: &str| mime_type.as_deref().is_some_and(|mime_type| mime_type.starts_with(start));
    let is_whole = mime_type.is_some() && file.rest().next().is_none();
    let body = if is("image/") && is_http {
        Body::Image(Image { url, mime_type })
    } else if is("audio/") {
        Body::Audio(Audio { url: Some(url), mime_type, ..Audio::default() })
    } else {
        Body::File(File { url: Some(url), mime_type, ..File::default() })
    };
    Some(Read { chunk: body.into(), is_whole })
}

pub(crate) fn opaque(kind: &str, raw: &RawValue, provider: &str) -> Option<Chunk> {
    Some(Body::Opaque { provider: provider.to_owned(), kind: kind.to_owned(), json: compact(raw)? }.into())
}

/// Takes a field by this name or the same in snake_case: the service takes both.
pub(crate) fn take<'a>(fields: &mut Fields<'a>, camel: &str) -> Option<&'a RawValue> {
    let snake = fields.names().find(|name| *name != camel && is_spelling_of(camel, name)).map(str::to_owned);
    let other = snake.and_then(|snake| fields.take(&snake));
    fields.take(camel).or(other)
}

/// A `functionResponse` as a result.
fn response(mut fields: Fields<'_>, names: &mut Names) -> Chunk {
    let name = fields.text("name").unwrap_or_default();
    let tool_call_id = names.id(fields.string("id"), &name);
    let (output, is_error) = fields.take("response").map_or_else(|| (Output::Text(String::new()), None), output);
    let body = Body::ToolResult { tool_call_id, name: Some(name), output, is_error };
    Chunk { extra: fields.extra(Owner::Chunk), ..body.into() }
}

/// The output that would be written so; any other object is a JSON value.
fn output(raw: &RawValue) -> (Output, Option<bool>) {
    let of = |key: &str| {
        let mut fields = Fields::of(raw)?;
        let texts = texts(fields.take(key)?)?;
        let written = serde_json::to_string(&serde_json::json!({ key: texts.value() })).unwrap_or_default();
        (written == raw.get()).then_some(texts)
    };
    match (of("result"), of("error")) {
        (Some(Texts::One(text)), _) if plain(&text).is_none() => (Output::Text(text), None),
        (Some(Texts::Several(texts)), _) => (parts(texts), None),
        (None, Some(Texts::One(text))) if !text.is_empty() => (Output::Text(text), Some(true)),
        (None, Some(Texts::Several(texts))) if texts.iter().any(|text| !text.is_empty()) => (parts(texts), Some(true)),
        _ => (Output::Parts(json(raw).map(|json| PartBody::Json { json }.into()).into_iter().collect()), None),
    }
}

/// A text, or at least two.
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    fn value(&self) -> serde_json::Value {
        match self {
            Self::One(text) => text.as_str().into(),
            Self::Several(texts) => texts.as_slice().into(),
        }
    }
}

fn texts(raw: &RawValue) -> Option<Texts> {
    if let Some(text) = string(raw) {
        return Some(Texts::One(text));
    }
    let texts: Vec<String> = serde_json::from_str(raw.get()).ok()?;
    (texts.len() > 1).then_some(Texts::Several(texts))
}

fn parts(texts: Vec<String>) -> Output {
    Output::Parts(texts.into_iter().map(|text| Part::from(PartBody::Text { text })).collect())
}

/// Names of functions that were called, or have answered, in a content: what has no id goes by its name, and by its number
/// where it is not the first of that name.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<String, usize>);

impl Names {
    pub(crate) fn id(&mut self, given: Option<String>, name: &str) -> String {
        if let Some(id) = given.filter(|id| !id.is_empty()) {
            return id;
        }
        let count = self.0.entry(name.to_owned()).or_default();
        *count += 1;
        if *count == 1 { name.to_owned() } else { format!("{name}_{count}") }
    }
}
