//! What a tool gave back.

use serde_json::value::RawValue;

use super::media;
use crate::model::{Body, Output, Part, PartBody};
use crate::provider::read::fields::{Fields, json, string};

/// The result, and whether a chunk says all of it.
pub(crate) fn result(fields: &mut Fields<'_>) -> (Body, bool) {
    let tool_call_id = fields.text("toolUseId").unwrap_or_default();
    let status = fields.string("status");
    let is_error = match status.as_deref() {
        Some("error") => Some(true),
        Some("success") => Some(false),
        _ => None,
    };
    let given = fields.array("content");
    let mut whole = given.is_some() && status.is_some() == is_error.is_some();
    let mut parts = Vec::new();
    for raw in given.unwrap_or_default() {
        let (read, is_whole) = part(raw);
        parts.extend(read);
        whole &= is_whole;
    }
    let output = match parts.as_slice() {
        [Part { body: PartBody::Text { text }, .. }] => Output::Text(text.clone()),
        _ => Output::Parts(parts),
    };
    (Body::ToolResult { tool_call_id, name: None, output, is_error }, whole && fields.names().next().is_none())
}

fn part(raw: &RawValue) -> (Option<Part>, bool) {
    if let Some(text) = string(raw) {
        return (Some(PartBody::Text { text }.into()), false);
    }
    let read = Fields::of(raw).and_then(|mut fields| {
        let read = body(&mut fields)?;
        Some((read.0, read.1 && fields.names().next().is_none()))
    });
    match read {
        Some((body, whole)) => (Some(body.into()), whole),
        None => (json(raw).map(|json| PartBody::Json { json }.into()), false),
    }
}

fn body(fields: &mut Fields<'_>) -> Option<(PartBody, bool)> {
    if let Some(text) = fields.string("text") {
        return Some((PartBody::Text { text }, true));
    }
    if let Some(raw) = fields.take("json") {
        return Some((PartBody::Json { json: json(raw)? }, true));
    }
    if let Some(mut image) = fields.object("image") {
        let (read, whole) = media::image(&mut image)?;
        return Some((PartBody::Image(read), whole && image.names().next().is_none()));
    }
    if let Some(mut document) = fields.object("document") {
        // The name is a new one: it is unique in the request.
        let (read, _) = media::document(&mut document)?;
        return Some((PartBody::File(read), false));
    }
    let mut video = fields.object("video")?;
    Some((PartBody::File(media::video(&mut video)?), false))
}
