use crate::error::{Error, Result};
use crate::json;
use crate::model::{
    Audio, Body, Chunk, Extra, File, Image, Json, Message, Metadata, Name, Native, Output, Part, PartBody,
};

/// The largest sizes that the store takes. They count what is stored: a provider's own block and unknown fields too.
#[derive(Debug)]
pub struct Limits;

impl Limits {
    /// Bytes of one chunk, of what is known of one message beside its chunks, and of a summary: 64 MiB.
    pub const CHUNK_BYTES: usize = 64 * 1024 * 1024;
    /// Bytes of one append, as it is stored: 128 MiB. An entry takes some 10 to 50 bytes beside its content.
    pub const APPEND_BYTES: usize = 128 * 1024 * 1024;
    /// Messages of one append.
    pub const APPEND_MESSAGES: usize = 10_000;
    /// Bytes of a key, a title, a tag: 1 KiB.
    pub const NAME_BYTES: usize = 1024;
    /// Parts of one tool result: in memory each takes more than its bytes.
    pub const RESULT_PARTS: usize = 100_000;
    /// Bytes of a conversation's metadata: 64 KiB.
    pub const METADATA_BYTES: usize = 64 * 1024;
    /// Tags of one conversation.
    pub const TAGS: usize = 32;
}

fn over(what: &'static str, actual: usize, limit: usize, unit: &str) -> Error {
    Error::LimitExceeded { what, actual: format!("{actual} {unit}"), limit: format!("{limit} {unit}") }
}

pub(crate) fn check_name(what: &'static str, name: &str) -> Result<()> {
    if name.len() > Limits::NAME_BYTES { Err(over(what, name.len(), Limits::NAME_BYTES, "bytes")) } else { Ok(()) }
}

pub(crate) fn check_key(name: &Name) -> Result<()> {
    name.key().map_or(Ok(()), |key| check_name("a conversation's key", key))?;
    name.owner().map_or(Ok(()), |owner| check_name("an owner", owner))
}

/// The bytes of the messages' content, if all is within the limits. What is encoded has to be checked once more.
pub(crate) fn check_messages(messages: &[Message]) -> Result<usize> {
    if messages.is_empty() {
        return Err(Error::InvalidInput("an append needs at least one message".to_owned()));
    }
    if messages.len() > Limits::APPEND_MESSAGES {
        return Err(over("an append", messages.len(), Limits::APPEND_MESSAGES, "messages"));
    }
    let mut total = 0;
    for message in messages {
        if u32::try_from(message.chunks.len()).is_err() {
            return Err(over("a message", message.chunks.len(), u32::MAX as usize, "chunks"));
        }
        total += check_known(message)?;
        for chunk in &message.chunks {
            total += check_chunk(chunk)?;
        }
        check_append(total)?;
    }
    Ok(total)
}

pub(crate) fn check_tags(tags: &[String]) -> Result<()> {
    if tags.len() > Limits::TAGS {
        return Err(over("a conversation", tags.len(), Limits::TAGS, "tags"));
    }
    for tag in tags {
        check_name("a tag", tag)?;
        if tag.trim().is_empty() {
            return Err(Error::InvalidInput("a tag needs a letter or a sign".to_owned()));
        }
    }
    Ok(())
}

/// Fails on metadata that is no object, or too large.
pub(crate) fn check_metadata(metadata: &Json) -> Result<()> {
    let size = metadata.as_str().len();
    if size > Limits::METADATA_BYTES {
        return Err(over("a conversation's metadata", size, Limits::METADATA_BYTES, "bytes"));
    }
    if !json::is_object(metadata.as_str()) {
        return Err(Error::InvalidInput("a conversation's metadata must be a JSON object".to_owned()));
    }
    Ok(())
}

pub(crate) fn check_summary(summary: &str) -> Result<()> {
    if summary.trim().is_empty() {
        return Err(Error::InvalidInput("the summary is empty".to_owned()));
    }
    if summary.len() > Limits::CHUNK_BYTES {
        return Err(over("a summary", summary.len(), Limits::CHUNK_BYTES, "bytes"));
    }
    Ok(())
}

pub(crate) fn check_append(bytes: usize) -> Result<()> {
    if bytes > Limits::APPEND_BYTES { Err(over("an append", bytes, Limits::APPEND_BYTES, "bytes")) } else { Ok(()) }
}

/// The bytes of what is known of a message beside its chunks, if they are within the limit.
pub(crate) fn check_known(message: &Message) -> Result<usize> {
    let size = known_bytes(message);
    if size > Limits::CHUNK_BYTES {
        return Err(over("what is known of a message", size, Limits::CHUNK_BYTES, "bytes"));
    }
    Ok(size)
}

/// The bytes of a message's content.
pub(crate) fn message_bytes(message: &Message) -> usize {
    known_bytes(message) + message.chunks.iter().map(chunk_bytes).sum::<usize>()
}

/// The chunk's size in bytes, if it is within the limit.
pub(crate) fn check_chunk(chunk: &Chunk) -> Result<usize> {
    if let Body::ToolResult { output: Output::Parts(parts), .. } = &chunk.body
        && parts.len() > Limits::RESULT_PARTS
    {
        return Err(over("a tool result", parts.len(), Limits::RESULT_PARTS, "parts"));
    }
    let size = chunk_bytes(chunk);
    if size > Limits::CHUNK_BYTES { Err(over("a chunk", size, Limits::CHUNK_BYTES, "bytes")) } else { Ok(size) }
}

fn known_bytes(message: &Message) -> usize {
    let Metadata { model, provider, created_at: _, turn_id, step_id, id, native, extra } = &message.metadata;
    let texts = [model, provider, turn_id, step_id, id].into_iter().map(some).sum::<usize>();
    let finish_reason = message.finish_reason.as_ref().map_or(0, |reason| reason.as_str().len());
    let usage = message.usage.as_ref().map_or(0, |json| json.as_str().len());
    texts + finish_reason + usage + native_bytes(native.as_ref()) + extra_bytes(extra)
}

fn chunk_bytes(chunk: &Chunk) -> usize {
    let Chunk { body, id, native, extra } = chunk;
    body_bytes(body) + some(id) + native_bytes(native.as_ref()) + extra_bytes(extra)
}

fn body_bytes(body: &Body) -> usize {
    match body {
        Body::Text { text, annotations } => text.len() + annotations.as_ref().map_or(0, |json| json.as_str().len()),
        Body::Thinking { text, signature, redacted } => text.len() + some(signature) + some(redacted),
        Body::Refusal { text } => text.len(),
        Body::ToolCall { id, name, arguments, signature, server: _ } => {
            id.len() + name.len() + arguments.len() + some(signature)
        }
        Body::ToolResult { tool_call_id, name, output, is_error: _ } => {
            let output = match output {
                Output::Text(text) => text.len(),
                Output::Parts(parts) => parts.iter().map(part_bytes).sum(),
            };
            tool_call_id.len() + some(name) + output
        }
        Body::Image(value) => image_bytes(value),
        Body::Audio(value) => audio_bytes(value),
        Body::File(value) => file_bytes(value),
        Body::Error { message, code } => message.len() + some(code),
        Body::Opaque { provider, kind, json } => provider.len() + kind.len() + json.as_str().len(),
        Body::Unknown { kind } => kind.len(),
    }
}

fn part_bytes(part: &Part) -> usize {
    let body = match &part.body {
        PartBody::Text { text } => text.len(),
        PartBody::Image(value) => image_bytes(value),
        PartBody::Audio(value) => audio_bytes(value),
        PartBody::File(value) => file_bytes(value),
        PartBody::Json { json } => json.as_str().len(),
        PartBody::Unknown { kind } => kind.len(),
    };
    body + extra_bytes(&part.extra)
}

fn some(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

fn image_bytes(image: &Image) -> usize {
    image.url.len() + some(&image.mime_type)
}

fn audio_bytes(audio: &Audio) -> usize {
    some(&audio.url) + some(&audio.data) + some(&audio.mime_type) + some(&audio.transcript)
}

fn file_bytes(file: &File) -> usize {
    some(&file.name) + some(&file.url) + some(&file.data) + some(&file.mime_type)
}

fn native_bytes(native: Option<&Native>) -> usize {
    native.map_or(0, |native| native.wire.len() + native.json.as_str().len())
}

/// Unknown fields are stored as one JSON object: names are escaped in it.
fn extra_bytes(extra: &Extra) -> usize {
    let name_bytes = |name: &str| serde_json::to_string(name).map_or(name.len(), |name| name.len());
    extra.iter().map(|(name, json)| name_bytes(name) + json.as_str().len() + ",:".len()).sum()
}
