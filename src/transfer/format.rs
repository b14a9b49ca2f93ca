//! What a row of the table of formats holds, and what a reader receives.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::value::RawValue;

#[cfg(feature = "archives")]
use super::database::Database;
use super::foreign::Taken;
use super::source::Source;
use crate::json::fields::Fields;
use crate::model::Body;

/// A format of conversations that another program writes or reads: its row in [`super::FORMATS`].
pub struct Format {
    /// Its name in `--format`.
    pub name: &'static str,
    /// The program that writes it.
    pub about: &'static str,
    /// How to read its files of JSON, if it has any.
    pub(crate) read: Option<Reader>,
    /// How to read a database of it, if the program has one.
    pub(crate) tables: Option<Tables>,
    /// How to write it, if it can be written.
    pub(crate) write: Option<Writer>,
}

/// How to recognise and read a format.
pub(crate) enum Reader {
    /// JSON values, each a conversation.
    Each {
        /// Whether the values are of this format.
        recognise: fn(&Head<'_>) -> bool,
        read: fn(&str, &Context<'_>) -> Taken,
    },
    /// JSON values, each a part of a conversation.
    Parts {
        /// Whether the values are of this format.
        recognise: fn(&Head<'_>) -> bool,
        /// The conversation that a value names; a value that names none belongs to that of the value before it.
        group: fn(&str) -> Option<String>,
        /// All values of one conversation.
        read: fn(&str, Vec<String>, &Context<'_>) -> Vec<Taken>,
    },
}

/// How to read a format that is a database.
pub(crate) struct Tables {
    /// Whether a database is of this format.
    #[cfg(feature = "archives")]
    pub(crate) recognise: fn(&Database) -> rusqlite::Result<bool>,
    #[cfg(feature = "archives")]
    pub(crate) read: ReadTables,
}

/// Reads a database; `take` returns whether to continue.
#[cfg(feature = "archives")]
type ReadTables = fn(&Database, &Context<'_>, &mut dyn FnMut(Taken) -> bool) -> rusqlite::Result<()>;

/// The beginning of a file of JSON values.
pub(crate) struct Head<'a> {
    /// Up to [`Head::VALUES`] of its values.
    pub(crate) values: Vec<&'a RawValue>,
    /// Whether they are in a list.
    pub(crate) is_list: bool,
}

/// What a reader may know in addition to the values.
pub(crate) struct Context<'a> {
    /// The conversation's title if nothing in it states one: the file's name without directory and extension.
    pub(crate) file: &'a str,
    /// The number of the value, from 0.
    pub(crate) number: usize,
    /// Whether it is the only conversation of the file.
    pub(crate) only: bool,
    /// The files that came with it.
    pub(crate) assets: &'a Source,
}

/// How to write a format.
pub(crate) struct Writer {
    /// What is written before, between and after conversations.
    pub(crate) frame: [&'static str; 3],
    /// The extension of its files.
    pub(crate) extension: &'static str,
    pub(crate) write: fn(&Outgoing, &mut dyn Write, &mut super::foreign::Skipped) -> io::Result<()>,
}

/// A conversation on its way out.
pub(crate) struct Outgoing {
    pub(crate) item: crate::log::ListItem,
    pub(crate) messages: Vec<crate::history::StoredMessage>,
    /// The id of the session that it becomes, where the format has sessions.
    pub(crate) session: crate::model::ConversationId,
    /// The folder in which the session works.
    pub(crate) folder: String,
}

impl Outgoing {
    /// What people call the conversation: its title, otherwise its key, otherwise its id.
    pub(crate) fn heading(&self) -> String {
        let item = &self.item;
        let named = item.title.clone().filter(|title| !title.trim().is_empty()).or_else(|| item.key.clone());
        named.unwrap_or_else(|| item.id.to_string())
    }

    /// The tool of each call, by the call's id: results do not always name their tool.
    pub(crate) fn tools(&self) -> HashMap<&str, &str> {
        let chunks = self.messages.iter().flat_map(|stored| &stored.message.chunks);
        let calls = chunks.filter_map(|chunk| match &chunk.body {
            Body::ToolCall { id, name, .. } => Some((id.as_str(), name.as_str())),
            _ => None,
        });
        calls.collect()
    }
}

/// The heading of a tool's result.
pub(crate) fn returned(name: Option<&str>, call: &str, tools: &HashMap<&str, &str>) -> Option<String> {
    name.or_else(|| tools.get(call).copied()).filter(|name| !name.trim().is_empty()).map(str::to_owned)
}

impl Head<'_> {
    /// How many values are examined.
    pub(crate) const VALUES: usize = 64;

    /// Whether any value is an object for which this holds.
    pub(crate) fn any(&self, holds: impl Fn(&Fields<'_>) -> bool) -> bool {
        self.values.iter().any(|raw| Fields::of(raw).is_some_and(|fields| holds(&fields)))
    }

    /// Whether the first object is one for which this holds.
    pub(crate) fn first(&self, holds: impl Fn(&Fields<'_>) -> bool) -> bool {
        self.values.iter().find_map(|raw| Fields::of(raw)).is_some_and(|fields| holds(&fields))
    }
}

impl Context<'_> {
    /// The id of a conversation that has none of its own.
    pub(crate) fn unnamed(&self) -> String {
        if self.only { self.file.to_owned() } else { format!("{}#{}", self.file, self.number) }
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Format").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Format {
    /// Whether conversations can be read from it.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        self.read.is_some() || self.tables.is_some()
    }

    /// Whether conversations can be written to it.
    #[must_use]
    pub const fn is_written(&self) -> bool {
        self.write.is_some()
    }
}
