//! The messages of a generateContent request, whatever it took to write them; and a part, whole: as a request or an answer
//! holds it.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::error::Result;
use crate::history::report::Fact;
use crate::json;
use crate::json::fields::{Fields, Item, array, string, text};
use crate::model::extra::{Owner, compact, json};
use crate::model::{Audio, Body, Chunk, File, Image, Message, Native, Output, Part, PartBody, Role};
use crate::provider::gemini::check::DATA;
use crate::provider::gemini::manner::{NAME, NO_SIGNATURE, provider};
use crate::provider::gemini::render::native::BESIDE_RESPONSE;
use crate::provider::gemini::render::object::plain;
use crate::provider::prompt::media::bytes::IMAGE_TYPES;
use crate::provider::read::parsed::{Given, Notes, Parsed, RoleNames, no_messages, push_parted, stranger};
use crate::provider::target::Target;
use crate::provider::text::is_spelling_of;

/// The wire's own, and what others call them: there is no role for tools.
const ROLE_NAMES: RoleNames = RoleNames {
    known: &[
        (Role::User, &["user", "function", "human", "tool"]),
        (Role::Assistant, &["model", "assistant", "ai", "bot"]),
        (Role::System, &["system", "developer"]),
    ],
    same: &["user", "model", "function"],
};

/// Takes the messages out of a request. What the system says is its first.
pub(crate) fn parse<'a>(target: Target, given: Given<'a>) -> Result<(Parsed, Fields<'a>)> {
    let provider = provider(target);
    let mut parsed = Parsed::default();
    let (mut request, list) = given.items("contents")?;
    if list.is_none() {
        let text = request.string("contents").ok_or_else(|| no_messages("contents"))?;
        parsed.read("contents", None, |_| Some(Message::user(text)));
    }
    let name = request.names().find(|name| is_spelling_of("systemInstruction", name)).unwrap_or_default().to_owned();
    if let Some(raw) = take(&mut request, "systemInstruction") {
        let mut notes = Notes::new(0, name, None, &mut parsed.notes);
        let chunks = match Fields::of(raw) {
            Some(mut fields) => parts(&mut fields, provider, &mut notes),
            None => {
                notes.push(Fact::SystemAsText);
                vec![Chunk::text(string(raw).unwrap_or_else(|| raw.get().to_owned()))]
            }
        };
        let place = notes.into_place();
        parsed.push(Message::new(Role::System, chunks), place);
        // Before what `contents` says as a string.
        parsed.messages.rotate_right(1);
        parsed.places.rotate_right(1);
    }
    for (at, item) in list.into_iter().flatten().enumerate() {
        content(item, at, provider, &mut parsed);
    }
    Ok((parsed, request))
}

/// A content: one message, or two where answers to calls stand beside other parts.
fn content(item: Item<'_>, at: usize, provider: &str, parsed: &mut Parsed) {
    let mut notes = Notes::new(parsed.messages.len(), "contents", Some(at), &mut parsed.notes);
    let mut fields = match item {
        Item::Object(fields) => fields,
        Item::Other(raw) => {
            let message = stranger(raw, "content", opaque("content", raw, provider), &mut notes);
            let place = notes.into_place();
            return parsed.push(message, place);
        }
    };
    let chunks = parts(&mut fields, provider, &mut notes);
    let role = role(&mut fields, &chunks, &mut notes);
    let place = notes.into_place();
    push_parted(parsed, (role, chunks), fields, place);
}

fn role(fields: &mut Fields<'_>, chunks: &[Chunk], notes: &mut Notes<'_>) -> Role {
    let is_call = |chunk: &Chunk| matches!(chunk.body, Body::ToolCall { .. });
    let guess = if chunks.iter().any(is_call) { Role::Assistant } else { Role::User };
    let Some(name) = fields.text("role") else {
        if guess == Role::Assistant {
            notes.push(Fact::RoleTaken { name: None, taken: guess });
        }
        return guess;
    };
    ROLE_NAMES.role(&name, guess, notes)
}

/// The parts of a content: an array, or one of them in place of it.
fn parts(fields: &mut Fields<'_>, provider: &str, notes: &mut Notes<'_>) -> Vec<Chunk> {
    let Some(raw) = fields.take("parts") else { return Vec::new() };
    let mut names = Names::default();
    let mut read = |raw| chunks(raw, provider, &mut names);
    match array(raw) {
        Some(parts) => notes.each(".parts", parts, |raw, _| read(raw)),
        None => read(raw).into_iter().filter_map(|chunk| notes.at(".parts", Some(chunk))).collect(),
    }
}

/// The chunks of a part: one, or, where it carries several data at a time (GM-05), one of each.
fn chunks(raw: &RawValue, provider: &str, names: &mut Names) -> Vec<Chunk> {
    let Some(fields) = Fields::of(raw) else { return other_part(raw, provider).into_iter().collect() };
    match apart(&fields) {
        Some(parts) => parts.iter().filter_map(|raw| part(raw, Origin::Request, provider, names)).collect(),
        None => fields_part(fields, raw, Origin::Request, provider, names).into_iter().collect(),
    }
}

/// A part of several data as several parts. What is beside the data goes with the call, since calls are what has to be
/// signed, or with the first of them.
fn apart(fields: &Fields<'_>) -> Option<Vec<Box<RawValue>>> {
    let is_data = |name: &str| DATA.iter().any(|data| is_spelling_of(data, name));
    let data: Vec<(&str, &RawValue)> = fields.present().filter(|(name, _)| is_data(name)).collect();
    if data.len() < 2 {
        return None;
    }
    let mut beside = fields.present().filter(|(name, _)| !is_data(name)).map(written).collect::<Option<Vec<_>>>()?;
    let main = data.iter().position(|(name, _)| is_spelling_of("functionCall", name)).unwrap_or(0);
    let part = |(at, field): (usize, &(&str, &RawValue))| {
        let mut fields = vec![written(*field)?];
        if at == main {
            fields.append(&mut beside);
        }
        RawValue::from_string(format!("{{{}}}", fields.join(","))).ok()
    };
    data.iter().enumerate().map(part).collect()
}

fn written((name, raw): (&str, &RawValue)) -> Option<String> {
    Some(format!("{}:{raw}", serde_json::to_string(name).ok()?))
}

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
    match Fields::of(raw) {
        Some(fields) => fields_part(fields, raw, origin, provider, names),
        None => other_part(raw, provider),
    }
}

/// What is no object, in the place of a part.
fn other_part(raw: &RawValue, provider: &str) -> Option<Chunk> {
    string(raw).map(Chunk::text).or_else(|| opaque("part", raw, provider))
}

fn fields_part(
    mut fields: Fields<'_>,
    raw: &RawValue,
    origin: Origin,
    provider: &str,
    names: &mut Names,
) -> Option<Chunk> {
    let thought = take(&mut fields, "thought").is_some_and(|raw| raw.get() == "true");
    let signature = take(&mut fields, "thoughtSignature").and_then(string);
    let signature = signature.filter(|signature| !signature.is_empty() && signature != NO_SIGNATURE);
    let kind = fields.names().next().unwrap_or("part").to_owned();
    let read = body(&mut fields, thought, signature.clone(), names);
    let Some(Read { mut chunk, is_whole }) = read else { return opaque(&kind, raw, provider) };
    // Only texts have a place for it.
    let is_thought = thought && !matches!(chunk.body, Body::Thinking { .. });
    let says_more = !is_whole || is_thought || fields.present().next().is_some();
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
        *arguments = json::compact(arguments).into_owned();
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
        let is_whole = !answer.names().any(|given| BESIDE_RESPONSE.iter().any(|name| is_spelling_of(name, given)));
        return Some(Read { chunk: response(answer, names), is_whole });
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

fn opaque(kind: &str, raw: &RawValue, provider: &str) -> Option<Chunk> {
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
    // Without a name it is not known which call it answers: the order shows it.
    let given = fields.string("id");
    let tool_call_id = if name.is_empty() { given.unwrap_or_default() } else { names.id(given, &name) };
    let (output, is_error) = fields.take("response").map_or_else(|| (Output::Text(String::new()), None), output);
    let body = Body::ToolResult { tool_call_id, name: Some(name), output, is_error };
    Chunk { extra: fields.extra(Owner::Chunk), ..body.into() }
}

/// The output that would be written so; any other object is a JSON value. What is no object is its `result`.
fn output(raw: &RawValue) -> (Output, Option<bool>) {
    let is_given = raw.get().starts_with('{') || raw.get() == "null";
    let wrapped = (!is_given).then(|| format!("{{\"result\":{}}}", json::compact(raw.get())));
    let wrapped = wrapped.and_then(|object| RawValue::from_string(object).ok());
    let raw = wrapped.as_deref().unwrap_or(raw);
    // With another field beside it, it would be written otherwise.
    let fields = Fields::of(raw).filter(|fields| fields.names().count() == 1);
    let of = |key: &str| {
        let texts = texts(fields.as_ref()?.peek(key)?)?;
        let written = serde_json::to_string(&serde_json::json!({ key: texts.value() })).unwrap_or_default();
        (written == raw.get()).then_some(texts)
    };
    match (of("result"), of("error")) {
        (Some(Texts::One(text)), _) if plain(&text).is_none() => (Output::Text(text), None),
        (Some(Texts::Several(texts)), _) => (text_parts(texts), None),
        (None, Some(Texts::One(text))) if !text.is_empty() => (Output::Text(text), Some(true)),
        (None, Some(Texts::Several(texts))) if texts.iter().any(|text| !text.is_empty()) => {
            (text_parts(texts), Some(true))
        }
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

fn text_parts(texts: Vec<String>) -> Output {
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
