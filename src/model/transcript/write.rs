use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::line::id_field;
use crate::model::{Audio, Body, Chunk, Extra, File, FinishReason, Image, Message, Native, Output, Part, PartBody};

/// The message as text.
pub(super) fn to_text(message: &Message) -> String {
    // Serialising to a String fails only if a Serialize implementation fails, and those below do not.
    serde_json::to_string(message).unwrap_or_default()
}

/// Writes a message, in the order of the format's description.
pub(super) fn message<S: Serializer>(
    conversation: Option<&str>,
    message: &Message,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    some(&mut map, "conversation", conversation)?;
    map.serialize_entry("role", message.role.as_str())?;
    map.serialize_entry("chunks", &message.chunks)?;
    let metadata = &message.metadata;
    some(&mut map, "finish_reason", message.finish_reason.as_ref().map(FinishReason::as_str))?;
    some(&mut map, "model", metadata.model.as_ref())?;
    some(&mut map, "provider", metadata.provider.as_ref())?;
    some(&mut map, "created_at", metadata.created_at.map(|at| at.to_string()))?;
    some(&mut map, "turn_id", metadata.turn_id.as_ref())?;
    some(&mut map, "step_id", metadata.step_id.as_ref())?;
    some(&mut map, "usage", message.usage.as_ref())?;
    some(&mut map, "id", metadata.id.as_ref())?;
    some(&mut map, "native", metadata.native.as_ref())?;
    extra(&mut map, &metadata.extra)?;
    map.end()
}

impl Serialize for Chunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.body.kind())?;
        match &self.body {
            Body::Text { text, annotations } => {
                map.serialize_entry("text", text)?;
                some(&mut map, "annotations", annotations.as_ref())?;
            }
            Body::Thinking { text, signature, redacted } => {
                map.serialize_entry("text", text)?;
                some(&mut map, "signature", signature.as_ref())?;
                some(&mut map, "redacted", redacted.as_ref())?;
            }
            Body::Refusal { text } => map.serialize_entry("text", text)?,
            Body::ToolCall { id, name, arguments, signature, server } => {
                map.serialize_entry("id", id)?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("arguments", arguments)?;
                some(&mut map, "signature", signature.as_ref())?;
                some(&mut map, "server", server.then_some(true))?;
            }
            Body::ToolResult { tool_call_id, name, output, is_error } => {
                map.serialize_entry("tool_call_id", tool_call_id)?;
                some(&mut map, "name", name.as_ref())?;
                match output {
                    Output::Text(text) => map.serialize_entry("content", text)?,
                    Output::Parts(parts) => map.serialize_entry("content", parts)?,
                }
                some(&mut map, "is_error", *is_error)?;
            }
            Body::Image(value) => image(&mut map, value)?,
            Body::Audio(value) => audio(&mut map, value)?,
            Body::File(value) => file(&mut map, value)?,
            Body::Error { message, code } => {
                map.serialize_entry("message", message)?;
                some(&mut map, "code", code.as_ref())?;
            }
            Body::Opaque { provider, kind, json } => {
                map.serialize_entry("provider", provider)?;
                map.serialize_entry("kind", kind)?;
                map.serialize_entry("json", json)?;
            }
            Body::Unknown { .. } => {}
        }
        some(&mut map, id_field(&self.body), self.id.as_ref())?;
        some(&mut map, "native", self.native.as_ref())?;
        extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.body.kind())?;
        match &self.body {
            PartBody::Text { text } => map.serialize_entry("text", text)?,
            PartBody::Image(value) => image(&mut map, value)?,
            PartBody::Audio(value) => audio(&mut map, value)?,
            PartBody::File(value) => file(&mut map, value)?,
            PartBody::Json { json } => map.serialize_entry("json", json)?,
            PartBody::Unknown { .. } => {}
        }
        extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl Serialize for Native {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("wire", &self.wire)?;
        map.serialize_entry("json", &self.json)?;
        map.end()
    }
}

fn image<M: SerializeMap>(map: &mut M, image: &Image) -> Result<(), M::Error> {
    map.serialize_entry("url", &image.url)?;
    some(map, "mime_type", image.mime_type.as_ref())
}

fn audio<M: SerializeMap>(map: &mut M, audio: &Audio) -> Result<(), M::Error> {
    some(map, "url", audio.url.as_ref())?;
    some(map, "data", audio.data.as_ref())?;
    some(map, "mime_type", audio.mime_type.as_ref())?;
    some(map, "transcript", audio.transcript.as_ref())
}

fn file<M: SerializeMap>(map: &mut M, file: &File) -> Result<(), M::Error> {
    some(map, "name", file.name.as_ref())?;
    some(map, "url", file.url.as_ref())?;
    some(map, "data", file.data.as_ref())?;
    some(map, "mime_type", file.mime_type.as_ref())
}

fn some<M: SerializeMap>(map: &mut M, name: &str, value: Option<impl Serialize>) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(name, &value),
        None => Ok(()),
    }
}

fn extra<M: SerializeMap>(map: &mut M, extra: &Extra) -> Result<(), M::Error> {
    extra.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
}
