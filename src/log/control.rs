//! Control entries: entries about a conversation as a whole, or about messages that are there.

use super::limits::{check_metadata, check_name, check_summary};
use super::results::Receipt;
use super::view::View;
use crate::error::Result;
use crate::model::Json;

/// What a control entry is to do.
#[derive(Debug)]
pub(crate) enum Control<'a> {
    /// Sets the title, or gives it back to the first user text.
    Title(Option<&'a str>),
    /// Removes tags, then adds others that are not there yet.
    Tags { remove: &'a [&'a str], add: &'a [&'a str] },
    /// Replaces the metadata, a JSON object.
    Metadata(&'a Json),
    /// Hides every message from this index on that exists now.
    Rewind { to: u64 },
    /// Hides one message, or one chunk of it.
    Remove { message: u64, chunk: Option<u32> },
    /// Puts a summary in the place of all messages up to `through`.
    Summarize { through: u64, text: &'a str },
}

/// What came of a control entry.
#[derive(Debug)]
pub(crate) struct Controlled {
    pub(crate) receipt: Receipt,
    /// The conversation's tags after it.
    pub(crate) tags: Vec<String>,
}

impl Controlled {
    /// Nothing was written: all is as it was asked for.
    pub(crate) fn unchanged(view: &View) -> Self {
        let last_seq = view.last_seq();
        let receipt = Receipt {
            conversation: view.id,
            first_seq: last_seq,
            last_seq,
            message_indexes: Vec::new(),
            durable: true,
            duplicate: true,
        };
        Self { receipt, tags: view.head.tags.clone() }
    }
}

impl Control<'_> {
    /// Fails on what no conversation takes.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Title(title) => title.map_or(Ok(()), |title| check_name("a title", title)),
            Self::Metadata(metadata) => check_metadata(metadata),
            Self::Summarize { text, .. } => check_summary(text),
            Self::Tags { .. } | Self::Rewind { .. } | Self::Remove { .. } => Ok(()),
        }
    }
}
