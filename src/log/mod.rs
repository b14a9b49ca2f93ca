//! What a store asks of a log, and what every log does alike.
//!
//! A log keeps conversations durably and in order; what they mean is not its matter. [`Log`] is the seam: [`crate::Store`]
//! knows nothing else of it. To add a log: a folder beside `embedded/` that implements [`Log`] and passes `conformance/`,
//! and a row in `store/open.rs`.
//!
//! What every log does alike stands here, once: limits, the order of the list, titles, what control entries do, and reading
//! ([`reading`]): entries, messages, what is hidden.

pub(crate) mod control;
pub(crate) mod health;
pub(crate) mod limits;
pub(crate) mod list;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod reading;
pub(crate) mod results;
pub(crate) mod terms;
pub(crate) mod title;
pub(crate) mod verification;

use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::{Chunk, ConversationId, FinishReason, Json, Message, Metadata, Name, Role};
use crate::record::{Head, Record};

pub(crate) use control::{Control, Controlled};
pub use health::Health;
pub use limits::Limits;
pub use list::{Fork, ListCursor, ListItem, ListPage, ListQuery};
pub use options::{AppendOptions, Durability, ExpectedHead, NewConversation};
pub use results::{BackupSummary, Item, Receipt, Redaction, Unfinished};
pub use verification::{Problem, Verification};

/// A log of conversations. All calls block, and may be made from any thread.
///
/// A name with an owner means only that owner's conversations. Readers see what is durable.
pub(crate) trait Log: Send + Sync + fmt::Debug {
    /// Appends messages, all or none of them. The idempotency key is looked at first, then what is expected.
    fn append(&self, name: &Name, messages: &[Message], options: &AppendOptions) -> Result<Receipt>;

    /// Begins a message, as an append is taken: its idempotency key is looked at first, then what is expected. Without a
    /// message: the key was used before, and this is the receipt of then. Durable.
    fn begin(
        &self,
        name: &Name,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Box<dyn OpenMessage>>, Receipt)>;

    /// Makes a conversation without messages. Durable.
    fn create(&self, name: &Name, conversation: &NewConversation) -> Result<Receipt>;

    /// Writes an entry about a conversation as a whole, or about messages that are there: what [`control::decide`] makes of
    /// it, against a head that nobody moves meanwhile. Durable.
    fn control(&self, name: &Name, control: &Control<'_>) -> Result<Controlled>;

    /// Makes a conversation that shares the entries up to `at_seq` (all, if it is `None`). Durable.
    fn fork(&self, parent: &Name, at_seq: Option<u64>, child: &Name) -> Result<()>;

    /// Erases a conversation as far as no fork reads it. Durable.
    fn delete(&self, name: &Name) -> Result<()>;

    /// Erases the content of a message, or of one chunk of it. Durable.
    fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction>;

    /// What readers see of a conversation now.
    fn view(&self, name: &Name) -> Result<Option<View>>;

    /// Shows the records that hold the seqs of a range of a view, in this order.
    fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()>;

    /// Whether the conversation of a view is still there, so that what could not be read of it is damaged.
    fn is_there(&self, view: &View) -> Result<bool>;

    /// The seqs of entries that may bear a provider's item id, in order.
    fn item_seqs(&self, view: &View, item: &str) -> Result<Vec<u64>>;

    /// All conversations, for look-ups that go through all of them.
    fn conversations(&self) -> Result<Vec<ConversationId>>;

    /// A page of the list of conversations of one owner.
    fn list(&self, query: &ListQuery) -> Result<ListPage>;

    /// The conversations with messages that are not finished, by their ids.
    fn unfinished(&self) -> Result<Vec<ConversationId>>;

    /// Waits until a conversation's incarnation has an entry after a seq. False: the timeout passed, or it was stopped.
    fn wait_for(&self, wait: &reading::Wait<'_>) -> Result<bool>;

    /// Lets all who wait look again.
    fn wake(&self);

    /// Returns once all that was accepted before is durable.
    fn sync(&self) -> Result<()>;

    /// Makes all durable that was accepted, takes no more writes, and wakes all who wait.
    fn close(&self) -> Result<()>;

    /// What keeps the log from being written, and what was lost.
    fn health(&self) -> Health;

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

/// A conversation as readers see it at one moment.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) id: ConversationId,
    pub(crate) head: Arc<Head>,
    /// The messages whose writers live.
    pub(crate) live: Vec<u64>,
    /// Which opening of the log this is.
    pub(crate) epoch: u64,
    /// The last commit that it is of.
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
