//! One HTML file, for people: no scripts, nothing loaded from elsewhere, and no content of a conversation is executed.

use std::collections::HashMap;
use std::io::{self, Write};

use super::documents::{place_of, text_of};
use super::markdown::words;
use crate::html::{escape, is_picture};
use crate::model::{Body, File, Output, Part, PartBody};
use crate::provider::file_name;
use crate::transfer::foreign::Skipped;
use crate::transfer::format::{Format, Outgoing, Writer, returned};

pub(crate) const FORMAT: Format = Format {
    name: "html",
    about: "one HTML file, for people",
    read: None,
    tables: None,
    write: Some(Writer { frame: [BEGIN, "<hr>\n", "</body></html>\n"], extension: "html", write }),
};

const BEGIN: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>Conversations</title>
<style>
body{max-width:46rem;margin:2rem auto;padding:0 1rem;font:16px/1.5 system-ui,sans-serif;color:#1b1b1b;background:#fff}
article{margin:1rem 0;padding:.6rem 1rem;border-left:.25rem solid #bbb;background:#f7f7f7}
article.user{border-color:#2563a8}article.assistant{border-color:#3d7d3d}article.tool{border-color:#a86a10}
header{font-size:.85rem;color:#555;margin-bottom:.4rem}
.text,pre{white-space:pre-wrap;overflow-wrap:anywhere}pre{font-size:.85rem;background:#eee;padding:.5rem}
summary{cursor:pointer;color:#555}img{max-width:100%}
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}article{background:#1f1f1f}pre{background:#2a2a2a}header,summary{color:#aaa}}
</style></head><body>
"#;

fn write(outgoing: &Outgoing, out: &mut dyn Write, _: &mut Skipped) -> io::Result<()> {
    let tools = outgoing.tools();
    writeln!(out, "<h1>{}</h1>", escape(&outgoing.heading()))?;
    for stored in &outgoing.messages {
        let message = &stored.message;
        let role = message.role.as_str();
        let model = message.metadata.model.as_deref().map(|model| format!(" · {}", escape(model))).unwrap_or_default();
        let time = message.metadata.created_at.map(|at| format!(" · {at}")).unwrap_or_default();
        writeln!(out, "<article class=\"{role}\"><header>{role}{model}{time}</header>")?;
        for chunk in &message.chunks {
            out.write_all(body(&chunk.body, &tools).as_bytes())?;
        }
        writeln!(out, "</article>")?;
    }
    Ok(())
}

fn folded(what: &str, text: &str) -> String {
    format!("<details><summary>{}</summary><pre>{}</pre></details>\n", escape(what), escape(text))
}

fn body(body: &Body, tools: &HashMap<&str, &str>) -> String {
    match body {
        Body::Text { text, .. } | Body::Refusal { text } => format!("<div class=\"text\">{}</div>\n", escape(text)),
        Body::Thinking { text, .. } => folded("thinking", text),
        Body::ToolCall { name, arguments, .. } => folded(&format!("calls {name}"), arguments),
        Body::ToolResult { tool_call_id, name, output, is_error } => {
            let did = if *is_error == Some(true) { "failed" } else { "returned" };
            let name = returned(name.as_deref(), tool_call_id, tools).unwrap_or_else(|| "a tool".to_owned());
            let parts = match output {
                Output::Text(_) => &[][..],
                Output::Parts(parts) => parts,
            };
            let shown = |part: &Part| match &part.body {
                PartBody::Image(image) if is_picture(&image.url) => Some(picture(&image.url)),
                PartBody::File(file) => Some(document(file)),
                _ => None,
            };
            folded(&format!("{name} {did}"), &words(output)) + &parts.iter().filter_map(shown).collect::<String>()
        }
        // Only what is in the file is shown; nothing is loaded from an address.
        Body::Image(image) if is_picture(&image.url) => picture(&image.url),
        Body::Image(image) => format!("<div class=\"text\">[picture {}]</div>\n", escape(&image.url)),
        Body::File(file) => document(file),
        Body::Audio(audio) => {
            format!("<div class=\"text\">[sound] {}</div>\n", escape(audio.transcript.as_deref().unwrap_or_default()))
        }
        Body::Error { message, .. } => folded("error", message),
        Body::Opaque { kind, json, .. } => folded(kind, json.as_str()),
        Body::Unknown { kind } => format!("<div class=\"text\">[{}]</div>\n", escape(kind)),
    }
}

/// A document's text; another one that is here can be saved, and is not opened.
fn document(file: &File) -> String {
    let place = place_of(file).unwrap_or_default();
    let is_here = place.starts_with("data:");
    let name = file_name(file, if is_here || place.is_empty() { "file" } else { &place });
    match text_of(file) {
        Some(text) => folded(name, &text),
        None if is_here => {
            let (name, place) = (escape(name), escape(&place));
            format!("<div class=\"text\"><a download=\"{name}\" href=\"{place}\">{name}</a></div>\n")
        }
        None => format!("<div class=\"text\">[file {}]</div>\n", escape(name)),
    }
}

fn picture(url: &str) -> String {
    format!("<img alt=\"picture\" src=\"{}\">\n", escape(url))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Chunk, Image};

    #[test]
    fn a_document_is_read_or_saved() {
        let html = |name: &str, mime: &str, data: &str| {
            let (name, mime_type) = (Some(name.to_owned()), Some(mime.to_owned()));
            document(&File { name, url: None, data: Some(data.to_owned()), mime_type })
        };
        let folded = "<details><summary>a.txt</summary><pre>&lt;b&gt;</pre></details>\n";
        assert_eq!(html("a.txt", "text/plain", "PGI+"), folded);
        assert_eq!(html("a.txt", "text/html", "PGI+"), folded);
        let saved = html("a\".pdf", "application/pdf", "JVBERi0=\"><script>");
        assert!(
            saved.contains(
                "<a download=\"a&quot;.pdf\" href=\"data:application/pdf;base64,JVBERi0=&quot;&gt;&lt;script&gt;\">"
            ),
            "{saved}"
        );
    }

    #[test]
    fn nothing_that_was_said_is_obeyed() {
        let shown = |url: &str| -> Chunk {
            let image = PartBody::Image(Image { url: url.to_owned(), mime_type: None });
            let output = Output::Parts(vec![image.into()]);
            Body::ToolResult { tool_call_id: "c".to_owned(), name: None, output, is_error: None }.into()
        };
        let hostile = "<script>alert(1)</script>\" onerror='x' &amp;\u{202e}";
        let chunks = [
            Chunk::text(hostile),
            Chunk::thinking(hostile),
            Chunk::tool_call(hostile, hostile, hostile),
            Chunk::tool_result(hostile, hostile),
            Chunk::image(hostile),
            Chunk::image(format!("data:image/png;base64,\"{hostile}")),
            Chunk::image("data:image/svg+xml;base64,AAAA"),
            shown(hostile),
            shown(&format!("data:image/png;base64,\"{hostile}")),
            Chunk::image("https://example.org/track.png"),
            Chunk::error(hostile),
        ];
        for chunk in chunks {
            let html = body(&chunk.body, &HashMap::new());
            let inert = html.replace("<div class=\"text\">", "").replace("<img alt=\"picture\" src=\"", "");
            assert!(!inert.contains("<script") && !inert.contains("onerror='") && !html.contains('\u{202e}'), "{html}");
            assert!(!html.contains("src=\"http") && !html.contains("src=\"data:image/svg"), "{html}");
        }
    }
}
