use crate::error::{Error, Result};
use crate::model::{Body, Chunk, Message, Name, Output, PartBody};

/// The largest sizes that the store takes.
#[derive(Debug)]
pub struct Limits;

impl Limits {
    /// Bytes of one chunk, all its texts together, and of a summary: 64 MiB.
    pub const CHUNK_BYTES: usize = 64 * 1024 * 1024;
    /// Bytes of one append: 128 MiB.
    pub const APPEND_BYTES: usize = 128 * 1024 * 1024;
    /// Messages of one append.
    pub const APPEND_MESSAGES: usize = 10_000;
    /// Bytes of a key, a title, a tag: 1 KiB.
    pub const NAME_BYTES: usize = 1024;
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

/// The bytes of the messages' chunks, if all is within the limits.
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
        for chunk in &message.chunks {
            total += check_chunk(chunk)?;
        }
    }
    check_append(total)?;
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

pub(crate) fn check_summary(summary: &str) -> Result<()> {
    if summary.trim().is_empty() {
        return Err(Error::InvalidInput("a summary needs words".to_owned()));
    }
    if summary.len() > Limits::CHUNK_BYTES {
        return Err(over("a summary", summary.len(), Limits::CHUNK_BYTES, "bytes"));
    }
    Ok(())
}

pub(crate) fn check_append(bytes: usize) -> Result<()> {
    if bytes > Limits::APPEND_BYTES { Err(over("an append", bytes, Limits::APPEND_BYTES, "bytes")) } else { Ok(()) }
}

/// The chunk's size in bytes, if it is within the limit.
pub(crate) fn check_chunk(chunk: &Chunk) -> Result<usize> {
    let size = chunk_bytes(chunk);
    if size > Limits::CHUNK_BYTES { Err(over("a chunk", size, Limits::CHUNK_BYTES, "bytes")) } else { Ok(size) }
}

/// The bytes of a chunk's texts.
pub(crate) fn chunk_bytes(chunk: &Chunk) -> usize {
    let some = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let image = |image: &crate::model::Image| image.url.len() + some(&image.mime_type);
    let audio = |audio: &crate::model::Audio| {
        some(&audio.url) + some(&audio.data) + some(&audio.mime_type) + some(&audio.transcript)
    };
    let file =
        |file: &crate::model::File| some(&file.name) + some(&file.url) + some(&file.data) + some(&file.mime_type);
    let extra =
        |extra: &crate::model::Extra| extra.iter().map(|(name, json)| name.len() + json.as_str().len()).sum::<usize>();
    let body = match &chunk.body {
        Body::Text { text, annotations } => text.len() + annotations.as_ref().map_or(0, |json| json.as_str().len()),
        Body::Thinking { text, signature, redacted } => text.len() + some(signature) + some(redacted),
        Body::Refusal { text } => text.len(),
        Body::ToolCall { id, name, arguments, signature, server: _ } => {
            id.len() + name.len() + arguments.len() + some(signature)
        }
        Body::ToolResult { tool_call_id, name, output, is_error: _ } => {
            let output = match output {
                Output::Text(text) => text.len(),
                Output::Parts(parts) => parts
                    .iter()
                    .map(|part| {
                        extra(&part.extra)
                            + match &part.body {
                                PartBody::Text { text } => text.len(),
                                PartBody::Image(value) => image(value),
                                PartBody::Audio(value) => audio(value),
                                PartBody::File(value) => file(value),
                                PartBody::Json { json } => json.as_str().len(),
                                PartBody::Unknown { kind } => kind.len(),
                            }
                    })
                    .sum(),
            };
            tool_call_id.len() + some(name) + output
        }
        Body::Image(value) => image(value),
        Body::Audio(value) => audio(value),
        Body::File(value) => file(value),
        Body::Error { message, code } => message.len() + some(code),
        Body::Opaque { provider, kind, json } => provider.len() + kind.len() + json.as_str().len(),
        Body::Unknown { kind } => kind.len(),
    };
    body + some(&chunk.id) + chunk.native.as_ref().map_or(0, |native| native.json.as_str().len()) + extra(&chunk.extra)
}
