//! What a log means: entries to messages ([`group`]), messages to a [`Conversation`] that makes sense ([`reconcile`], which
//! reports by [`report`]), and what an agent loop must do next ([`next_step`]). Pure: nothing here reads or writes.

mod conversation;
mod entry;
mod group;
mod item_calls;
mod next_step;
mod reconcile;
pub(crate) mod report;
mod tool_calls;

pub(crate) use conversation::Source;
pub use conversation::{Conversation, Cursor};
pub use entry::{Entry, EntryHeader, EntryKind, Interruption};
pub(crate) use group::{Grouped, Grouper};
pub use group::{MessageState, StoredMessage, Summary};
pub use item_calls::ToolKind;
pub(crate) use item_calls::{answered, asked};
pub use next_step::{NextStep, PendingCall, next_step};
pub(crate) use reconcile::{Calls, NOT_RUN, OUTCOME_UNKNOWN, Site, is_cut_off, parted, speaks};
pub use report::{ReportLine, Rule, Severity};
pub use tool_calls::{ToolCalls, ToolChunk};
