//! A log around another one, which writes only what it does differently.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::task::{Poll, Waker};

use super::contract::{Control, Controlled, Log, OpenMessage, Order, View, Visit, Wait};
use super::list::{ListPage, ListQuery};
use super::options::{AppendOptions, Changes, ForkAt, NewConversation};
use super::results::{BackupSummary, Health, Receipt, Redaction, Size, Verification};
use crate::error::Result;
use crate::history::Cursor;
use crate::model::{ConversationId, Message, Metadata, Name, Role};

/// One list of the calls makes both: what a call does unless the outer log says otherwise, and the log that the outer one is.
/// Without a call of the contract that has no default, it does not compile.
macro_rules! around {
    ($(fn $call:ident(&self $(, $given:ident: $type:ty)*) $(-> $answer:ty)?;)*) => {
        /// A log around another one: it is a [`Log`], and what it does not write itself, the other one does.
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
    fn item_seqs(&self, view: &View, item: &str) -> Result<Vec<u64>>;
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
