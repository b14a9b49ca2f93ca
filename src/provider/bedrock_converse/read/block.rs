//! One block of a message, of a request as of an answer.

use serde_json::value::RawValue;

use super::media;
use super::result::result;
use crate::model::{Body, Chunk, Native};
use crate::provider::bedrock_converse::manner::{NAME, PROVIDER};
use crate::provider::read::fields::{Fields, array, compact, json, string};
use crate::provider::read::parsed::opaque;

/// Reads the value of a block's name. Gives whether that is all, so that a chunk gives the block back; `None` if it is
/// not what the name says, or nothing that a chunk has a place for.
type Read = fn(&RawValue) -> Option<(Body, bool)>;

/// The kinds of blocks that have a chunk of their own. Source: botocore 1.44.5, `ContentBlock`.
const BLOCKS: &[(&str, Read)] = &[
    ("text", |raw| Some((Body::Text { text: string(raw)?, annotations: None }, true))),
    ("toolUse", |raw| call(Fields::of(raw)?)),
    ("reasoningContent", |raw| reasoning(Fields::of(raw)?)),
    ("citationsContent", |raw| cited(Fields::of(raw)?)),
    ("toolResult", |raw| whole(raw, |fields| Some(result(fields)))),
    ("image", |raw| whole(raw, |fields| media::image(fields).map(|(image, all)| (Body::Image(image), all)))),
    ("document", |raw| whole(raw, |fields| media::document(fields).map(|(file, all)| (Body::File(file), all)))),
    ("video", |raw| whole(raw, |fields| media::video(fields).map(|file| (Body::File(file), false)))),
    ("audio", |raw| whole(raw, |fields| media::audio(fields).map(|audio| (Body::Audio(audio), false)))),
];

/// A block as a chunk; it is kept as it came where the chunk would not give it back. What is not known becomes an opaque
/// one of this provider.
pub(crate) fn block(raw: &RawValue) -> Option<Chunk> {
    if let Some(text) = string(raw) {
        return Some(Chunk::text(text));
    }
    let fields = Fields::of(raw).unwrap_or_default();
    let kind = fields.names().find(|name| fields.peek(name).is_some()).unwrap_or("block").to_owned();
    let known = BLOCKS.iter().find_map(|(name, read)| Some((fields.peek(name)?, read)));
    let Some((body, all)) = known.and_then(|(value, read)| read(value)) else {
        return opaque(raw, kind, PROVIDER);
    };
    let is_alone = fields.names().count() == 1;
    let native = if all && is_alone { None } else { native(raw) };
    Some(Chunk { native, ..body.into() })
}

/// The block, to be given back as it came.
pub(crate) fn native(raw: &RawValue) -> Option<Native> {
    compact(raw).map(|json| Native { wire: NAME.to_owned(), json })
}

/// Reads an object, and gives whether nothing of it is left.
fn whole(raw: &RawValue, read: impl Fn(&mut Fields<'_>) -> Option<(Body, bool)>) -> Option<(Body, bool)> {
    let mut fields = Fields::of(raw)?;
    let (body, all) = read(&mut fields)?;
    Some((body, all && fields.names().next().is_none()))
}

fn call(mut call: Fields<'_>) -> Option<(Body, bool)> {
    let id = call.text("toolUseId").unwrap_or_default();
    let name = call.text("name").unwrap_or_default();
    let input = call.take("input");
    let all = input.is_some_and(|input| input.get().starts_with('{'));
    let arguments = input.map(|input| string(input).unwrap_or_else(|| input.get().to_owned())).unwrap_or_default();
    let server = call.peek("type").is_some_and(|kind| kind.get() == "\"server_tool_use\"");
    let is_known = call.names().next().is_none();
    Some((Body::ToolCall { id, name, arguments, signature: None, server }, all && is_known))
}

/// What the model thought. In a request nobody says whose it is: it is the provider's as long as it is kept as it came.
fn reasoning(mut reasoning: Fields<'_>) -> Option<(Body, bool)> {
    if let Some(redacted) = reasoning.string("redactedContent") {
        return Some((Body::Thinking { text: String::new(), signature: None, redacted: Some(redacted) }, false));
    }
    let mut said = reasoning.object("reasoningText")?;
    let text = said.string("text")?;
    let signature = said.string("signature").filter(|signature| !signature.is_empty());
    Some((Body::Thinking { text, signature, redacted: None }, false))
}

/// A text, and what it cites.
fn cited(mut cited: Fields<'_>) -> Option<(Body, bool)> {
    let content = cited.take("content").and_then(array)?;
    let texts: Option<Vec<String>> = content.into_iter().map(|part| Fields::of(part)?.string("text")).collect();
    let annotations = cited.take("citations").and_then(json);
    Some((Body::Text { text: texts?.concat(), annotations }, false))
}
