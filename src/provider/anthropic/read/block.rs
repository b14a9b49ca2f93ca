//! One block of a message, of a request as of an answer.

use serde_json::value::RawValue;

use super::native::native;
use super::result;
use super::source;
use crate::model::{Body, Chunk};
use crate::provider::read::fields::{Fields, Owner, is_empty, json, string};
use crate::provider::read::parsed::opaque;

/// Reads the fields of one type of block. `None` if they are not what the type has, or more than a chunk has a place for.
type Read = fn(&mut Fields<'_>, &RawValue) -> Option<Chunk>;

/// Types of blocks that have a chunk of their own. Source: `ContentBlockParam` of the official Python SDK (anthropic
/// 2.11.0). The tools that the provider runs are its own: their blocks are opaque.
const BLOCKS: &[(&str, Read)] = &[
    ("text", read_text),
    ("thinking", read_thinking),
    ("redacted_thinking", |fields, _| {
        let redacted = Some(fields.string("data")?);
        Some(Body::Thinking { text: String::new(), signature: None, redacted }.into())
    }),
    ("tool_use", read_call),
    ("tool_result", result::read),
    ("image", |fields, _| Some(Body::Image(source::image(fields)?).into())),
    ("document", |fields, _| Some(Body::File(source::file(fields)?).into())),
];

/// A block as a chunk. What is not known becomes an opaque one of this provider.
pub(crate) fn block(raw: &RawValue, provider: &str) -> Option<Chunk> {
    if let Some(text) = string(raw) {
        return Some(Chunk::text(text));
    }
    let mut fields = Fields::of(raw).unwrap_or_default();
    let kind = fields.string("type").unwrap_or_default();
    let read = BLOCKS.iter().find(|(name, _)| *name == kind).map(|(_, read)| read);
    if let Some(mut chunk) = read.and_then(|read| read(&mut fields, raw)) {
        fields.extend(Owner::Chunk, &mut chunk.extra);
        return Some(chunk);
    }
    opaque(raw, kind, provider)
}

fn read_text(fields: &mut Fields<'_>, raw: &RawValue) -> Option<Chunk> {
    let text = fields.text("text")?;
    let citations = fields.take("citations").filter(|citations| !is_empty(citations)).and_then(json);
    let native = citations.as_ref().and_then(|_| native(raw));
    Some(Chunk { native, ..Body::Text { text, annotations: citations }.into() })
}

fn read_thinking(fields: &mut Fields<'_>, _: &RawValue) -> Option<Chunk> {
    let text = fields.text("thinking")?;
    let signature = fields.string("signature").filter(|signature| !signature.is_empty());
    Some(Body::Thinking { text, signature, redacted: None }.into())
}

/// No field of the chunk has who called.
fn read_call(fields: &mut Fields<'_>, raw: &RawValue) -> Option<Chunk> {
    let id = fields.text("id").unwrap_or_default();
    let name = fields.text("name").unwrap_or_default();
    let input = fields.take("input").map(|input| string(input).unwrap_or_else(|| input.get().to_owned()));
    let beside = [fields.take("caller"), fields.take("toolset_name")];
    let native = beside.iter().flatten().next().and_then(|_| native(raw));
    Some(Chunk { native, ..Chunk::tool_call(id, name, input.unwrap_or_default()) })
}
