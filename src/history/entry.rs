//! Entries as the log holds them, for sync, paging and people who look.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::error::Result;
use crate::model::{Chunk, FinishReason, Json, Metadata, Role, Timestamp};
use crate::record::{self, InterruptCause, Line, MessageHeader, Record};

/// One line of the log.
///
/// As JSON: `seq`, `kind`, then, where the kind has them, `message_index`, `chunk_index`, `role`, `chunk` or the kind's
/// own fields, and `created_at`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Its place: 1-based, gap-free per conversation.
    pub seq: u64,
    /// The message it belongs to, or that it is about.
    pub message_index: Option<u64>,
    /// The chunk it is a fragment of; absent for control entries.
    pub chunk_index: Option<u32>,
    /// The role of its message.
    pub role: Option<Role>,
    /// The caller's time for the message, else the store's clock when it was appended.
    pub created_at: Timestamp,
    /// What it is.
    pub kind: EntryKind,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A chunk, or a fragment of one.
    Chunk {
        /// The chunk or the fragment.
        chunk: Box<Chunk>,
        /// Present on the first entry of a message that was appended whole.
        header: Option<Box<EntryHeader>>,
    },
    /// A message begins.
    Begin {
        /// What is known about it.
        header: Box<EntryHeader>,
    },
    /// A message that was begun is complete.
    Finish {
        /// What is known about it since it began.
        header: Box<EntryHeader>,
    },
    /// The conversation's own data changes.
    Meta {
        /// The new title; `Some(None)` gives it back to the first user text.
        title: Option<Option<String>>,
        /// The new tags.
        tags: Option<Vec<String>>,
        /// The new metadata: a JSON object that replaces the one before it.
        metadata: Option<Json>,
    },
    /// Messages from [`Entry::message_index`] on, below `end`, are hidden.
    Rewind {
        /// The first message index that is not hidden any more.
        end: u64,
    },
    /// Prompts use the summary in place of the messages up to and including [`Entry::message_index`].
    Summary {
        /// The summary.
        text: String,
    },
    /// Content was erased: of the chunk, or of the whole message.
    Redact,
    /// The chunk, or the whole message, is hidden.
    Remove,
    /// The message was begun and takes no more: it stays as it is.
    Interrupt {
        /// Why.
        cause: Interruption,
    },
    /// A kind that this version of the crate does not know.
    Unknown {
        /// Its kind byte.
        kind: u8,
    },
}

/// Why a message that was begun takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interruption {
    /// Its writer was dropped.
    Dropped,
    /// The store was opened again: the program that wrote the message had ended without finishing it.
    Reopened,
}

impl Interruption {
    /// The cause's name in JSON: `dropped` or `reopened`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Reopened => "reopened",
        }
    }
}

/// What an entry knows about its message.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EntryHeader {
    /// What is known about the message besides.
    pub metadata: Metadata,
    /// Why the model stopped, if it has.
    pub finish_reason: Option<FinishReason>,
    /// Token counts, if the model has stopped.
    pub usage: Option<Json>,
}

impl Entry {
    /// An entry that belongs to no message.
    #[must_use]
    pub const fn new(seq: u64, created_at: Timestamp, kind: EntryKind) -> Self {
        Self { seq, message_index: None, chunk_index: None, role: None, created_at, kind }
    }

    pub(crate) fn read(record: &Record<'_>, seq: u64, line: &Line<'_>) -> Result<Self> {
        let created_at = Timestamp::from_micros(record.header.time);
        let bare = |kind| Self::new(seq, created_at, kind);
        let of_message = |relative, role, kind| {
            let message_index = Some(record.message_index(relative));
            Ok::<_, crate::Error>(Self { message_index, role: Some(record::role(role)?), ..bare(kind) })
        };
        let mut entry = match line {
            Line::Chunk(line) => {
                let kind = EntryKind::Chunk {
                    chunk: Box::new(line.chunk()?),
                    header: line.header.as_ref().map(header).transpose()?,
                };
                Self { chunk_index: Some(line.chunk), ..of_message(line.message, line.role, kind)? }
            }
            Line::Begin(begin) => {
                of_message(begin.message, begin.role, EntryKind::Begin { header: header(&begin.header)? })?
            }
            Line::Finish(finish) => {
                of_message(finish.message, finish.role, EntryKind::Finish { header: header(&finish.header)? })?
            }
            Line::Meta(meta) => bare(EntryKind::Meta {
                title: meta.title.map(|title| title.map(str::to_owned)),
                tags: meta.tags.as_ref().map(|tags| tags.0.iter().map(|tag| (*tag).to_owned()).collect()),
                metadata: meta.metadata()?,
            }),
            Line::Rewind(rewind) => {
                Self { message_index: Some(rewind.to), ..bare(EntryKind::Rewind { end: rewind.end }) }
            }
            Line::Summary(summary) => {
                let kind = EntryKind::Summary { text: summary.text.to_owned() };
                Self { message_index: Some(summary.through), ..bare(kind) }
            }
            Line::Redact(redact) => {
                Self { message_index: Some(redact.message), chunk_index: redact.chunk, ..bare(EntryKind::Redact) }
            }
            Line::Remove(remove) => {
                Self { message_index: Some(remove.message), chunk_index: remove.chunk, ..bare(EntryKind::Remove) }
            }
            Line::Interrupt(interrupt) => {
                let cause = match interrupt.cause {
                    InterruptCause::Dropped => Interruption::Dropped,
                    InterruptCause::Reopened => Interruption::Reopened,
                };
                let message_index = Some(record.message_index(interrupt.message));
                Self { message_index, ..bare(EntryKind::Interrupt { cause }) }
            }
            Line::Unknown(kind) => bare(EntryKind::Unknown { kind: *kind }),
        };
        // The end of a message has a time of its own.
        if !matches!(line, Line::Finish(_))
            && let Some(created_at) = entry.header().and_then(|header| header.metadata.created_at)
        {
            entry.created_at = created_at;
        }
        Ok(entry)
    }

    fn header(&self) -> Option<&EntryHeader> {
        match &self.kind {
            EntryKind::Chunk { header, .. } => header.as_deref(),
            EntryKind::Begin { header } | EntryKind::Finish { header } => Some(header),
            _ => None,
        }
    }
}

fn header(header: &MessageHeader<'_>) -> Result<Box<EntryHeader>> {
    let (metadata, finish_reason, usage) = (header.metadata()?, header.finish_reason(), header.usage()?);
    Ok(Box::new(EntryHeader { metadata, finish_reason, usage }))
}

impl EntryKind {
    /// The kind's name: `chunk`, `begin`, `finish`, `meta`, `rewind`, `summary`, `redact`, `remove`, `interrupt` or
    /// `unknown`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Chunk { .. } => "chunk",
            Self::Begin { .. } => "begin",
            Self::Finish { .. } => "finish",
            Self::Meta { .. } => "meta",
            Self::Rewind { .. } => "rewind",
            Self::Summary { .. } => "summary",
            Self::Redact => "redact",
            Self::Remove => "remove",
            Self::Interrupt { .. } => "interrupt",
            Self::Unknown { .. } => "unknown",
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("kind", self.kind.name())?;
        if let Some(message_index) = self.message_index {
            map.serialize_entry("message_index", &message_index)?;
        }
        if let Some(chunk_index) = self.chunk_index {
            map.serialize_entry("chunk_index", &chunk_index)?;
        }
        if let Some(role) = self.role {
            map.serialize_entry("role", role.as_str())?;
        }
        match &self.kind {
            EntryKind::Chunk { chunk, .. } => map.serialize_entry("chunk", chunk)?,
            EntryKind::Meta { title, tags, metadata } => {
                if let Some(title) = title {
                    map.serialize_entry("title", title)?;
                }
                if let Some(tags) = tags {
                    map.serialize_entry("tags", tags)?;
                }
                if let Some(metadata) = metadata {
                    map.serialize_entry("metadata", metadata)?;
                }
            }
            EntryKind::Rewind { end } => map.serialize_entry("end", end)?,
            EntryKind::Summary { text } => map.serialize_entry("summary", text)?,
            EntryKind::Unknown { kind } => map.serialize_entry("kind_byte", kind)?,
            EntryKind::Interrupt { cause } => map.serialize_entry("cause", cause.as_str())?,
            EntryKind::Begin { .. } | EntryKind::Finish { .. } | EntryKind::Redact | EntryKind::Remove => {}
        }
        if let Some(header) = self.header() {
            if let Some(finish_reason) = &header.finish_reason {
                map.serialize_entry("finish_reason", finish_reason.as_str())?;
            }
            if let Some(usage) = &header.usage {
                map.serialize_entry("usage", usage)?;
            }
            let Metadata { model, provider, created_at: _, turn_id, step_id, id, native: _, extra: _ } =
                &header.metadata;
            let fields =
                [("model", model), ("provider", provider), ("turn_id", turn_id), ("step_id", step_id), ("id", id)];
            for (name, value) in fields {
                if let Some(value) = value {
                    map.serialize_entry(name, value)?;
                }
            }
        }
        map.serialize_entry("created_at", &self.created_at.to_string())?;
        map.end()
    }
}
