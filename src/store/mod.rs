//! What a user opens.

mod options;
mod tail;
mod writer;

use std::fmt;
use std::ops::{Bound, RangeBounds, RangeInclusive};
use std::path::Path;
use std::sync::Arc;

use crate::embedded::engine::{self, Order};
use crate::embedded::{self, Embedded};
use crate::error::{Error, Result};
use crate::history::Conversation;
use crate::history::Entry;
use crate::history::StoredMessage;
use crate::log::{
    AppendOptions, BackupSummary, Health, Item, ListItem, ListPage, ListQuery, Receipt, Redaction, Verification,
};
use crate::model::{ConversationId, Message, Metadata, Name, Role};

pub use options::StoreOptions;
pub use tail::{StopHandle, Tail};
pub use writer::MessageWriter;

/// Conversations, kept.
///
/// A `Store` is a handle: clones share one open store. All calls block; an async server calls them in its runtime's
/// `spawn_blocking`. One process can have a store open at a time.
///
/// ```
/// use conversation_store::Store;
/// use conversation_store::model::Message;
///
/// let store = Store::open("memory:")?;
/// let receipt = store.append("chat-42", &[Message::user("hello")])?;
/// assert_eq!((receipt.first_seq, receipt.message_indexes), (1, vec![0]));
/// assert_eq!(store.load("chat-42")?.messages().len(), 1);
/// # Ok::<(), conversation_store::Error>(())
/// ```
#[derive(Clone)]
pub struct Store {
    log: Arc<Embedded>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.log.fmt(f)
    }
}

impl Store {
    /// Opens a store, creating it if there is none. Where it is, as a URL:
    ///
    /// | URL | what it is |
    /// |---|---|
    /// | `sled:PATH` | a directory (feature `sled`) |
    /// | `fjall:PATH` | a directory (feature `fjall`) |
    /// | `backup:FILE` | a backup, all of it in memory, for reading only |
    /// | `memory:` | a new store that forgets all when it is dropped |
    ///
    /// Options stand behind a `?`, with `&` between them: `sled:chats.db?cache_mb=128`. Both engines have two:
    ///
    /// | option | default | what it is |
    /// |---|---|---|
    /// | `cache_mb` | sled 64, fjall 32 | size of the engine's cache in MiB; a process with sled takes up to twice that |
    /// | `sync` | `always` | **`never` is unsafe**: nothing is synced, and a power cut takes what was acknowledged, or the whole store. For throw-away stores, and for the tests, which have to notice |
    ///
    /// # Errors
    /// `InvalidInput` if the URL is none, or the path is no store; `Busy` if another process has it open;
    /// `UnsupportedVersion` if a newer version of this crate wrote it; `Corrupt` if it is damaged; `Io`.
    pub fn open(url: &str) -> Result<Self> {
        StoreOptions::new().open(url)
    }

    /// Appends messages, all or none of them. Returns when they survive a power cut.
    ///
    /// The conversation is made if there is none of that name. Cost: one write of the messages' bytes, and one fdatasync
    /// shared with all appends that wait at the same time.
    ///
    /// # Errors
    /// `InvalidInput` for no messages; `LimitExceeded`; `Poisoned` if a write failed, now or before.
    pub fn append(&self, name: impl Into<Name>, messages: &[Message]) -> Result<Receipt> {
        self.append_with(name, messages, &AppendOptions::new())
    }

    /// Appends messages with an expectation, an idempotency key, or buffered.
    ///
    /// The key is looked at first: a repetition gets the first receipt, marked [`Receipt::duplicate`], even where the
    /// expectation would fail.
    ///
    /// # Errors
    /// As [`Store::append`]; `Conflict` if the conversation is not as expected; `KeyReused` if the key was used with other
    /// content.
    pub fn append_with(&self, name: impl Into<Name>, messages: &[Message], options: &AppendOptions) -> Result<Receipt> {
        let name = name.into();
        let span = tracing::debug_span!("append", conversation = %name.id(), messages = messages.len());
        span.in_scope(|| self.log.core().append(&name, messages, options))
    }

    /// Begins a message that is written as it is made. It takes its index now: what is appended meanwhile comes after it.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn begin(&self, name: impl Into<Name>, role: Role, metadata: Metadata) -> Result<MessageWriter> {
        let name = name.into();
        let span = tracing::debug_span!("begin", conversation = %name.id());
        let (writer, receipt) = span.in_scope(|| self.log.core().begin(&name, role, metadata))?;
        Ok(MessageWriter::new(Arc::clone(&self.log), writer, receipt))
    }

    /// The conversation as it is durable now: grouped by message index and reconciled. Records that cannot be read are in
    /// the report.
    ///
    /// Cost: reading and decoding all entries.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` if the head is damaged; `Io`.
    pub fn load(&self, name: impl Into<Name>) -> Result<Conversation> {
        let name = name.into();
        let span = tracing::debug_span!("load", conversation = %name.id());
        let grouped = span.in_scope(|| self.log.core().load(name.id(), &name))?;
        Ok(Conversation::from_grouped(grouped))
    }

    /// As [`Store::load`], but a record that cannot be read is an error.
    ///
    /// # Errors
    /// As [`Store::load`]; `Corrupt` if any record is damaged or missing.
    pub fn load_strict(&self, name: impl Into<Name>) -> Result<Conversation> {
        let name = name.into();
        let mut grouped = self.log.core().load(name.id(), &name)?;
        if grouped.damage.is_empty() { Ok(Conversation::from_grouped(grouped)) } else { Err(grouped.damage.remove(0)) }
    }

    /// The messages as they were appended: grouped by message index, nothing repaired. Rewound ones are left out. A record
    /// that cannot be read is an error.
    ///
    /// # Errors
    /// As [`Store::load_strict`].
    pub fn load_raw(&self, name: impl Into<Name>) -> Result<Vec<StoredMessage>> {
        let name = name.into();
        let mut grouped = self.log.core().load(name.id(), &name)?;
        if grouped.damage.is_empty() { Ok(grouped.messages) } else { Err(grouped.damage.remove(0)) }
    }

    /// Up to `limit` entries with these seqs, in order: the log itself, with what was rewound.
    ///
    /// ```
    /// # use conversation_store::{Store, model::Message};
    /// # let store = Store::open("memory:")?;
    /// # store.append("c", &[Message::user("a"), Message::user("b")])?;
    /// let entries = store.entries("c", 2.., 100)?;
    /// assert_eq!(entries[0].seq, 2);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `Corrupt`; `Io`.
    pub fn entries(&self, name: impl Into<Name>, seqs: impl RangeBounds<u64>, limit: usize) -> Result<Vec<Entry>> {
        let name = name.into();
        self.log.core().entries(name.id(), &name, inclusive(&seqs), Order::Ascending, limit)
    }

    /// The entries behind a cursor: `entries_since(name, 41)` begins with seq 42.
    ///
    /// # Errors
    /// As [`Store::entries`]; `Conflict` if the cursor lies behind the last seq: it is not of this conversation.
    pub fn entries_since(&self, name: impl Into<Name>, seq: u64) -> Result<Vec<Entry>> {
        let name = name.into();
        self.check_cursor(&name, seq)?;
        self.log.core().entries(name.id(), &name, seq.saturating_add(1)..=u64::MAX - 1, Order::Ascending, usize::MAX)
    }

    /// The newest `count` entries, in order of seq.
    ///
    /// # Errors
    /// As [`Store::entries`].
    pub fn newest_entries(&self, name: impl Into<Name>, count: usize) -> Result<Vec<Entry>> {
        let name = name.into();
        let mut entries = self.log.core().entries(name.id(), &name, 1..=u64::MAX - 1, Order::Descending, count)?;
        entries.reverse();
        Ok(entries)
    }

    /// Follows a conversation from a cursor on.
    ///
    /// # Errors
    /// As [`Store::entries_since`].
    pub fn tail(&self, name: impl Into<Name>, seq: u64) -> Result<Tail> {
        let name = name.into();
        let head = self.log.core().published_head(name.id())?.ok_or_else(|| Error::no_conversation(&name))?;
        self.check_cursor(&name, seq)?;
        Ok(Tail::new(Arc::clone(&self.log), name, head.incarnation, seq))
    }

    fn check_cursor(&self, name: &Name, seq: u64) -> Result<()> {
        let item = self.describe(name)?;
        if seq <= item.last_seq {
            return Ok(());
        }
        Err(Error::CursorOutOfRange { conversation: name.clone(), cursor: seq, last_seq: item.last_seq })
    }

    /// What the list says of one conversation: title, key, times, last seq, parent.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt`; `Io`.
    pub fn describe(&self, name: impl Into<Name>) -> Result<ListItem> {
        let name = name.into();
        self.log.core().describe(name.id())?.ok_or_else(|| Error::no_conversation(&name))
    }

    /// Where a provider's item id stands in a conversation: the id of a chunk ([`crate::model::Chunk::id`]) or of a message
    /// ([`Metadata::id`]). Of several the first that no rewind hides. A fork knows what it shares with its parent.
    ///
    /// ```
    /// use conversation_store::Store;
    /// use conversation_store::model::{Chunk, Message};
    ///
    /// let store = Store::open("memory:")?;
    /// let thought = Chunk { id: Some("rs_1".to_owned()), ..Chunk::thinking("Hm.") };
    /// store.append("chat", &[Message::user("hello"), Message::assistant([thought])])?;
    /// let item = store.find_item("chat", "rs_1")?;
    /// assert_eq!(item.map(|item| (item.message_index, item.chunk_index)), Some((1, Some(0))));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// Cost: a look into the index, and reading the record that it names.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation; `Corrupt`; `Io`.
    pub fn find_item(&self, name: impl Into<Name>, item_id: &str) -> Result<Option<Item>> {
        self.log.core().find_item(&name.into(), item_id)
    }

    /// Where a provider's item id stands in all conversations, by their ids. Cost: a look into the index for each
    /// conversation.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub fn find_item_everywhere(&self, item_id: &str) -> Result<Vec<Item>> {
        self.log.core().find_everywhere(item_id)
    }

    /// A page of the list of conversations, newest activity first. Cost: one read an item; see
    /// [`ListQuery`] for filters.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub fn list(&self, query: &ListQuery) -> Result<ListPage> {
        self.log.core().list(query)
    }

    /// Sets a conversation's title; `None` gives it back to the first user text. Durable.
    ///
    /// # Errors
    /// `NotFound`; `LimitExceeded` above 1 KiB; `Poisoned`.
    pub fn set_title(&self, name: impl Into<Name>, title: Option<&str>) -> Result<Receipt> {
        self.log.core().set_title(&name.into(), title)
    }

    /// Adds tags to a conversation, and gives all that it has now, in the order in which they were added. Durable. A fork
    /// begins with those of its parent.
    ///
    /// ```
    /// use conversation_store::model::Message;
    /// use conversation_store::{ListQuery, Store};
    ///
    /// let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::user("hello")])?;
    /// assert_eq!(store.tag("chat", &["work", "later"])?, ["work", "later"]);
    /// assert_eq!(store.list(&ListQuery::new().with_tag("work"))?.items.len(), 1);
    /// assert_eq!(store.untag("chat", &["work"])?, ["later"]);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` for a blank tag; `LimitExceeded` above 32 tags or 1 KiB for one; `Poisoned`.
    pub fn tag(&self, name: impl Into<Name>, tags: &[&str]) -> Result<Vec<String>> {
        self.log.core().change_tags(&name.into(), &[], tags)
    }

    /// Removes tags from a conversation, and gives those that it still has. Durable.
    ///
    /// # Errors
    /// `NotFound`; `Poisoned`.
    pub fn untag(&self, name: impl Into<Name>, tags: &[&str]) -> Result<Vec<String>> {
        self.log.core().change_tags(&name.into(), tags, &[])
    }

    /// Hides every message with an index of `to` or above that exists now: edit, regenerate. Durable. The entries stay.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation, or no visible message of that index; `Poisoned`.
    pub fn rewind(&self, name: impl Into<Name>, to: u64) -> Result<Receipt> {
        self.log.core().rewind(&name.into(), to)
    }

    /// Hides one message, or one chunk of it, from [`Store::load`], prompts and item look-ups. Durable. The log keeps it until
    /// [`Store::redact`] erases it.
    ///
    /// ```
    /// use conversation_store::Store;
    /// use conversation_store::model::Message;
    ///
    /// let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::user("one"), Message::user("two")])?;
    /// store.remove("chat", 0, None)?;
    /// assert_eq!(store.load("chat")?.messages()[0].index, 1);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// Cost: reading the conversation, and one durable append.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation, or no such visible message or chunk; `InvalidInput` while the message is
    /// being written; `Poisoned`.
    pub fn remove(&self, name: impl Into<Name>, message_index: u64, chunk_index: Option<u32>) -> Result<Receipt> {
        self.log.core().remove(&name.into(), message_index, chunk_index)
    }

    /// Lets prompts use a summary in place of all messages up to `through`; system messages stay beside it. Durable. The
    /// messages stay too: [`Store::load`] gives them, and the summary as [`Conversation::summary`].
    ///
    /// The newest summary counts. A rewind into what it covers undoes it, and the one before counts again. Where the
    /// summary comes from is the caller's matter; this crate calls no model.
    ///
    /// ```
    /// use conversation_store::Store;
    /// use conversation_store::model::Message;
    /// use conversation_store::provider::{PromptOptions, Target, render};
    ///
    /// let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::user("My name is Ada."), Message::user("What is my name?")])?;
    /// store.summarize("chat", 0, "The user's name is Ada.")?;
    /// let prompt = render(Target::OPENAI_CHAT, &store.load("chat")?, &PromptOptions::new())?;
    /// assert!(prompt.request.get().contains("The user's name is Ada."));
    /// assert!(!prompt.request.get().contains("My name is Ada."));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// Cost: reading the conversation.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation, or no visible message `through`; `InvalidInput` for a blank summary,
    /// while a message that it would cover is being written, and if it would part a tool call from its result, or cover
    /// one that is still to be answered; `LimitExceeded`; `Poisoned`.
    pub fn summarize(&self, name: impl Into<Name>, through: u64, summary: &str) -> Result<Receipt> {
        let name = name.into();
        if let Some(message) = self.load(&name)?.parted_call(through) {
            let detail = format!(
                "message {message} calls a tool whose result comes behind message {through}, or is still to come: cover \
                 the result too, or end before the call"
            );
            return Err(Error::InvalidInput(detail));
        }
        self.log.core().summarize(&name, through, summary)
    }

    /// Makes a new conversation that shares this one's entries up to `at_seq` (all, if it is `None`), and gives its id.
    /// Durable. Costs the same whatever the length.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation or seq; `Poisoned`.
    pub fn fork(&self, name: impl Into<Name>, at_seq: Option<u64>) -> Result<ConversationId> {
        let id = ConversationId::new();
        self.fork_to(name, at_seq, id)?;
        Ok(id)
    }

    /// As [`Store::fork`], under a name of the caller's.
    ///
    /// # Errors
    /// As [`Store::fork`]; `Conflict` if there is a conversation of that name.
    pub fn fork_to(&self, name: impl Into<Name>, at_seq: Option<u64>, child: impl Into<Name>) -> Result<()> {
        self.log.core().fork(&name.into(), at_seq, &child.into())
    }

    /// Erases a conversation. Durable. Its id may then be used anew, from seq 1 on. The engine may keep the freed bytes
    /// until it reuses them.
    ///
    /// Of a conversation that has forks, what lies behind the highest fork point is erased at once, and the rest with the
    /// last fork: until then its id is not free.
    ///
    /// # Errors
    /// `NotFound`; `Poisoned`.
    pub fn delete(&self, name: impl Into<Name>) -> Result<()> {
        self.log.core().delete(&name.into())
    }

    /// Erases the content of a message, or of one chunk of it, for good: texts, arguments, results, images, native data,
    /// unknown fields, a title that came from it. Role, indices, call ids and tool names stay. Durable. All forks that
    /// share the message are affected; backups, and bytes that the engine freed and has not reused, are not.
    ///
    /// Cost: reading the conversation, and writing the message's records again.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` while the message is being written; `Poisoned`.
    pub fn redact(&self, name: impl Into<Name>, message_index: u64, chunk_index: Option<u32>) -> Result<Redaction> {
        self.log.core().redact(&name.into(), message_index, chunk_index)
    }

    /// Reads everything and compares what can be derived again. `progress` is called with conversations done and in all.
    ///
    /// # Errors
    /// `Io`. What is damaged is no error, but a [`crate::Problem`].
    pub fn verify(&self, mut progress: impl FnMut(u64, u64)) -> Result<Verification> {
        self.log.core().verify(&mut progress)
    }

    /// What keeps the store from being written, and what was lost: found on opening, or since.
    ///
    /// ```
    /// # let store = conversation_store::Store::open("memory:")?;
    /// assert_eq!(store.health(), conversation_store::Health::default());
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    #[must_use]
    pub fn health(&self) -> Health {
        self.log.core().health()
    }

    /// Writes everything that is durable to a new file: framed, checksummed, compressed. The store goes on being used;
    /// forks, deletions and redactions wait. `progress` is called with conversations done and in all.
    ///
    /// The file is read with the URL `backup:FILE`, all of it in memory, or made a store again by [`Store::restore`],
    /// which is also the way to be rid of bytes that the engine freed and keeps.
    ///
    /// ```
    /// # use conversation_store::{Store, model::Message};
    /// # let dir = std::env::temp_dir().join(format!("backup-example-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let file = dir.join("chats.backup");
    /// # let _ = std::fs::remove_file(&file);
    /// let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::user("hello")])?;
    /// store.backup(&file, |_, _| ())?;
    /// let backup = Store::open(&format!("backup:{}", file.display()))?;
    /// assert_eq!(backup.load("chat")?.messages().len(), 1);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` if the file exists; `Corrupt` if a head is damaged; `Io`.
    pub fn backup(&self, file: impl AsRef<Path>, mut progress: impl FnMut(u64, u64)) -> Result<BackupSummary> {
        self.log.core().backup(file.as_ref(), &mut progress)
    }

    /// Makes a new store from a backup, on any engine that has a directory. The file is read twice: nothing is made of a damaged one. `progress`
    /// is called with bytes read and in all.
    ///
    /// # Errors
    /// `InvalidInput` if there is a store at the URL, or it is `memory:`; `Corrupt` if the backup is damaged or cut off; `Io`.
    pub fn restore(file: impl AsRef<Path>, url: &str, mut progress: impl FnMut(u64, u64)) -> Result<BackupSummary> {
        let file = file.as_ref();
        if url.starts_with("memory:") {
            let shown = file.display();
            let text =
                format!("a store in memory would be gone at once: open backup:{shown} to read the backup as it is");
            return Err(Error::InvalidInput(text));
        }
        embedded::check_backup(file, &mut |done, all| progress(done, 2 * all))?;
        let engine = engine::open(url)?;
        let summary = embedded::restore(file, &engine, &mut |done, all| progress(all + done, 2 * all))?;
        // The first opening marks the directory as a store.
        drop(engine);
        Self::open(url)?.close()?;
        Ok(summary)
    }

    /// Returns once everything that was appended before, buffered or not, survives a power cut.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn sync(&self) -> Result<()> {
        self.log.flush()
    }

    /// Makes everything durable and ends writing, for all clones. Dropping the last clone does the same, but cannot tell
    /// what went wrong.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn close(&self) -> Result<()> {
        self.log.close()
    }
}

fn inclusive(range: &impl RangeBounds<u64>) -> RangeInclusive<u64> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(start) => start.saturating_add(1),
        Bound::Unbounded => 1,
    };
    let end = match range.end_bound() {
        Bound::Included(end) => *end,
        Bound::Excluded(end) => end.saturating_sub(1),
        Bound::Unbounded => u64::MAX - 1,
    };
    start.max(1)..=end.min(u64::MAX - 1)
}
