//! Version 1 of the entries. Frozen: a change of any type here is a new version.

use std::borrow::Cow;

use bincode::{BorrowDecode, Encode};

use super::envelope::{List, Text};

/// Kind bytes. 0 is never written.
pub(super) const CHUNK: u8 = 1;
pub(super) const BEGIN: u8 = 2;
pub(super) const FINISH: u8 = 3;
pub(super) const META: u8 = 4;
pub(super) const REWIND: u8 = 5;
pub(super) const SUMMARY: u8 = 6;
pub(super) const REDACT: u8 = 7;
pub(super) const INTERRUPT: u8 = 8;
pub(super) const REMOVE: u8 = 9;
/// Kinds from here on change what other entries mean: who does not know one cannot read the record.
pub(super) const NEEDED: u8 = 128;

/// What is known about a message: rides on the first entry of an appended message, on `begin`, and on `finish`.
#[derive(Debug, Clone, Default, Encode, BorrowDecode)]
pub(crate) struct Header<'a> {
    pub(crate) finish_reason: Option<&'a str>,
    pub(crate) usage: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) provider: Option<&'a str>,
    /// Microseconds since 1970, if the caller gave it.
    pub(crate) created_at: Option<i64>,
    pub(crate) turn_id: Option<&'a str>,
    pub(crate) step_id: Option<&'a str>,
    pub(crate) id: Option<&'a str>,
    pub(crate) native: Option<Native<'a>>,
    /// A JSON object.
    pub(crate) extra: Option<Cow<'a, str>>,
}

#[derive(Debug, Clone, Encode, BorrowDecode)]
pub(crate) struct Native<'a> {
    pub(crate) wire: &'a str,
    pub(crate) json: Text<'a>,
}

/// A chunk, or a fragment of one.
#[derive(Debug, Encode, BorrowDecode)]
pub(crate) struct ChunkLine<'a> {
    /// Relative to the record's first message index.
    pub(crate) message: u64,
    pub(crate) chunk: u32,
    pub(crate) role: u8,
    /// Present on the first entry of an appended message, which is therefore complete.
    pub(crate) header: Option<Header<'a>>,
    pub(crate) id: Option<&'a str>,
    pub(crate) native: Option<Native<'a>>,
    /// A JSON object.
    pub(crate) extra: Option<Cow<'a, str>>,
    pub(crate) content: Content<'a>,
}

#[derive(Debug, Clone, Encode, BorrowDecode)]
pub(crate) enum Content<'a> {
    Text { text: Text<'a>, annotations: Option<&'a str> },
    Thinking { text: Text<'a>, signature: Option<&'a str>, redacted: Option<&'a str> },
    Refusal { text: Text<'a> },
    ToolCall { id: &'a str, name: &'a str, arguments: Text<'a>, signature: Option<&'a str>, server: bool },
    ToolResult { tool_call_id: &'a str, name: Option<&'a str>, output: Output<'a>, is_error: Option<bool> },
    Image(Image<'a>),
    Audio(Audio<'a>),
    File(File<'a>),
    Error { message: &'a str, code: Option<&'a str> },
    Opaque { provider: &'a str, kind: &'a str, json: Text<'a> },
    Unknown { kind: &'a str },
}

#[derive(Debug, Clone, Encode, BorrowDecode)]
pub(crate) enum Output<'a> {
    Text(Text<'a>),
    Parts(List<Part<'a>>),
}

#[derive(Debug, Clone, Encode, BorrowDecode)]
pub(crate) struct Part<'a> {
    pub(crate) body: PartBody<'a>,
    /// A JSON object.
    pub(crate) extra: Option<Cow<'a, str>>,
}

#[derive(Debug, Clone, Encode, BorrowDecode)]
pub(crate) enum PartBody<'a> {
    Text(Text<'a>),
    Image(Image<'a>),
    Audio(Audio<'a>),
    File(File<'a>),
    Json(Text<'a>),
    Unknown(&'a str),
}

#[derive(Debug, Clone, Encode, BorrowDecode)]
pub(crate) struct Image<'a> {
    pub(crate) url: Text<'a>,
    pub(crate) mime_type: Option<&'a str>,
}

#[derive(Debug, Clone, Encode, BorrowDecode)]
pub(crate) struct Audio<'a> {
    pub(crate) url: Option<Text<'a>>,
    pub(crate) data: Option<Text<'a>>,
    pub(crate) mime_type: Option<&'a str>,
    pub(crate) transcript: Option<&'a str>,
}

#[derive(Debug, Clone, Encode, BorrowDecode)]
pub(crate) struct File<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) url: Option<Text<'a>>,
    pub(crate) data: Option<Text<'a>>,
    pub(crate) mime_type: Option<&'a str>,
}

/// A message begins.
#[derive(Debug, Encode, BorrowDecode)]
pub(crate) struct Begin<'a> {
    /// Relative to the record's first message index.
    pub(crate) message: u64,
    pub(crate) role: u8,
    /// The opening of the store in which its writer lives; absent for a message that was appended whole, without chunks.
    pub(crate) epoch: Option<u64>,
    pub(crate) header: Header<'a>,
}

/// A message that was begun is complete.
#[derive(Debug, Encode, BorrowDecode)]
pub(crate) struct Finish<'a> {
    /// Relative to the record's first message index.
    pub(crate) message: u64,
    pub(crate) role: u8,
    /// What is known since it began.
    pub(crate) header: Header<'a>,
}

/// The conversation's own data changes. An absent field stays as it is.
#[derive(Debug, Encode, BorrowDecode)]
pub(crate) struct Meta<'a> {
    /// `Some(None)` gives the title back to the first user text.
    pub(crate) title: Option<Option<&'a str>>,
    pub(crate) tags: Option<List<&'a str>>,
    /// A JSON object, which replaces the one before it.
    pub(crate) metadata: Option<&'a str>,
    /// The seq of the meta entry before this one; 0 if there is none.
    pub(crate) previous: u64,
}

/// Messages `to..end` are hidden.
#[derive(Debug, Clone, Copy, Encode, BorrowDecode)]
pub(crate) struct Rewind {
    pub(crate) to: u64,
    /// The next message index at that time.
    pub(crate) end: u64,
    /// The seq of the rewind or removal before this one; 0 if there is none.
    pub(crate) previous: u64,
}

/// One message, or one chunk of it, is hidden.
#[derive(Debug, Clone, Copy, Encode, BorrowDecode)]
pub(crate) struct Remove {
    pub(crate) message: u64,
    pub(crate) chunk: Option<u32>,
    /// The seq of the rewind or removal before this one; 0 if there is none.
    pub(crate) previous: u64,
}

/// A message that was begun is not finished and takes no more.
#[derive(Debug, Clone, Copy, Encode, BorrowDecode)]
pub(crate) struct Interrupt {
    /// Relative to the record's first message index.
    pub(crate) message: u64,
    pub(crate) cause: InterruptCause,
}

/// Why a message was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, BorrowDecode)]
pub(crate) enum InterruptCause {
    /// Its writer was dropped.
    Dropped,
    /// The store was opened again: the program that wrote the message had ended without finishing it.
    Reopened,
}

/// Prompts use the summary in place of the messages up to and including `through`.
#[derive(Debug, Encode, BorrowDecode)]
pub(crate) struct Summary<'a> {
    pub(crate) through: u64,
    pub(crate) text: &'a str,
    /// Estimated tokens before and after, if the caller knows them.
    pub(crate) tokens: Option<(u64, u64)>,
}

/// The content of a message, or of one chunk of it, was erased.
#[derive(Debug, Clone, Copy, Encode, BorrowDecode)]
pub(crate) struct Redact {
    pub(crate) message: u64,
    pub(crate) chunk: Option<u32>,
}
