//! A provider's bytes to the JSON objects in them, whichever way they are sent.

use super::documents::{self, Documents};
use super::eventstream::{self, Frames};
use super::sse::{self, Lines};
use crate::error::{Error, Result};

/// Bytes that may wait for the rest of their object.
pub(crate) const PENDING: usize = 64 * 1024 * 1024;
/// Bytes of a text that is no JSON that are reported.
pub(crate) const REPORTED: usize = 1000;

/// What the bytes hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// What should be a JSON object, and the name of the event that it came in.
    Object { name: String, json: String },
    /// The provider has said all.
    Done,
    /// Text that is none of it: the beginning of what somebody says who is not the provider.
    Stray(String),
}

/// Finds out how the bytes are framed, and takes them apart.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    body: Body,
}

#[derive(Debug, Default)]
enum Body {
    /// Only white space and a byte order mark so far.
    #[default]
    Unknown,
    Events(Lines),
    Json(Documents),
    Frames(Frames),
    /// An object is too large.
    TooLarge,
}

impl Framing {
    /// Takes bytes, split anywhere.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>> {
        let mut rest = bytes;
        if matches!(self.body, Body::Unknown) {
            // The byte order mark is EF BB BF.
            let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0xef | 0xbb | 0xbf);
            let start = bytes.iter().position(|byte| !is_space(byte));
            rest = bytes.get(start.unwrap_or(bytes.len())..).unwrap_or_default();
            self.body = match rest.first() {
                None => Body::Unknown,
                Some(byte) if Frames::may_begin_with(*byte) => Body::Frames(Frames::new(REPORTED)),
                Some(b'{' | b'[') => Body::Json(Documents::default()),
                Some(_) => Body::Events(Lines::default()),
            };
        }
        let frames = match &mut self.body {
            Body::Unknown => Vec::new(),
            Body::Events(lines) => {
                let mut found = Vec::new();
                lines.push(rest, &mut found);
                found.into_iter().flat_map(|found| of_event(found, false)).collect()
            }
            Body::Json(documents) => {
                let mut found = Vec::new();
                documents.push(rest, &mut found);
                found.into_iter().map(|found| of_document("", found)).collect()
            }
            Body::Frames(frames) => {
                let mut found = Vec::new();
                frames.push(rest, &mut found);
                found.into_iter().map(of_frame).collect()
            }
            Body::TooLarge => return Err(too_large("an event of a stream")),
        };
        if self.pending() > PENDING {
            self.body = Body::TooLarge;
            return Err(too_large("an event of a stream"));
        }
        Ok(frames)
    }

    /// Bytes that wait for the rest of their object.
    pub(crate) fn pending(&self) -> usize {
        match &self.body {
            Body::Unknown | Body::TooLarge => 0,
            Body::Events(lines) => lines.pending(),
            Body::Json(documents) => documents.pending(),
            Body::Frames(frames) => frames.pending(),
        }
    }

    /// The bytes have ended. What is not whole is dropped: it was cut off.
    pub(crate) fn finish(self) -> Vec<Frame> {
        match self.body {
            Body::Unknown | Body::TooLarge => Vec::new(),
            Body::Frames(frames) => {
                let mut found = Vec::new();
                frames.finish(&mut found);
                found.into_iter().map(of_frame).collect()
            }
            Body::Events(mut lines) => {
                let mut found = Vec::new();
                lines.finish(&mut found);
                found.into_iter().flat_map(|found| of_event(found, true)).collect()
            }
            Body::Json(mut documents) => {
                let mut found = Vec::new();
                let _ = documents.finish(&mut found);
                found.into_iter().map(|found| of_document("", found)).collect()
            }
        }
    }
}

/// More waits than is kept.
pub(crate) fn too_large(what: &'static str) -> Error {
    Error::LimitExceeded { what, actual: format!("more than {PENDING} bytes"), limit: format!("{PENDING} bytes") }
}

/// An event's data may be several objects: some servers forget the empty line between events. Data that end within an
/// object are no JSON, unless the stream ended there, too.
fn of_event(found: sse::Found, ended: bool) -> Vec<Frame> {
    match found {
        sse::Found::Done => vec![Frame::Done],
        sse::Found::Stray(line) => vec![Frame::Stray(beginning(&line))],
        sse::Found::Event(event) => {
            let (mut documents, mut found) = (Documents::default(), Vec::new());
            documents.push(&event.data, &mut found);
            let cut = documents.finish(&mut found).filter(|_| !ended);
            found.extend(cut.map(documents::Found::Object));
            found.into_iter().map(|found| of_document(&event.name, found)).collect()
        }
    }
}

fn of_frame(found: eventstream::Found) -> Frame {
    match found {
        eventstream::Found::Event { name, payload } => {
            Frame::Object { name, json: String::from_utf8_lossy(&payload).into_owned() }
        }
        eventstream::Found::Stray(bytes) => Frame::Stray(beginning(&bytes)),
    }
}

fn of_document(name: &str, found: documents::Found) -> Frame {
    match found {
        documents::Found::Object(bytes) => {
            let json = String::from_utf8_lossy(&bytes).into_owned();
            Frame::Object { name: name.to_owned(), json }
        }
        documents::Found::Stray(bytes) => Frame::Stray(beginning(&bytes)),
    }
}

/// The beginning of a text, to be reported.
pub(crate) fn beginning(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..REPORTED).unwrap_or(bytes)).into_owned()
}
