//! The seam between a store and its log.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::task::{Poll, Waker};

use super::control::{Control, Controlled};
use super::health::Health;
use super::list::{ListPage, ListQuery};
use super::options::{AppendOptions, NewConversation};
use super::results::{BackupSummary, Receipt, Redaction, Size};
use super::verification::Verification;
use super::view::{Order, View, Visit, Wait};
use crate::error::Result;
use crate::history::Cursor;
use crate::model::{Chunk, ConversationId, FinishReason, Json, Message, Metadata, Name, Role};

/// A log of conversations. All calls block, and may be made from any thread.
///
/// A name with an owner means only that owner's conversations. Readers see what is durable.
pub(crate) trait Log: Send + Sync + fmt::Debug {
    /// Whose conversations are meant where no owner is named.
    fn owner(&self) -> &str {
        ""
    }

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

    /// Writes an entry about a conversation as a whole, or about messages that are there: what
    /// [`super::decision::decide`] makes of it, against a head that nobody moves meanwhile. Durable.
    fn control(&self, name: &Name, control: &Control<'_>) -> Result<Controlled>;

    /// Makes a conversation that shares the entries up to `at_seq` (all, if it is `None`). Durable.
    fn fork(&self, parent: &Name, at_seq: Option<u64>, child: &Name) -> Result<()>;

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

    /// Whether something that a view shows was redacted after a commit, or may have been, through whichever conversation.
    fn is_redacted_since(&self, view: &View, commit: u64) -> Result<bool>;

    /// The seqs of entries that may bear a provider's item id, in order.
    fn item_seqs(&self, view: &View, item: &str) -> Result<Vec<u64>>;

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

    /// Lets one follower look again, and forgets it until it asks again.
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
