//! The log on PostgreSQL as a store sees it.

use std::ops::RangeInclusive;
use std::path::Path;
use std::task::{Poll, Waker};

use super::Postgres;
use super::backup::Moment;
use super::change::{Attempts, Decided, truncated};
use super::{list, verify};
use crate::error::Result;
use crate::history::Cursor;
use crate::log::segments::Segmented;
use crate::log::{
    AppendOptions, BackupSummary, Changes, Control, Controlled, ForkAt, Health, ListPage, ListQuery, Log,
    NewConversation, OpenMessage, Order, Receipt, Redaction, Size, Verification, View, Visit, Wait, decision, reading,
};
use crate::model::{ConversationId, Message, Metadata, Name, Role};

impl Log for Postgres {
    fn append(&self, name: &Name, messages: &[Message], changes: &Changes, options: &AppendOptions) -> Result<Receipt> {
        if changes.is_empty() {
            self.append_messages(name, messages, options)
        } else {
            self.append_changing(name, messages, changes, options)
        }
    }

    fn begin(
        &self,
        name: &Name,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Box<dyn OpenMessage>>, Receipt)> {
        let (open, receipt) = self.begin_message(name, role, metadata, options)?;
        Ok((open.map(|open| Box::new(open) as Box<dyn OpenMessage>), receipt))
    }

    fn create(&self, name: &Name, conversation: &NewConversation) -> Result<Receipt> {
        self.create_empty(name, conversation)
    }

    fn control(&self, name: &Name, control: &Control<'_>) -> Result<Controlled> {
        control.check()?;
        self.gate.check_writable()?;
        let attempts = Attempts::new(self.patience);
        loop {
            let view = reading::view(self, name)?;
            let Some(decision) = decision::decide(self, name, &view, control)? else {
                return Ok(Controlled::unchanged(&view));
            };
            if let Some(controlled) = self.write_control(Decided { name, view: &view, decision })? {
                return Ok(controlled);
            }
            attempts.again(name)?;
        }
    }

    fn fork(&self, parent: &Name, at: ForkAt, child: &Name) -> Result<()> {
        self.make_fork(parent, at, child, None)
    }

    fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()> {
        if let Some((id, keep_to)) = self.erase(name, at)? {
            truncated(id, self.truncate(id, keep_to));
        }
        Ok(())
    }

    fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction> {
        self.redact_message(name, message, chunk)
    }

    fn view(&self, name: &Name) -> Result<Option<View>> {
        self.reader.view(name)
    }

    fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.reader.read(&self.reader.segments(view)?, seqs, order, visit)
    }

    fn is_there(&self, view: &View) -> Result<bool> {
        let now = self.reader.view_of(view.id)?;
        Ok(now.is_some_and(|now| now.head.incarnation == view.head.incarnation))
    }

    fn is_redacted_since(&self, view: &View, commit: u64) -> Result<bool> {
        Ok(view.commit > commit)
    }

    fn item_seqs(&self, view: &View, item: &str, most: usize) -> Result<Vec<u64>> {
        self.reader.item_seqs(view, item, most)
    }

    fn conversations(&self) -> Result<Vec<ConversationId>> {
        list::conversations(&self.database)
    }

    fn list(&self, query: &ListQuery) -> Result<ListPage> {
        list::page(&self.database, query)
    }

    fn unfinished(&self) -> Result<Vec<ConversationId>> {
        list::unfinished(&self.database)
    }

    fn wait_for(&self, wait: &Wait<'_>) -> Result<bool> {
        self.followed.wait_for(wait)
    }

    fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        self.followed.poll_for(wait, follower, waker)
    }

    fn wake(&self, name: &Name, follower: u64) {
        self.followed.wake(name.id(), follower);
    }

    fn sync(&self) -> Result<()> {
        self.streams.flush_all()
    }

    fn close(&self) -> Result<()> {
        Self::close(self)
    }

    fn health(&self) -> Health {
        Health { closed: self.gate.is_closed(), warnings: self.settings.warnings(), ..Health::default() }
    }

    fn size(&self) -> Result<Size> {
        list::size(&self.database)
    }

    fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
        verify::verify(&self.database, &self.reader, progress)
    }

    fn backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
        if !self.gate.is_closed() {
            self.streams.flush_all()?;
        }
        Moment::begin(&[self])?.write(path, progress)
    }
}
