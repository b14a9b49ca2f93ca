//! The calls and the answers, as JSON.

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use crate::error::{Error, Result};
use crate::log::{AppendOptions, Changes, Durability, ExpectedHead, ListPage, ListQuery, ListSort, Receipt};
#[cfg(feature = "server")]
use crate::model::Json;
use crate::model::{ConversationId, Name, Timestamp};

/// The name of a conversation: its key, or its id.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Named {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
}

impl From<&Name> for Named {
    fn from(name: &Name) -> Self {
        Self { name: name.to_string(), owner: name.owner().map(str::to_owned) }
    }
}

impl Named {
    /// The name without its owner.
    #[cfg(feature = "server")]
    pub(crate) fn bare(&self) -> Name {
        Name::from(&self.name)
    }
}

/// No fields.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Nothing {}

/// What a client begins with.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
}

/// Who the client is to the server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Welcome {
    /// The owner of its key.
    pub(crate) owner: String,
    /// Whether its key has the scope `admin`.
    pub(crate) is_admin: bool,
    /// A message whose writer is not heard of for so long is interrupted.
    pub(crate) lease_seconds: u64,
}

/// An append, or the beginning of a message. Its messages follow.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Append {
    pub(crate) name: Named,
    expected: Expected,
    key: Option<String>,
    buffered: bool,
    #[serde(default)]
    time: Option<Timestamp>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Expected {
    Any,
    New,
    At(u64),
    /// A cursor, as text.
    Cursor(String),
}

impl Append {
    #[cfg(feature = "client")]
    pub(crate) fn new(name: &Name, options: &AppendOptions) -> Self {
        let expected = match options.expected {
            ExpectedHead::Any => Expected::Any,
            ExpectedHead::NewConversation => Expected::New,
            ExpectedHead::At(seq) => Expected::At(seq),
            ExpectedHead::AtCursor(at) => Expected::Cursor(at.to_string()),
        };
        let buffered = options.durability == Durability::Buffered;
        Self { name: name.into(), expected, key: options.idempotency_key.clone(), buffered, time: options.time }
    }

    #[cfg(feature = "server")]
    pub(crate) fn options(&self) -> Result<AppendOptions> {
        let expected = match &self.expected {
            Expected::Any => ExpectedHead::Any,
            Expected::New => ExpectedHead::NewConversation,
            Expected::At(seq) => ExpectedHead::At(*seq),
            Expected::Cursor(at) => ExpectedHead::AtCursor(at.parse()?),
        };
        let durability = if self.buffered { Durability::Buffered } else { Durability::Durable };
        Ok(AppendOptions { expected, idempotency_key: self.key.clone(), durability, time: self.time })
    }
}

/// An append that changes the conversation as a whole. Its messages follow, if it has some.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AppendChanging {
    pub(crate) append: Append,
    title: Option<String>,
    add_tags: Vec<String>,
    remove_tags: Vec<String>,
    metadata: Option<String>,
}

impl AppendChanging {
    #[cfg(feature = "client")]
    pub(crate) fn new(append: Append, changes: &Changes) -> Self {
        let Changes { title, add_tags, remove_tags, metadata } = changes.clone();
        Self { append, title, add_tags, remove_tags, metadata: metadata.map(|metadata| metadata.as_str().to_owned()) }
    }

    #[cfg(feature = "server")]
    pub(crate) fn changes(&self) -> Result<Changes> {
        let Self { append: _, title, add_tags, remove_tags, metadata } = self;
        let (title, add_tags, remove_tags) = (title.clone(), add_tags.clone(), remove_tags.clone());
        let metadata = metadata.as_deref().map(metadata_of).transpose()?;
        Ok(Changes { title, add_tags, remove_tags, metadata })
    }
}

/// Metadata as it was sent.
#[cfg(feature = "server")]
pub(crate) fn metadata_of(text: &str) -> Result<Json> {
    Json::new(text).map_err(|error| Error::InvalidInput(format!("the metadata cannot be read: {error}")))
}

/// A message was begun: what names its writer, if it was not begun before.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub(crate) writer: Option<String>,
    pub(crate) receipt: Receipt,
}

/// A delta. One chunk follows, in a message of its own.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Push {
    pub(crate) writer: String,
    /// Deltas of a writer are counted from 1: a repeated one is taken once.
    pub(crate) number: u64,
    pub(crate) chunk_index: u32,
}

/// The end of a message. What is known of it since it began follows, as a message.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Finish {
    pub(crate) writer: String,
}

/// Writers that live, or that are dropped.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Writers {
    pub(crate) writers: Vec<String>,
}

/// A conversation without messages.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Create {
    pub(crate) name: Named,
    pub(crate) title: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) metadata: Option<String>,
    #[serde(default)]
    pub(crate) time: Option<Timestamp>,
}

/// A control entry.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) name: Named,
    pub(crate) to: To,
}

/// What a control entry does.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum To {
    Title(Option<String>),
    Tags { remove: Vec<String>, add: Vec<String> },
    Metadata(String),
    Rewind { to: u64 },
    Remove { message: u64, chunk: Option<u32> },
    Summarize { through: u64, text: String },
}

/// What came of a control entry.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Changed {
    pub(crate) receipt: Receipt,
    pub(crate) tags: Vec<String>,
}

/// A fork.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Fork {
    pub(crate) parent: Named,
    pub(crate) at_seq: Option<u64>,
    pub(crate) child: Named,
    #[serde(default)]
    pub(crate) time: Option<Timestamp>,
}

/// A deletion, at a cursor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Delete {
    pub(crate) name: Named,
    pub(crate) at: Option<String>,
}

/// A redaction.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Redact {
    pub(crate) name: Named,
    pub(crate) message: u64,
    pub(crate) chunk: Option<u32>,
}

/// A conversation to look at.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Look {
    pub(crate) name: Named,
}

/// What readers see of it; its head follows, sealed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Viewed {
    pub(crate) id: ConversationId,
    pub(crate) live: Vec<u64>,
    pub(crate) epoch: u64,
    pub(crate) commit: u64,
    pub(crate) through: u64,
}

/// One of the conversations that have had an id.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Which {
    pub(crate) id: ConversationId,
    pub(crate) incarnation: u64,
}

/// Records to be read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Read {
    pub(crate) of: Which,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) descending: bool,
    /// No more records come at once after so many bytes of them.
    pub(crate) bytes: usize,
}

/// What was read, in order. The records follow, sealed as they are on disk, for the conversation that was asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Readings {
    pub(crate) readings: Vec<Shown>,
    /// Whether it ends with a record after which others come.
    pub(crate) has_more: bool,
}

/// One of them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shown {
    Record { first_seq: u64, last: u64, own: bool, bytes: usize },
    Damaged(Failure),
    Stray(Failure),
}

/// Whether a conversation is still there, and whether something that it shows was redacted after a commit.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Since {
    pub(crate) of: Which,
    pub(crate) commit: u64,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SinceThen {
    pub(crate) is_there: bool,
    pub(crate) is_redacted: bool,
}

/// An item id to look for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) of: Which,
    pub(crate) item: String,
}

/// Which page of the list.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct List {
    owner: String,
    limit: usize,
    after: Option<String>,
    title: Option<String>,
    tags: Vec<String>,
    #[serde(default)]
    key_prefix: Option<String>,
    #[serde(default)]
    forked_from: Option<ConversationId>,
    #[serde(default)]
    since: Option<Timestamp>,
    #[serde(default)]
    until: Option<Timestamp>,
    #[serde(default)]
    sort: ListSort,
}

impl From<&ListQuery> for List {
    /// Metadata are looked at by the store, and by no log.
    fn from(query: &ListQuery) -> Self {
        let ListQuery { owner, limit, after, title, tags, key_prefix, forked_from, metadata: _, since, until, sort } =
            query.clone();
        let after = after.map(|after| after.to_string());
        Self { owner, limit, after, title, tags, key_prefix, forked_from, since, until, sort }
    }
}

impl TryFrom<List> for ListQuery {
    type Error = Error;

    fn try_from(list: List) -> Result<Self> {
        let List { owner, limit, after, title, tags, key_prefix, forked_from, since, until, sort } = list;
        let after = after.map(|after| after.parse()).transpose()?;
        Ok(Self { owner, limit, after, title, tags, key_prefix, forked_from, metadata: Vec::new(), since, until, sort })
    }
}

/// A page of the list, and which conversations of their ids these are.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) page: ListPage,
    pub(crate) incarnations: Vec<u64>,
}

/// What somebody waits for: an entry after a seq.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Wait {
    pub(crate) name: Named,
    pub(crate) incarnation: u64,
    pub(crate) seq: u64,
    pub(crate) milliseconds: u64,
}

/// The last seq, if there is such an entry.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Waited {
    pub(crate) last_seq: Option<u64>,
}
