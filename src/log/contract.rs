//! The contract between a store and its log: the calls, what readers see and wait for, and what control entries do.
//! `Around` is a log around another one, and implements only the calls that differ.

use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::limits::{check_metadata, check_name, check_summary};
use super::list::{ListPage, ListQuery};
use super::options::{AppendOptions, Changes, ForkAt, NewConversation};
use super::results::{BackupSummary, Health, Receipt, Redaction, Size, Verification};
use crate::error::{Error, Result};
use crate::history::Cursor;
use crate::model::{Chunk, ConversationId, FinishReason, Json, Message, Metadata, Name, Role, Timestamp};
use crate::record::{Head, Record};

/// A log of conversations. All calls block, and may be made from any thread.
///
/// A name with an owner means only that owner's conversations. Readers see what is durable.
pub(crate) trait Log: Send + Sync + fmt::Debug {
    /// Whose conversations are meant where no owner is named.
    fn owner(&self) -> &str {
        ""
    }

    /// Appends messages, and changes the conversation as a whole. Either all of it is stored, or nothing. The idempotency key
    /// is checked first, then the expectation. An append with changes is durable, whatever the options say.
    fn append(&self, name: &Name, messages: &[Message], changes: &Changes, options: &AppendOptions) -> Result<Receipt>;

    /// Begins a message. Durable. As for an append, the idempotency key is checked first, then the expectation. If the
    /// key was used before, there is no message, and the receipt is the one of that time.
    fn begin(
        &self,
        name: &Name,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Box<dyn OpenMessage>>, Receipt)>;

    /// Makes a conversation without messages. Durable.
    fn create(&self, name: &Name, conversation: &NewConversation) -> Result<Receipt>;

    /// Writes an entry about a conversation as a whole, or about messages that are there: what
    /// [`super::decision::decide`] makes of it, against a head that nobody moves meanwhile. Durable.
    fn control(&self, name: &Name, control: &Control<'_>) -> Result<Controlled>;

    /// Makes a conversation that shares the entries of another one. Durable.
    fn fork(&self, parent: &Name, at: ForkAt, child: &Name) -> Result<()>;

    /// Erases a conversation as far as no fork reads it, if it ends at this cursor. Durable.
    fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()>;

    /// Erases the content of a message, or of one chunk of it. Durable.
    fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction>;

    /// What readers see of a conversation now.
    fn view(&self, name: &Name) -> Result<Option<View>>;

    /// Shows the records that hold the seqs of a range of a view, in this order.
    fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()>;

    /// Whether the conversation of a view is still there, so that what could not be read of it is damaged.
    fn is_there(&self, view: &View) -> Result<bool>;

    /// Whether something that a view shows was redacted after a commit, or may have been. The redaction may have gone
    /// through another conversation.
    fn is_redacted_since(&self, view: &View, commit: u64) -> Result<bool>;

    /// The seqs of entries that may bear a provider's item id, in order: so many of the last. A log that is not on another server
    /// reads no more of them.
    fn item_seqs(&self, view: &View, item: &str, most: usize) -> Result<Vec<u64>>;

    /// All conversations, for look-ups that go through all of them.
    fn conversations(&self) -> Result<Vec<ConversationId>>;

    /// A page of the list of conversations of one owner.
    fn list(&self, query: &ListQuery) -> Result<ListPage>;

    /// The conversations with messages that are not finished, by their ids.
    fn unfinished(&self) -> Result<Vec<ConversationId>>;

    /// Waits until a conversation's incarnation has an entry after a seq. False: the timeout passed, or it was stopped.
    fn wait_for(&self, wait: &Wait<'_>) -> Result<bool>;

    /// As [`Log::wait_for`], for a follower that does not block: it is woken when it should ask again, once for each time
    /// that it asked. Followers are numbered by their makers.
    fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>>;

    /// Wakes one follower, and forgets it until it asks again.
    fn wake(&self, name: &Name, follower: u64);

    /// Returns once all that was accepted before is durable.
    fn sync(&self) -> Result<()>;

    /// Makes all durable that was accepted, takes no more writes, and wakes all who wait.
    fn close(&self) -> Result<()>;

    /// What keeps the log from being written, and what was lost.
    fn health(&self) -> Health;

    /// How much the log holds.
    fn size(&self) -> Result<Size>;

    /// Derives again what can be derived, and compares; `progress` is called with conversations done, and of all.
    fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification>;

    /// Writes all that is durable to a new file; `progress` is called with conversations done, and of all.
    fn backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary>;
}

/// A message that is being written. Dropped, it is interrupted.
pub(crate) trait OpenMessage: Send + fmt::Debug {
    /// Its index.
    fn index(&self) -> u64;

    /// Adds to a chunk. What is added is durable within the window.
    fn push(&self, chunk_index: u32, delta: Chunk) -> Result<()>;

    /// Closes it. Durable.
    fn finish(&self, reason: Option<FinishReason>, usage: Option<Json>, metadata: Metadata) -> Result<Receipt>;
}

/// Where a store's times come from.
pub(crate) type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How a log is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Nothing is written, not even that the store was opened.
    pub(crate) read_only: bool,
    /// A store that went back is written on from where it is.
    pub(crate) accept_loss: bool,
}

/// A conversation as readers see it at one moment.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) id: ConversationId,
    pub(crate) head: Arc<Head>,
    /// The messages whose writers live.
    pub(crate) live: Vec<u64>,
    /// Which opening of the log this is.
    pub(crate) epoch: u64,
    /// The last commit when it was taken.
    pub(crate) commit: u64,
    /// The last commit whose records belong to it.
    pub(crate) through: u64,
}

impl View {
    /// The last seq.
    pub(crate) fn last_seq(&self) -> u64 {
        self.head.next_seq.saturating_sub(1)
    }
}

/// What a reader is shown.
#[derive(Debug)]
pub(crate) enum Reading<'a> {
    /// A record; entries above `last` do not belong to the conversation. `own` unless it is an ancestor's.
    Record { record: &'a Record<'a>, last: u64, own: bool },
    /// Entries from this error's seq on cannot be read; later records may follow.
    Damaged(Error),
    /// A value under this conversation's name that is none of its records: nothing of the conversation is missing here.
    Stray(Error),
}

/// What a log calls for each record, until it breaks.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(Reading<'_>) -> ControlFlow<()>;

/// An order of seqs, or of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Ascending,
    Descending,
}

/// What somebody waits for.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    pub(crate) name: &'a Name,
    pub(crate) incarnation: u64,
    /// The last seq that is known.
    pub(crate) seq: u64,
    pub(crate) timeout: Duration,
    pub(crate) stopped: &'a AtomicBool,
}

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

/// One list of the calls makes both: `Around`, whose calls go to the other log by default, and [`Log`] for each type that is
/// an `Around`. If a call that has no default in the contract is missing here, the crate does not compile.
macro_rules! around {
    ($(fn $call:ident(&self $(, $given:ident: $type:ty)*) $(-> $answer:ty)?;)*) => {
        /// A log around another one. It is a [`Log`]. A call that it does not implement goes to the other log.
        pub(crate) trait Around: Send + Sync + fmt::Debug {
            /// The other one.
            fn log(&self) -> &dyn Log;
            $(fn $call(&self $(, $given: $type)*) $(-> $answer)? { self.log().$call($($given),*) })*
        }

        impl<A: Around> Log for A {
            $(fn $call(&self $(, $given: $type)*) $(-> $answer)? { Around::$call(self $(, $given)*) })*
        }
    };
}

around! {
    fn owner(&self) -> &str;
    fn append(&self, name: &Name, messages: &[Message], changes: &Changes, options: &AppendOptions) -> Result<Receipt>;
    fn begin(&self, name: &Name, role: Role, metadata: Metadata, options: &AppendOptions)
        -> Result<(Option<Box<dyn OpenMessage>>, Receipt)>;
    fn create(&self, name: &Name, conversation: &NewConversation) -> Result<Receipt>;
    fn control(&self, name: &Name, control: &Control<'_>) -> Result<Controlled>;
    fn fork(&self, parent: &Name, at: ForkAt, child: &Name) -> Result<()>;
    fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()>;
    fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction>;
    fn view(&self, name: &Name) -> Result<Option<View>>;
    fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()>;
    fn is_there(&self, view: &View) -> Result<bool>;
    fn is_redacted_since(&self, view: &View, commit: u64) -> Result<bool>;
    fn item_seqs(&self, view: &View, item: &str, most: usize) -> Result<Vec<u64>>;
    fn conversations(&self) -> Result<Vec<ConversationId>>;
    fn list(&self, query: &ListQuery) -> Result<ListPage>;
    fn unfinished(&self) -> Result<Vec<ConversationId>>;
    fn wait_for(&self, wait: &Wait<'_>) -> Result<bool>;
    fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>>;
    fn wake(&self, name: &Name, follower: u64);
    fn sync(&self) -> Result<()>;
    fn close(&self) -> Result<()>;
    fn health(&self) -> Health;
    fn size(&self) -> Result<Size>;
    fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification>;
    fn backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary>;
}
