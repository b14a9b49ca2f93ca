//! An item of the model's, whole: as a request or an answer holds it.

use serde_json::value::RawValue;

use crate::json::fields::{Fields, is_empty, string, text};
use crate::model::extra::compact;
use crate::model::{Body, Chunk, Native};
use crate::provider::openai_responses::manner::{NAME, PROVIDER};

/// What comes between the paragraphs of a summary.
pub(crate) const PARAGRAPH: &str = "\n\n";

/// Where an item comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An answer: the message says who made it.
    Answer {
        /// Whether the server has what the item leaves out: it did not say that it stores nothing.
        kept: bool,
        /// Whether the item before it is reasoning that goes back by its id alone, with the item after it.
        after_id: bool,
    },
    /// A request. Nobody says who made its items: they are the wire's own as long as they are kept as they are.
    Request,
}

/// Fields that an item's chunk has a place for.
const OF_A_CALL: &[&str] = &["type", "call_id", "name", "arguments"];
const OF_A_MESSAGE: &[&str] = &["type", "role", "content"];
const OF_REASONING: &[&str] = &["type", "summary", "content", "encrypted_content"];
const OF_A_PART: &[&str] = &["type", "text", "refusal"];
/// What an answer's items have and need not keep: ids of what is stored elsewhere, and that they are whole.
const OF_AN_ANSWER: &[&str] = &["id", "status"];

/// The item as chunks; it is kept as it came where they would not give it back. What is not known becomes an opaque one.
/// `parts` gets the part of the item that each chunk was read from: `.content[0]`, or nothing for the whole.
pub(crate) fn said(raw: &RawValue, origin: Origin, parts: &mut Vec<String>) -> Vec<Chunk> {
    let chunks = read(raw, origin, parts);
    parts.resize(chunks.len(), String::new());
    chunks
}

fn read(raw: &RawValue, origin: Origin, parts: &mut Vec<String>) -> Vec<Chunk> {
    let Some(fields) = Fields::of(raw) else { return opaque("item", raw).into_iter().collect() };
    let kind = kind(&fields);
    let chunks = match kind.as_str() {
        "message" => message(fields, raw, origin, parts),
        "reasoning" => Some(vec![reasoning(fields, raw, origin)]),
        "function_call" | "custom_tool_call" => call(fields, raw, origin).map(|chunk| vec![chunk]),
        _ => None,
    };
    chunks.unwrap_or_else(|| opaque(&kind, raw).into_iter().collect())
}

/// The type of an item. Messages may leave it out.
pub(crate) fn kind(fields: &Fields<'_>) -> String {
    match fields.peek("type").map(text) {
        None if fields.peek("role").is_some() => "message".to_owned(),
        kind => kind.unwrap_or_else(|| "item".to_owned()),
    }
}

pub(crate) fn opaque(kind: &str, raw: &RawValue) -> Option<Chunk> {
    Some(Body::Opaque { provider: PROVIDER.to_owned(), kind: kind.to_owned(), json: compact(raw)? }.into())
}

/// Items that the caller gives, beside the outputs of calls.
pub(crate) const CALLERS: &[&str] =
    &["item_reference", "additional_tools", "compaction_trigger", "mcp_approval_response"];

/// Whether the caller gives an item of this type. What the service's own tools gave is the model's turn.
pub(crate) fn is_given(kind: &str, by_client: bool) -> bool {
    match kind {
        "program_output" => false,
        "tool_search_output" => by_client,
        kind => CALLERS.contains(&kind) || kind.ends_with("_output"),
    }
}

/// Whether this is the type of a part of a message, known or not; else it is an item's.
pub(crate) fn is_part(kind: &str) -> bool {
    ["input_", "output_"].iter().any(|begins| kind.starts_with(begins))
}

pub(crate) fn native(raw: &RawValue) -> Option<Native> {
    Some(Native { wire: NAME.to_owned(), json: compact(raw)? })
}

/// Whether an item or part says more than its chunk does.
pub(crate) fn says_more(fields: &Fields<'_>, known: &[&str], origin: Origin) -> bool {
    fields.names().any(|name| {
        let is_known = known.contains(&name) || origin != Origin::Request && OF_AN_ANSWER.contains(&name);
        !is_known && fields.peek(name).is_some_and(|raw| origin == Origin::Request || !is_empty(raw))
    })
}

fn message(mut fields: Fields<'_>, raw: &RawValue, origin: Origin, places: &mut Vec<String>) -> Option<Vec<Chunk>> {
    let more = says_more(&fields, OF_A_MESSAGE, origin) || matches!(origin, Origin::Answer { after_id: true, .. });
    let id = fields.string("id");
    if let Some(text) = fields.string("content") {
        let native = if more { native(raw) } else { None };
        places.push(".content".to_owned());
        return Some(vec![Chunk { id, native, ..Chunk::text(text) }]);
    }
    let parts = fields.array("content")?;
    let mut chunks = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        if let Some(chunk) = said_part(part, origin) {
            chunks.push(chunk);
            places.push(format!(".content[{at}]"));
        }
    }
    match chunks.as_mut_slice() {
        // A text without words is no text to others.
        [chunk] if more || chunk.native.is_some() || is_wordless(&chunk.body) => chunk.native = native(raw),
        // Of several parts the first has the item.
        [first, _, ..] if more => first.native = native(raw),
        _ => {}
    }
    chunks.iter_mut().for_each(|chunk| chunk.id.clone_from(&id));
    Some(chunks)
}

fn is_wordless(body: &Body) -> bool {
    matches!(body, Body::Text { text, .. } | Body::Refusal { text } if text.is_empty())
}

fn said_part(raw: &RawValue, origin: Origin) -> Option<Chunk> {
    let Some(mut fields) = Fields::of(raw) else {
        return string(raw).map(Chunk::text).or_else(|| opaque("part", raw));
    };
    let more = says_more(&fields, OF_A_PART, origin);
    let native = if more { native(raw) } else { None };
    let kind = fields.text("type").unwrap_or_default();
    let body = match kind.as_str() {
        "refusal" => Body::Refusal { text: fields.text("refusal")? },
        "output_text" | "text" | "input_text" => {
            let annotations = fields.peek("annotations").filter(|raw| raw.get().starts_with('[') && !is_empty(raw));
            Body::Text { text: fields.text("text")?, annotations: annotations.and_then(compact) }
        }
        _ => return opaque(&kind, raw),
    };
    Some(Chunk { native, ..body.into() })
}

/// Whether this is reasoning that only the server has: the item says no more of it than its id.
pub(crate) fn is_by_id(fields: &Fields<'_>) -> bool {
    let has = |name: &str| fields.peek(name).is_some_and(|raw| !is_empty(raw));
    kind(fields) == "reasoning" && has("id") && !has("encrypted_content") && !has("content")
}

fn reasoning(mut fields: Fields<'_>, raw: &RawValue, origin: Origin) -> Chunk {
    let (more, by_id) = (says_more(&fields, OF_REASONING, origin), is_by_id(&fields));
    let id = fields.string("id");
    let mut texts = |name: &str| {
        let parts = fields.array(name).unwrap_or_default().into_iter();
        let text = |raw| Fields::of(raw).and_then(|mut part| part.string("text"));
        parts.filter_map(text).collect::<Vec<_>>()
    };
    let (summary, content) = (texts("summary"), texts("content"));
    let signature = fields.string("encrypted_content").filter(|data| !data.is_empty());
    // One paragraph of a summary is what a chunk gives back.
    let is_plain = match origin {
        Origin::Answer { kept, .. } => !more && summary.len() < 2 && content.is_empty() && !(kept && by_id),
        Origin::Request => false,
    };
    let native = if is_plain { None } else { native(raw) };
    let text = if summary.is_empty() { content } else { summary }.join(PARAGRAPH);
    Chunk { id, native, ..Body::Thinking { text, signature, redacted: None }.into() }
}

/// `None` if it has no name.
fn call(mut fields: Fields<'_>, raw: &RawValue, origin: Origin) -> Option<Chunk> {
    let is_custom = fields.peek("input").is_some();
    let native = if is_custom || says_more(&fields, OF_A_CALL, origin) { native(raw) } else { None };
    let id = fields.string("id");
    let name = fields.text("name")?;
    let arguments = fields.text("arguments").or_else(|| fields.text("input")).unwrap_or_default();
    let call_id = fields.text("call_id").unwrap_or_default();
    Some(Chunk { id, native, ..Chunk::tool_call(call_id, name, arguments) })
}
