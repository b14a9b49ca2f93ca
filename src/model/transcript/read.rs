use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::Fields;
use super::line::{Expected, Line, TRANSCRIPT, id_field, json};
use crate::model::{
    Audio, Body, Chunk, File, FinishReason, Image, Message, Metadata, Native, Output, Part, PartBody, Role,
};

/// Reads a line that has no lone surrogate escapes.
pub(super) fn line(text: &str) -> Result<Line, Expected> {
    let mut fields = Fields::new(text, text, String::new())?;
    let conversation = fields.string("conversation")?;
    let message = message(fields)?;
    Ok(Line { conversation, message, replaced_surrogates: Vec::new() })
}

fn message(mut fields: Fields<'_>) -> Result<Message, Expected> {
    let role = fields
        .parsed("role", |name| {
            Role::from_name(name).ok_or_else(|| format!("expected system, user, assistant or tool, found {name:?}"))
        })?
        .ok_or_else(|| fields.error("role", "missing; expected system, user, assistant or tool"))?;
    let chunks =
        fields.objects("chunks")?.ok_or_else(|| fields.error("chunks", "missing; expected an array of chunks"))?;
    Ok(Message {
        role,
        chunks: chunks.into_iter().map(chunk).collect::<Result<_, _>>()?,
        finish_reason: fields.string("finish_reason")?.as_deref().and_then(FinishReason::given),
        usage: fields.json("usage")?,
        metadata: Metadata {
            model: fields.string("model")?,
            provider: fields.string("provider")?,
            created_at: fields.parsed("created_at", str::parse)?,
            turn_id: fields.string_or_rest("turn_id")?,
            step_id: fields.string_or_rest("step_id")?,
            id: fields.string_or_rest("id")?,
            native: native(&mut fields)?,
            extra: fields.extra()?,
        },
    })
}

fn chunk(mut fields: Fields<'_>) -> Result<Chunk, Expected> {
    let kind = fields.required("type")?;
    let body = body(kind, &mut fields)?;
    let id = fields.string_or_rest(id_field(&body))?;
    Ok(Chunk { body, id, native: native(&mut fields)?, extra: fields.extra()? })
}

fn body(kind: String, fields: &mut Fields<'_>) -> Result<Body, Expected> {
    Ok(match kind.as_str() {
        "text" => Body::Text { text: fields.required("text")?, annotations: fields.json("annotations")? },
        "thinking" => Body::Thinking {
            text: fields.string("text")?.unwrap_or_default(),
            signature: fields.string("signature")?,
            redacted: fields.string("redacted")?,
        },
        "refusal" => Body::Refusal { text: fields.required("text")? },
        "tool_call" => Body::ToolCall {
            id: fields.string("id")?.unwrap_or_default(),
            name: fields.string("name")?.unwrap_or_default(),
            arguments: arguments(fields)?,
            signature: fields.string("signature")?,
            server: fields.boolean("server")?.unwrap_or_default(),
        },
        "tool_result" => Body::ToolResult {
            tool_call_id: fields.string("tool_call_id")?.unwrap_or_default(),
            name: fields.string("name")?,
            output: output(fields)?,
            is_error: fields.boolean("is_error")?,
        },
        "image" => Body::Image(image(fields)?),
        "audio" => Body::Audio(audio(fields)?),
        "file" => Body::File(file(fields)?),
        "error" => Body::Error { message: fields.required("message")?, code: fields.string_or_rest("code")? },
        "opaque" => Body::Opaque {
            provider: fields.required("provider")?,
            kind: fields.required("kind")?,
            json: fields.value("json")?,
        },
        _ => Body::Unknown { kind },
    })
}

/// The arguments as they were written: a string; of anything else, its JSON text.
fn arguments(fields: &mut Fields<'_>) -> Result<String, Expected> {
    let Some(raw) = fields.raw("arguments")? else { return Ok(String::new()) };
    Ok(serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned()))
}

/// A string, an array of parts, or any other JSON value as one `json` part.
fn output(fields: &mut Fields<'_>) -> Result<Output, Expected> {
    const FIELD: &str = "content";
    let Some(first) = fields.peek(FIELD) else {
        fields.raw(FIELD)?;
        return Ok(Output::Text(String::new()));
    };
    match first {
        b'"' => Ok(Output::Text(fields.string(FIELD)?.unwrap_or_default())),
        b'[' if fields.peek_raw(FIELD).is_none_or(are_parts) => {
            let parts = fields.objects(FIELD)?.unwrap_or_default();
            parts.into_iter().map(part).collect::<Result<_, _>>().map(Output::Parts)
        }
        _ => Ok(Output::Parts(fields.json(FIELD)?.map(|json| PartBody::Json { json }.into()).into_iter().collect())),
    }
}

/// Whether an array is one of parts: they have types. A list of anything else is what a tool gave back as JSON.
fn are_parts(array: &str) -> bool {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(borrow, rename = "type")]
        _kind: Cow<'a, str>,
    }
    let items = serde_json::from_str::<Vec<&RawValue>>(array).unwrap_or_default();
    items.is_empty() || items.iter().any(|item| serde_json::from_str::<Typed<'_>>(item.get()).is_ok())
}

fn part(mut fields: Fields<'_>) -> Result<Part, Expected> {
    let kind = fields.required("type")?;
    let body = match kind.as_str() {
        "text" => PartBody::Text { text: fields.required("text")? },
        "image" => PartBody::Image(image(&mut fields)?),
        "audio" => PartBody::Audio(audio(&mut fields)?),
        "file" => PartBody::File(file(&mut fields)?),
        "json" => PartBody::Json { json: fields.value("json")? },
        _ => PartBody::Unknown { kind },
    };
    Ok(Part { body, extra: fields.extra()? })
}

fn image(fields: &mut Fields<'_>) -> Result<Image, Expected> {
    Ok(Image { url: fields.required("url")?, mime_type: fields.string("mime_type")? })
}

fn audio(fields: &mut Fields<'_>) -> Result<Audio, Expected> {
    Ok(Audio {
        url: fields.string("url")?,
        data: fields.string("data")?,
        mime_type: fields.string("mime_type")?,
        transcript: fields.string("transcript")?,
    })
}

fn file(fields: &mut Fields<'_>) -> Result<File, Expected> {
    Ok(File {
        name: fields.string("name")?,
        url: fields.string("url")?,
        data: fields.string("data")?,
        mime_type: fields.string("mime_type")?,
    })
}

fn native(fields: &mut Fields<'_>) -> Result<Option<Native>, Expected> {
    let Some(mut native) = fields.object("native")? else { return Ok(None) };
    let wire = native.required("wire")?;
    let json = native.json("json")?.ok_or_else(|| native.error("json", "missing; expected the provider's block"))?;
    Ok(Some(Native { wire, json }))
}

/// Gives the chunks whose text was mended their own text back, as `native`. A lone surrogate in JSON that is kept as it is,
/// such as the text that was kept when the chunk was read before, is none to be mended.
pub(super) fn keep_lone_surrogates(text: &str, line: &mut Line) {
    #[derive(Deserialize)]
    struct Chunks<'a> {
        #[serde(borrow, default)]
        chunks: Vec<&'a RawValue>,
    }
    let fields = crate::json::fields::Fields::read(text).unwrap_or_default();
    let fields: HashMap<&str, &RawValue> = fields.present().collect();
    line.message.metadata.extra.replace(|name| json(fields.get(name)?.get()));
    let chunks = serde_json::from_str::<Chunks<'_>>(text).map_or_else(|_| Vec::new(), |line| line.chunks);
    for (index, (raw, mended)) in chunks.iter().zip(&mut line.message.chunks).enumerate() {
        let raw = raw.get();
        if matches!(crate::json::replace_lone_surrogates(raw), Cow::Borrowed(_)) {
            continue;
        }
        if let Ok(whole) = Fields::new(raw, raw, String::new()).and_then(chunk) {
            *mended = whole;
        } else {
            line.replaced_surrogates.push(index);
            mended.native = json(raw).map(|json| Native { wire: TRANSCRIPT.to_owned(), json });
        }
    }
}
