//! A request that somebody has, broken ones too, to the messages in it.

use serde_json::value::RawValue;

use super::fields::{json, string};
use crate::error::Error;
use crate::history::ReportLine;
use crate::history::report::Fact;
use crate::model::{Body, Chunk, Message, Role};

/// The messages of a request.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Parsed {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// What could not be taken as it is, and what it was taken for. Message indexes are positions in `messages`.
    pub notes: Vec<ReportLine>,
}

/// The error of a request without a list of messages.
pub(crate) fn no_messages(key: &str) -> Error {
    Error::InvalidInput(format!("no request: expected an object with an array `{key}`, or that array"))
}

/// The notes on one message.
#[derive(Debug)]
pub(crate) struct Notes<'a> {
    message: u64,
    lines: &'a mut Vec<ReportLine>,
}

impl<'a> Notes<'a> {
    /// On the message of this index.
    pub(crate) fn new(message: usize, lines: &'a mut Vec<ReportLine>) -> Self {
        Self { message: u64::try_from(message).unwrap_or(u64::MAX), lines }
    }

    pub(crate) fn push(&mut self, fact: Fact<'_>) {
        self.lines.push(ReportLine { message_index: Some(self.message), ..ReportLine::new(fact) });
    }

    pub(crate) fn of_call(&mut self, fact: Fact<'_>, id: &str) {
        self.push(fact);
        if let Some(line) = self.lines.last_mut() {
            line.tool_call_id = Some(id.to_owned());
        }
    }
}

/// A content that is no array, whatever it is.
pub(crate) fn words(raw: &RawValue, notes: &mut Notes<'_>) -> String {
    string(raw).unwrap_or_else(|| {
        notes.push(Fact::ContentAsText);
        raw.get().to_owned()
    })
}

/// What is in the place of a message, or what the wire has for it: a string is what the user said; other JSON is kept as
/// an opaque chunk, `null` not at all.
pub(crate) fn stranger(raw: &RawValue, what: &'static str, opaque: Option<Chunk>, notes: &mut Notes<'_>) -> Message {
    if let Some(text) = string(raw) {
        notes.push(Fact::StringAsMessage { what });
        return Message::user(text);
    }
    notes.push(Fact::JsonAsMessage { what });
    Message::new(Role::User, opaque)
}

/// A value that is not known, as a chunk of its own.
pub(crate) fn opaque(raw: &RawValue, kind: impl Into<String>, provider: &str) -> Option<Chunk> {
    Some(Body::Opaque { provider: provider.to_owned(), kind: kind.into(), json: json(raw)? }.into())
}
