//! The log over several databases as a store sees it.

use std::ops::RangeInclusive;
use std::path::Path;
use std::task::{Poll, Waker};

use super::Sharded;
use crate::error::Result;
use crate::history::Cursor;
use crate::log::{
    AppendOptions, BackupSummary, Changes, Control, Controlled, ForkAt, Health, ListPage, ListQuery, Log,
    NewConversation, OpenMessage, Order, Receipt, Redaction, Size, Verification, View, Visit, Wait,
};
use crate::model::{ConversationId, Message, Metadata, Name, Role};
use crate::postgres::change::truncated;

impl Log for Sharded {
    fn append(&self, name: &Name, messages: &[Message], changes: &Changes, options: &AppendOptions) -> Result<Receipt> {
        self.ask_to_make(name, |log| log.append(name, messages, changes, options))
    }

    fn begin(
        &self,
        name: &Name,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Box<dyn OpenMessage>>, Receipt)> {
        self.ask_to_make(name, |log| log.begin(name, role, metadata.clone(), options))
    }

    fn create(&self, name: &Name, conversation: &NewConversation) -> Result<Receipt> {
        self.ask_to_make(name, |log| log.create(name, conversation))
    }

    fn control(&self, name: &Name, control: &Control<'_>) -> Result<Controlled> {
        self.ask(name.id(), |log| log.control(name, control), |_| false)
    }

    fn fork(&self, parent: &Name, at: ForkAt, child: &Name) -> Result<()> {
        self.fork(parent, at, child)
    }

    fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()> {
        if let Some((id, keep_to)) = self.ask(name.id(), |log| log.erase(name, at), |_| false)? {
            let cut = self.ask(id, |log| log.truncate(id, keep_to), |is_there| !is_there);
            truncated(id, cut);
        }
        Ok(())
    }

    fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction> {
        self.ask(name.id(), |log| log.redact(name, message, chunk), |_| false)
    }

    fn view(&self, name: &Name) -> Result<Option<View>> {
        self.ask(name.id(), |log| log.view(name), Option::is_none)
    }

    fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.read(view, seqs, order, visit)
    }

    fn is_there(&self, view: &View) -> Result<bool> {
        self.ask(view.id, |log| log.is_there(view), |is_there| !is_there)
    }

    fn is_redacted_since(&self, view: &View, commit: u64) -> Result<bool> {
        self.ask(view.id, |log| log.is_redacted_since(view, commit), |_| false)
    }

    fn item_seqs(&self, view: &View, item: &str, most: usize) -> Result<Vec<u64>> {
        self.item_seqs(view, item, most)
    }

    fn conversations(&self) -> Result<Vec<ConversationId>> {
        self.ids(Log::conversations)
    }

    fn list(&self, query: &ListQuery) -> Result<ListPage> {
        self.list(query)
    }

    fn unfinished(&self) -> Result<Vec<ConversationId>> {
        self.ids(Log::unfinished)
    }

    fn wait_for(&self, wait: &Wait<'_>) -> Result<bool> {
        self.wait_for(wait)
    }

    fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        self.poll_for(wait, follower, waker)
    }

    fn wake(&self, name: &Name, follower: u64) {
        // It may have asked where the conversation was before.
        self.clusters.iter().for_each(|cluster| cluster.log().wake(name, follower));
    }

    fn sync(&self) -> Result<()> {
        self.all(Log::sync)
    }

    fn close(&self) -> Result<()> {
        self.all(|cluster| cluster.close())
    }

    fn health(&self) -> Health {
        self.health()
    }

    fn size(&self) -> Result<Size> {
        self.size()
    }

    fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
        self.verify(progress)
    }

    fn backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
        if !self.health().closed {
            self.all(Log::sync)?;
        }
        self.backup(path, progress)
    }
}
