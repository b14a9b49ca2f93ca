//! Stored types to values.

use super::v1;
use crate::error::Result;
use crate::model::{self, Body, Chunk, Extra, FinishReason, Json, Metadata, Role, Timestamp};

use super::envelope::{List, corrupt};

impl v1::ChunkLine<'_> {
    /// Its text, if it is a text.
    pub(crate) fn text(&self) -> Option<&str> {
        match self.content {
            v1::Content::Text { text, .. } => Some(text.0),
            _ => None,
        }
    }

    /// The chunk, or the fragment of one.
    pub(crate) fn chunk(&self) -> Result<Chunk> {
        Ok(Chunk {
            body: body(&self.content)?,
            id: owned(self.id),
            native: native(self.native.as_ref())?,
            extra: extra(self.extra.as_deref())?,
        })
    }
}

impl v1::Header<'_> {
    /// What is known about the message.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        Ok(Metadata {
            model: owned(self.model),
            provider: owned(self.provider),
            created_at: self.created_at.map(Timestamp::from_micros),
            turn_id: owned(self.turn_id),
            step_id: owned(self.step_id),
            id: owned(self.id),
            native: native(self.native.as_ref())?,
            extra: extra(self.extra.as_deref())?,
        })
    }

    /// Why the model stopped.
    pub(crate) fn finish_reason(&self) -> Option<FinishReason> {
        self.finish_reason.map(FinishReason::from)
    }

    /// Token counts.
    pub(crate) fn usage(&self) -> Result<Option<Json>> {
        self.usage.map(json).transpose()
    }
}

impl v1::Meta<'_> {
    /// Whether it has words of the caller's.
    pub(crate) fn says_something(&self) -> bool {
        let Self { title, tags, metadata, previous: _ } = self;
        title.flatten().is_some() || tags.as_ref().is_some_and(|tags| !tags.0.is_empty()) || metadata.is_some()
    }

    /// The new metadata.
    pub(crate) fn metadata(&self) -> Result<Option<Json>> {
        self.metadata.map(json).transpose()
    }
}

/// The role of a stored byte.
pub(crate) fn role(byte: u8) -> Result<Role> {
    Role::ALL.get(usize::from(byte)).copied().ok_or_else(|| corrupt(format!("role {byte} does not exist")))
}

fn owned(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

fn json(text: &str) -> Result<Json> {
    Json::new(text).map_err(|error| corrupt(format!("stored JSON: {error}")))
}

fn native(native: Option<&v1::Native<'_>>) -> Result<Option<model::Native>> {
    native.map(|native| Ok(model::Native { wire: native.wire.to_owned(), json: json(native.json.0)? })).transpose()
}

fn extra(text: Option<&str>) -> Result<Extra> {
    text.map_or_else(|| Ok(Extra::new()), |text| Extra::from_object(text).map_err(|error| corrupt(error.to_string())))
}

fn body(content: &v1::Content<'_>) -> Result<Body> {
    Ok(match content {
        v1::Content::Text { text, annotations } => {
            Body::Text { text: text.0.to_owned(), annotations: annotations.map(json).transpose()? }
        }
        v1::Content::Thinking { text, signature, redacted } => {
            Body::Thinking { text: text.0.to_owned(), signature: owned(*signature), redacted: owned(*redacted) }
        }
        v1::Content::Refusal { text } => Body::Refusal { text: text.0.to_owned() },
        v1::Content::ToolCall { id, name, arguments, signature, server } => Body::ToolCall {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            arguments: arguments.0.to_owned(),
            signature: owned(*signature),
            server: *server,
        },
        v1::Content::ToolResult { tool_call_id, name, output, is_error } => Body::ToolResult {
            tool_call_id: (*tool_call_id).to_owned(),
            name: owned(*name),
            output: match output {
                v1::Output::Text(text) => model::Output::Text(text.0.to_owned()),
                v1::Output::Parts(List(parts)) => model::Output::Parts(parts.iter().map(part).collect::<Result<_>>()?),
            },
            is_error: *is_error,
        },
        v1::Content::Image(value) => Body::Image(image(value)),
        v1::Content::Audio(value) => Body::Audio(audio(value)),
        v1::Content::File(value) => Body::File(file(value)),
        v1::Content::Error { message, code } => Body::Error { message: (*message).to_owned(), code: owned(*code) },
        v1::Content::Opaque { provider, kind, json: block } => {
            Body::Opaque { provider: (*provider).to_owned(), kind: (*kind).to_owned(), json: json(block.0)? }
        }
        v1::Content::Unknown { kind } => Body::Unknown { kind: (*kind).to_owned() },
    })
}

fn part(part: &v1::Part<'_>) -> Result<model::Part> {
    use model::PartBody;
    let body = match &part.body {
        v1::PartBody::Text(text) => PartBody::Text { text: text.0.to_owned() },
        v1::PartBody::Image(value) => PartBody::Image(image(value)),
        v1::PartBody::Audio(value) => PartBody::Audio(audio(value)),
        v1::PartBody::File(value) => PartBody::File(file(value)),
        v1::PartBody::Json(text) => PartBody::Json { json: json(text.0)? },
        v1::PartBody::Unknown(kind) => PartBody::Unknown { kind: (*kind).to_owned() },
    };
    Ok(model::Part { body, extra: extra(part.extra.as_deref())? })
}

fn image(image: &v1::Image<'_>) -> model::Image {
    model::Image { url: image.url.0.to_owned(), mime_type: owned(image.mime_type) }
}

fn audio(audio: &v1::Audio<'_>) -> model::Audio {
    model::Audio {
        url: owned(audio.url.map(|text| text.0)),
        data: owned(audio.data.map(|text| text.0)),
        mime_type: owned(audio.mime_type),
        transcript: owned(audio.transcript),
    }
}

fn file(file: &v1::File<'_>) -> model::File {
    model::File {
        name: owned(file.name),
        url: owned(file.url.map(|text| text.0)),
        data: owned(file.data.map(|text| text.0)),
        mime_type: owned(file.mime_type),
    }
}
