//! Our own transcript: one message a line, each with its conversation. Nothing is lost in either direction.

use std::io::{self, Write};

use crate::json::fields::Fields;
use crate::model::Line;
use crate::transfer::foreign::{Foreign, Skipped, Taken};
use crate::transfer::format::{Context, Format, Head, Outgoing, Reader, Writer};

pub(crate) const FORMAT: Format = Format {
    name: crate::transfer::keep::TRANSCRIPT,
    about: "this program's transcript",
    read: Some(Reader::Parts { recognise, group, read }),
    tables: None,
    write: Some(Writer { frame: ["", "", ""], extension: "jsonl", write }),
};

fn recognise(head: &Head<'_>) -> bool {
    head.any(|fields| {
        fields.peek("role").is_some() && fields.peek("chunks").is_some_and(|raw| raw.get().starts_with('['))
    })
}

fn group(text: &str) -> Option<String> {
    Fields::read(text).ok()?.string("conversation")
}

fn read(key: &str, lines: Vec<String>, _: &Context<'_>) -> Vec<Taken> {
    let mut foreign = Foreign::new(key);
    for line in lines {
        match Line::from_json(&line) {
            Ok(line) => foreign.push(None, vec![line.message]),
            Err(error) => foreign.skip(format!("line_that_is_no_message:{}", error.place)),
        }
    }
    vec![Ok(foreign)]
}

fn write(outgoing: &Outgoing, out: &mut dyn Write, _: &mut Skipped) -> io::Result<()> {
    let conversation = outgoing.item.key.clone().unwrap_or_else(|| outgoing.item.id.to_string());
    for stored in &outgoing.messages {
        let line = Line {
            conversation: Some(conversation.clone()),
            message: stored.message.clone(),
            replaced_surrogates: Vec::new(),
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
