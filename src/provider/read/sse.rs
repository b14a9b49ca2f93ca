//! Server-sent events: lines to events.
//!
//! Source: WHATWG HTML, section 9.2, "Server-sent events". More lenient than that in three things: white space before the
//! first line is dropped, an event may be closed by the end of the stream, and `data: [DONE]` closes one, too.

use memchr::{memchr, memchr2};

/// An event: its name, if it was given one, and its data.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
}

/// What a line of the stream amounts to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Event(Event),
    /// `data: [DONE]`: the provider has said all.
    Done,
    /// A line that is none of an event stream.
    Stray(Vec<u8>),
}

/// Splits bytes into events.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
    event: Event,
    /// The last byte was a carriage return: a line feed after it ends no further line.
    after_return: bool,
}

/// The names of fields.
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

impl Lines {
    /// Bytes that wait for the rest of their event.
    pub(crate) fn pending(&self) -> usize {
        self.line.len() + self.event.name.len() + self.event.data.len()
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<Found>) {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let (line, rest) = bytes.split_at_checked(end.unwrap_or(bytes.len())).unwrap_or((bytes, &[]));
            self.line.extend_from_slice(line);
            let Some((end, rest)) = rest.split_first() else { return };
            self.after_return = *end == b'\r';
            self.end_line(out);
            bytes = rest;
        }
    }

    /// The stream has ended.
    pub(crate) fn finish(&mut self, out: &mut Vec<Found>) {
        // A line that was cut off within the name of its field is none of the stream's.
        if !FIELDS.iter().any(|field| field.starts_with(&self.line)) {
            self.end_line(out);
        }
        self.dispatch(out);
    }

    fn end_line(&mut self, out: &mut Vec<Found>) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.dispatch(out);
        }
        let colon = memchr(b':', &line);
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" if value.trim_ascii() == b"[DONE]" => {
                self.dispatch(out);
                out.push(Found::Done);
            }
            b"data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
            }
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            // A comment, and what browsers need to connect again.
            b"" | b"id" | b"retry" => {}
            _ => out.push(Found::Stray(line)),
        }
    }

    fn dispatch(&mut self, out: &mut Vec<Found>) {
        let event = std::mem::take(&mut self.event);
        if !event.data.is_empty() {
            out.push(Found::Event(event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let (mut lines, mut out) = (Lines::default(), Vec::new());
        for byte in text.bytes() {
            lines.push(&[byte], &mut out);
        }
        lines.finish(&mut out);
        let found = out.into_iter().map(|found| match found {
            Found::Event(event) => format!("{}={}", event.name, String::from_utf8_lossy(&event.data)),
            Found::Done => "done".to_owned(),
            Found::Stray(line) => format!("stray {}", String::from_utf8_lossy(&line)),
        });
        found.collect()
    }

    #[test]
    fn lines_become_events() {
        let table: [(&str, &[&str]); 12] = [
            ("data: a\n\ndata: b\n\n", &["=a", "=b"]),
            ("data:a\r\n\r\ndata: b\r\rdata:c\n\n", &["=a", "=b", "=c"]),
            ("event: x\ndata: a\n\ndata: b\n\n", &["x=a", "=b"]),
            ("data: {\"a\":\ndata: 1}\n\n", &["={\"a\":\n1}"]),
            (": keep-alive\n\nid: 1\nretry: 5\ndata: a\n\n", &["=a"]),
            ("data: a\n\ndata: [DONE]\n\n", &["=a", "done"]),
            ("data: a\ndata: [DONE]", &["=a", "done"]),
            ("data: a", &["=a"]),
            ("data\n\ndata:\n\nevent: x\n\n", &[]),
            ("\n\nda", &[]),
            ("<html>\ndata: a\n\n", &["stray <html>", "=a"]),
            ("upstream failed", &["stray upstream failed"]),
        ];
        for (text, wanted) in table {
            assert_eq!(found(text), wanted, "{text:?}");
        }
    }
}
