use conversation_store::model::{Audio, Body, Chunk, File, Output, Part, PartBody};

use super::super::style::{DIM, ERROR};
use super::super::text::{Layout, cut, printable, wrap};

const INDENT: &str = "    ";
const DEEPER: &str = "      ";

/// A chunk, indented: text unchanged, anything else after its kind. `index`: its number, if there is more than one.
pub(super) fn text(chunk: &Chunk, index: Option<u32>, layout: Layout) -> String {
    if let (Body::Text { text, .. }, None) = (&chunk.body, index) {
        return wrap(text, INDENT, layout);
    }
    let style = if matches!(chunk.body, Body::Error { .. }) { ERROR } else { DIM };
    let kind = chunk.body.kind().replace('_', " ");
    let number = index.map_or_else(String::new, |index| format!("{DIM}chunk {index}{DIM:#}  "));
    let mut out = format!("{INDENT}{number}{style}{}{style:#}", printable(&kind));
    let label = label(&chunk.body);
    if !label.is_empty() {
        out.push_str(&format!("  {}", cut(&label, layout.width)));
    }
    out.push('\n');
    for content in contents(chunk) {
        out.push_str(&wrap(&content, DEEPER, layout));
    }
    out
}

/// A chunk on one line.
pub(in crate::cli) fn summary(chunk: &Chunk) -> String {
    let contents = contents(chunk).join(" ");
    match (&chunk.body, label(&chunk.body)) {
        (Body::Text { text, .. }, _) => text.clone(),
        (body, label) if label.is_empty() => format!("{}: {contents}", body.kind()),
        (body, label) => format!("{} {label}: {contents}", body.kind()),
    }
}

/// The chunk's label.
fn label(body: &Body) -> String {
    match body {
        Body::ToolCall { id, name, .. } => format!("{name} {id}"),
        Body::ToolResult { tool_call_id, name, is_error, .. } => {
            let failed = if *is_error == Some(true) { Some("failed") } else { None };
            [name.as_deref(), Some(tool_call_id), failed].into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        Body::File(file) => file.name.clone().unwrap_or_default(),
        Body::Error { code, .. } => code.clone().unwrap_or_default(),
        Body::Opaque { provider, kind, .. } => format!("{provider} {kind}"),
        _ => String::new(),
    }
}

/// The chunk's content, for people.
fn contents(chunk: &Chunk) -> Vec<String> {
    match &chunk.body {
        Body::Text { text, .. } | Body::Refusal { text } => vec![text.clone()],
        Body::Thinking { text, redacted, .. } => {
            let redacted = redacted.as_ref().map(|data| format!("redacted, {} bytes", data.len()));
            [Some(text.clone()).filter(|text| !text.is_empty()), redacted].into_iter().flatten().collect()
        }
        Body::ToolCall { arguments, .. } => vec![arguments.clone()],
        Body::ToolResult { output: Output::Text(text), .. } => vec![text.clone()],
        Body::ToolResult { output: Output::Parts(parts), .. } => parts.iter().map(part).collect(),
        Body::Image(image) => vec![address(&image.url)],
        Body::Audio(value) => vec![audio(value)],
        Body::File(value) => vec![file(value)],
        Body::Error { message, .. } => vec![message.clone()],
        Body::Opaque { json, .. } => vec![json.to_string()],
        _ => chunk.extra.iter().map(|(name, json)| format!("{name}: {json}")).collect(),
    }
}

fn part(part: &Part) -> String {
    match &part.body {
        PartBody::Text { text } => text.clone(),
        PartBody::Image(image) => format!("image {}", address(&image.url)),
        PartBody::Audio(value) => format!("audio {}", audio(value)),
        PartBody::File(value) => format!("file {}", file(value)),
        PartBody::Json { json } => json.to_string(),
        other => other.kind().to_owned(),
    }
}

fn audio(audio: &Audio) -> String {
    let place = audio.url.as_deref().map(address).or_else(|| audio.data.as_deref().map(data));
    [audio.transcript.clone(), place].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn file(file: &File) -> String {
    file.url.as_deref().map(address).or_else(|| file.data.as_deref().map(data)).unwrap_or_default()
}

/// An address; for a data URL, its type and length.
fn address(url: &str) -> String {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((kind, content)) => format!("data:{kind}, {} characters", content.len()),
        None => url.to_owned(),
    }
}

fn data(base64: &str) -> String {
    format!("{} characters of base64", base64.len())
}
