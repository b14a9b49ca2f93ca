//! The result of a tool.

use serde_json::value::RawValue;

use super::native::native;
use super::source;
use crate::model::{Body, Chunk, Output, Part, PartBody};
use crate::provider::read::fields::{Fields, Owner, array, json, string};

/// A result whose parts are not all of a kind that others know stays the provider's block, too.
pub(crate) fn read(fields: &mut Fields<'_>, raw: &RawValue) -> Option<Chunk> {
    let tool_call_id = fields.text("tool_use_id").unwrap_or_default();
    let failed = fields.take("is_error");
    let is_error = failed.and_then(|failed| serde_json::from_str(failed.get()).ok());
    let (output, known) = match fields.take("content") {
        None => (Output::Text(String::new()), true),
        Some(content) => match (string(content), array(content)) {
            (Some(text), _) => (Output::Text(text), true),
            (None, Some(parts)) => {
                let parts: Vec<(Part, bool)> = parts.into_iter().filter_map(part).collect();
                let known = parts.iter().all(|(_, known)| *known);
                (Output::Parts(parts.into_iter().map(|(part, _)| part).collect()), known)
            }
            (None, None) => (Output::Parts(vec![PartBody::Json { json: json(content)? }.into()]), true),
        },
    };
    let native = if known { None } else { native(raw) };
    let body = Body::ToolResult { tool_call_id, name: None, output, is_error };
    Some(Chunk { native, ..body.into() })
}

/// A part, and whether it is of a kind that others know. Any other is its JSON.
fn part(raw: &RawValue) -> Option<(Part, bool)> {
    let mut fields = Fields::of(raw).unwrap_or_default();
    let body = match fields.string("type").as_deref() {
        Some("text") => fields.string("text").map(|text| PartBody::Text { text }),
        Some("image") => source::image(&mut fields).map(PartBody::Image),
        Some("document") => source::file(&mut fields).map(PartBody::File),
        _ => string(raw).map(|text| PartBody::Text { text }),
    };
    let Some(body) = body else { return Some((PartBody::Json { json: json(raw)? }.into(), false)) };
    Some((Part { body, extra: fields.extra(Owner::Chunk) }, true))
}
