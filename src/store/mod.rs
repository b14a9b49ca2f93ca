//! What a user opens: [`Store`], and what it gives to write ([`MessageWriter`]) and to follow ([`Tail`]). A store knows its
//! log by [`Log`] alone; `open` chooses it.

mod change;
#[cfg(feature = "server")]
mod delivery;
mod open;
mod prune;
mod read;
mod tail;
mod usage;
mod writer;

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::log::{AppendOptions, Changes, Log, NewConversation, OpenMessage, Receipt};
use crate::model::{Message, Metadata, Name, Role};

#[cfg(feature = "server")]
pub(crate) use delivery::Delivery;
pub use open::StoreOptions;
pub use prune::{Pruned, Retention};
#[cfg(feature = "server")]
pub(crate) use tail::number_follower;
pub use tail::{StopHandle, Tail};
#[cfg(feature = "server")]
pub(crate) use usage::{Counting, MOST_READ, QUEUED};
pub use usage::{Usage, UsageBy, UsagePage, UsageQuery};
pub use writer::{Begun, MessageWriter};

/// Conversations, kept.
///
/// A `Store` is a handle: clones share one open store. All calls block; an async server calls them in its runtime's
/// `spawn_blocking`. One process can have an embedded store open at a time.
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
///
/// # Errors
/// Each call lists its errors. Any call may also fail with `Io`, and with `Busy` if the store is in PostgreSQL or a
/// server has it, and there is no room for the call now.
#[derive(Clone)]
pub struct Store {
    log: Arc<dyn Log>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.log.fmt(f)
    }
}

impl Store {
    /// The log itself.
    #[cfg(feature = "server")]
    pub(crate) fn log(&self) -> &dyn Log {
        &*self.log
    }

    /// The same store, whose calls go through a log around its own.
    #[cfg(feature = "server")]
    pub(crate) fn around<L: Log + 'static>(self, outer: impl FnOnce(Arc<dyn Log>) -> L) -> Self {
        Self { log: Arc::new(outer(self.log)) }
    }

    /// Opens a store, creating it if there is none. Where it is, as a URL:
    ///
    /// | URL | what it is |
    /// |---|---|
    /// | `sled:PATH` | a directory (feature `sled`) |
    /// | `fjall:PATH` | a directory (feature `fjall`) |
    /// | `postgres://USER:PASSWORD@HOST:PORT/DATABASE` | a database, which many processes may have open (feature `postgres`): [`crate::documentation::postgres`] |
    /// | `shards:FILE` | several such databases, which the file lists (feature `postgres`): [`crate::documentation::postgres`] |
    /// | `http://HOST:PORT`, `https://HOST` | the store of a server, with the key in `CONVO_KEY`, or in a file: `?key_file=FILE` (feature `client`): [`crate::documentation::http_api`] |
    /// | `backup:FILE` | a backup, all of it in memory, for reading only |
    /// | `memory:` | a new store that forgets all when it is dropped |
    ///
    /// Options follow a `?`, with `&` between them: `sled:chats.db?cache_mb=128`. Both embedded engines have two:
    ///
    /// | option | default | what it is |
    /// |---|---|---|
    /// | `cache_mb` | sled 64, fjall 32 | size of the engine's cache in MiB. A process took 332 to 438 MiB with sled's default, 248 to 273 with fjall's; with `MALLOC_ARENA_MAX=1`, sled 280: [`crate::documentation::performance`] |
    /// | `sync` | `always` | **`never` is unsafe**: nothing is synced, and a power cut takes what was acknowledged, or the whole store. For throw-away stores, and for the tests, which have to notice |
    ///
    /// # Errors
    /// `InvalidInput` if the URL is none, or the path is no store; `Busy` if another process has it open;
    /// `UnsupportedVersion` if a newer version of this crate wrote it; `Corrupt` if it is damaged; `Io`, also if no server
    /// answers.
    pub fn open(url: &str) -> Result<Self> {
        StoreOptions::new().open(url)
    }

    /// The owner whose conversations a key means if it names none. It is empty, for conversations that were made without an
    /// owner. For the store of a server, it is the owner of the server's key.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.log.owner()
    }

    /// Appends messages, all or none of them. Returns when they survive a power cut.
    ///
    /// The conversation is made if there is none of that name. Cost: one write of the messages' bytes, and one fdatasync
    /// shared with all appends that wait at the same time.
    ///
    /// ```
    /// use conversation_store::Store;
    /// use conversation_store::model::{Chunk, Message};
    ///
    /// let store = Store::open("memory:")?;
    /// let turn = [Message::user("Add 2 and 3"), Message::assistant([Chunk::text("5")])];
    /// let receipt = store.append("chat", &turn)?;
    /// assert_eq!((receipt.message_indexes, receipt.last_seq), (vec![0, 1], 2));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for no messages; `LimitExceeded`; `SharedByForks`; `OutcomeUnknown` if this write failed, `Poisoned` if
    /// one before it did; `ReadOnly`; `Closed`.
    pub fn append(&self, name: impl Into<Name>, messages: &[Message]) -> Result<Receipt> {
        self.append_with(name, messages, &AppendOptions::new())
    }

    /// Appends messages with an expectation, an idempotency key, or buffered.
    ///
    /// The key is checked first: a repetition gets the first receipt, marked [`Receipt::duplicate`], even if the
    /// expectation would fail.
    ///
    /// ```
    /// use conversation_store::model::Message;
    /// use conversation_store::{AppendOptions, Error, ExpectedHead, Store};
    ///
    /// let store = Store::open("memory:")?;
    /// let seen = store.append("chat", &[Message::user("hello")])?.last_seq;
    /// let options = AppendOptions::new().with_expected(ExpectedHead::At(seen)).with_idempotency_key("request-7");
    /// let first = store.append_with("chat", &[Message::user("and one more")], &options)?;
    /// // The connection broke before the answer came: the same call again stores nothing.
    /// let again = store.append_with("chat", &[Message::user("and one more")], &options)?;
    /// assert_eq!((again.duplicate, again.last_seq), (true, first.last_seq));
    /// // Another tab, which saw the same head, has to load what is new first.
    /// let late = AppendOptions::new().with_expected(ExpectedHead::At(seen));
    /// assert!(matches!(store.append_with("chat", &[Message::user("bye")], &late), Err(Error::StaleHead { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::append`]; `StaleHead` if the conversation does not end where it is expected to, and `NameTaken` if it is
    /// expected to be new; `KeyReused` if the key was used with other content.
    pub fn append_with(&self, name: impl Into<Name>, messages: &[Message], options: &AppendOptions) -> Result<Receipt> {
        self.ask(name, |log, name| {
            let span = tracing::debug_span!("append", conversation = %name.id(), messages = messages.len());
            span.in_scope(|| log.append(name, messages, &Changes::new(), options))
        })
    }

    /// As [`Store::append_with`], and changes the conversation's title, tags and metadata in the same write. Either all of it
    /// is stored, or nothing. Without messages, it is a change with an expectation or an idempotency key. Always durable.
    ///
    /// ```
    /// use conversation_store::model::{Json, Message};
    /// use conversation_store::{AppendOptions, Changes, Error, ExpectedHead, Store};
    ///
    /// let store = Store::open("memory:")?;
    /// let changes = Changes::new().with_metadata(Json::new("{\"step\":1}").unwrap()).with_tag("open");
    /// let said = store.append_changing("chat", &[Message::user("hello")], &changes, &AppendOptions::new())?;
    /// let at = AppendOptions::new().with_expected(ExpectedHead::At(said.last_seq));
    /// store.append_changing("chat", &[], &Changes::new().with_metadata(Json::new("{\"step\":2}").unwrap()), &at)?;
    /// assert!(matches!(store.append_changing("chat", &[], &changes, &at), Err(Error::StaleHead { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::append_with`]; `InvalidInput` for a blank tag, metadata that is no object, and if there is nothing to write;
    /// `LimitExceeded`.
    pub fn append_changing(
        &self,
        name: impl Into<Name>,
        messages: &[Message],
        changes: &Changes,
        options: &AppendOptions,
    ) -> Result<Receipt> {
        self.ask(name, |log, name| {
            let span = tracing::debug_span!("append", conversation = %name.id(), messages = messages.len());
            span.in_scope(|| log.append(name, messages, changes, options))
        })
    }

    /// Begins a message that is written as it is made. It takes its index now: what is appended meanwhile comes after it.
    ///
    /// ```
    /// use conversation_store::model::{Chunk, FinishReason, Metadata, Role};
    /// use conversation_store::{MessageState, Store};
    ///
    /// let store = Store::open("memory:")?;
    /// let mut answer = store.begin("chat", Role::Assistant, Metadata::default())?;
    /// answer.push(0, Chunk::text("Hel"))?;
    /// answer.push(0, Chunk::text("lo"))?;
    /// answer.finish(Some(FinishReason::Stop), None)?;
    /// let conversation = store.load("chat")?;
    /// assert_eq!(conversation.messages()[0].message.chunks, [Chunk::text("Hello")]);
    /// assert_eq!(conversation.messages()[0].state, MessageState::Complete);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn begin(&self, name: impl Into<Name>, role: Role, metadata: Metadata) -> Result<MessageWriter> {
        let (message, receipt) = self.begun(name, role, metadata, &AppendOptions::new())?;
        let cause = "the log answered a begin that has no idempotency key as a repetition";
        let message = message.ok_or_else(|| Error::OutcomeUnknown { cause: cause.to_owned() })?;
        Ok(MessageWriter::new(message, receipt))
    }

    /// As [`Store::begin`], with an expectation and an idempotency key. If two tabs ask at once, one of them begins the
    /// answer. The key is checked first, as in [`Store::append_with`]. It belongs to this role and metadata. A begin is
    /// always durable, whatever the options' durability is.
    ///
    /// ```
    /// use conversation_store::model::{Chunk, Message, Metadata, Role};
    /// use conversation_store::{AppendOptions, Begun, Error, ExpectedHead, Store};
    ///
    /// let store = Store::open("memory:")?;
    /// let asked = store.append("chat", &[Message::user("hello")])?;
    /// let begin = |key: &str| {
    ///     let options = AppendOptions::new().with_expected(ExpectedHead::At(asked.last_seq)).with_idempotency_key(key);
    ///     store.begin_with("chat", Role::Assistant, Metadata::default(), &options)
    /// };
    /// let Begun::Writer(mut answer) = begin("request-7")? else { panic!("nobody used the key before") };
    /// // The same request again, and another one that answers the same message.
    /// assert!(matches!(begin("request-7")?, Begun::Duplicate(receipt) if receipt.first_seq == answer.first_seq()));
    /// assert!(matches!(begin("request-8"), Err(Error::StaleHead { .. })));
    /// answer.push(0, Chunk::text("Hello!"))?;
    /// answer.finish(None, None)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::append_with`].
    pub fn begin_with(
        &self,
        name: impl Into<Name>,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<Begun> {
        let (message, receipt) = self.begun(name, role, metadata, options)?;
        Ok(match message {
            Some(message) => Begun::Writer(MessageWriter::new(message, receipt)),
            None => Begun::Duplicate(receipt),
        })
    }

    /// Makes a conversation without messages. Durable. An append makes one too: this is for those that need a title, tags or
    /// metadata before there is a message.
    ///
    /// ```
    /// use conversation_store::{NewConversation, Store};
    /// use conversation_store::model::Name;
    ///
    /// let store = Store::open("memory:")?;
    /// let name = Name::from("plans").with_owner("ada");
    /// store.create(&name, &NewConversation::new().with_title("Plans"))?;
    /// assert_eq!(store.describe(&name)?.title.as_deref(), Some("Plans"));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NameTaken` if there is a conversation of that name; `SharedByForks`; `InvalidInput`; `LimitExceeded`; `Poisoned`.
    pub fn create(&self, name: impl Into<Name>, conversation: &NewConversation) -> Result<Receipt> {
        self.ask(name, |log, name| log.create(name, conversation))
    }

    fn begun(
        &self,
        name: impl Into<Name>,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Box<dyn OpenMessage>>, Receipt)> {
        self.ask(name, |log, name| {
            let span = tracing::debug_span!("begin", conversation = %name.id());
            span.in_scope(|| log.begin(name, role, metadata, options))
        })
    }

    /// Asks the log about a conversation. Damage to it is reported under the caller's name.
    fn ask<T>(&self, name: impl Into<Name>, question: impl FnOnce(&dyn Log, &Name) -> Result<T>) -> Result<T> {
        let name = name.into();
        question(&*self.log, &name).map_err(|error| error.named(&name))
    }

    /// Returns once everything that was appended before, buffered or not, survives a power cut.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn sync(&self) -> Result<()> {
        self.log.sync()
    }

    /// Makes everything durable and ends writing, for all clones. Dropping the last clone does the same, but cannot
    /// report an error. An embedded store can be opened again once its last clone is dropped: until then it can be read.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn close(&self) -> Result<()> {
        self.log.close()
    }
}
