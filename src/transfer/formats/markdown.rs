//! Markdown, for people.

use std::collections::HashMap;
use std::io::{self, Write};

use super::documents::{place_of, text_of};
use crate::model::{Audio, Body, File, Image, Output, PartBody};
use crate::provider::file_name;
use crate::transfer::foreign::Skipped;
use crate::transfer::format::{Format, Outgoing, Writer, returned};

pub(crate) const FORMAT: Format = Format {
    name: "markdown",
    about: "Markdown, for people",
    read: None,
    tables: None,
    write: Some(Writer { frame: ["", "\n---\n\n", ""], extension: "md", write }),
};

fn write(outgoing: &Outgoing, out: &mut dyn Write, _: &mut Skipped) -> io::Result<()> {
    let tools = outgoing.tools();
    writeln!(out, "# {}\n", outgoing.heading().replace(['\n', '\r'], " "))?;
    for stored in &outgoing.messages {
        let message = &stored.message;
        write!(out, "## {}", message.role)?;
        let model = message.metadata.model.as_deref();
        let time = message.metadata.created_at.map(|at| at.to_string());
        for about in [model.map(str::to_owned), time].into_iter().flatten() {
            write!(out, " · {}", about.replace(['\n', '\r'], " "))?;
        }
        writeln!(out, "\n")?;
        for chunk in &message.chunks {
            body(&chunk.body, &tools, out)?;
        }
    }
    Ok(())
}

fn body(body: &Body, tools: &HashMap<&str, &str>, out: &mut dyn Write) -> io::Result<()> {
    match body {
        Body::Text { text, .. } | Body::Refusal { text } => writeln!(out, "{text}\n"),
        Body::Thinking { text, .. } => {
            writeln!(out, "<details><summary>thinking</summary>\n")?;
            fenced(text, "", out)?;
            writeln!(out, "</details>\n")
        }
        Body::ToolCall { name, arguments, .. } => {
            writeln!(out, "**calls `{}`**\n", name.replace(['`', '\n'], " "))?;
            fenced(arguments, "json", out)
        }
        Body::ToolResult { tool_call_id, name, output, is_error } => {
            let did = if *is_error == Some(true) { "failed" } else { "returned" };
            match returned(name.as_deref(), tool_call_id, tools) {
                Some(name) => writeln!(out, "**`{}` {did}**\n", name.replace(['`', '\n'], " "))?,
                None => writeln!(out, "**a tool {did}**\n")?,
            }
            fenced(&words(output), "", out)?;
            let Output::Parts(parts) = output else { return Ok(()) };
            parts.iter().try_for_each(|part| match &part.body {
                PartBody::Image(image) => picture(image, out),
                PartBody::File(file) => document(file, out),
                PartBody::Audio(audio) => sound(audio, out),
                _ => Ok(()),
            })
        }
        Body::Image(image) => picture(image, out),
        Body::File(file) => document(file, out),
        Body::Audio(audio) => sound(audio, out),
        Body::Error { message, .. } => {
            writeln!(out, "**error**\n")?;
            fenced(message, "", out)
        }
        Body::Opaque { kind, json, .. } => {
            writeln!(out, "**{}**\n", kind.replace('\n', " "))?;
            fenced(json.as_str(), "json", out)
        }
        Body::Unknown { kind } => writeln!(out, "*{}*\n", kind.replace('\n', " ")),
    }
}

fn picture(image: &Image, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "![picture](<{}>)\n", address(&image.url))
}

fn document(file: &File, out: &mut dyn Write) -> io::Result<()> {
    let name = file_name(file, "file").replace(['[', ']', '\n'], " ");
    match text_of(file) {
        Some(text) => {
            writeln!(out, "**{name}**\n")?;
            fenced(&text, "", out)
        }
        None => writeln!(out, "[{name}](<{}>)\n", address(&place_of(file).unwrap_or_default())),
    }
}

fn sound(audio: &Audio, out: &mut dyn Write) -> io::Result<()> {
    let said = audio.transcript.as_deref().unwrap_or_default();
    match audio.url.as_deref().filter(|url| !url.starts_with("data:")) {
        Some(url) => writeln!(out, "[sound](<{}>) {said}\n", address(url)),
        None => writeln!(out, "*sound* {said}\n"),
    }
}

/// A tool's result, as text.
pub(crate) fn words(output: &Output) -> String {
    match output {
        Output::Text(text) => text.clone(),
        Output::Parts(parts) => {
            let part = |part: &crate::model::Part| match &part.body {
                PartBody::Text { text } => text.clone(),
                PartBody::Json { json } => json.as_str().to_owned(),
                PartBody::Image(image) if !image.url.starts_with("data:") => {
                    format!("[picture {}]", address(&image.url))
                }
                PartBody::Image(_) => "[picture]".to_owned(),
                other => format!("[{}]", other.kind()),
            };
            parts.iter().map(part).collect::<Vec<_>>().join("\n")
        }
    }
}

/// A block whose fence no line of the text can close.
fn fenced(text: &str, language: &str, out: &mut dyn Write) -> io::Result<()> {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(out, "{fence}{language}\n{text}\n{fence}\n")
}

/// An address that cannot end the link.
fn address(url: &str) -> String {
    url.chars().filter(|character| !matches!(character, '<' | '>' | '\n' | '\r')).collect()
}
