//! The log on PostgreSQL as a store sees it.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::Postgres;
use super::change::{Attempts, Decided};
use super::delete::truncated;
use super::stream::Open;
use crate::error::Result;
use crate::history::Cursor;
use crate::log::{
    AppendOptions, BackupSummary, Control, Controlled, Health, ListPage, ListQuery, Log, NewConversation, OpenMessage,
    Order, Receipt, Redaction, Size, Verification, View, Visit, Wait, decision, reading,
};
use crate::model::{ConversationId, Message, Metadata, Name, Role};

impl Log for Postgres {
    fn append(&self, name: &Name, messages: &[Message], options: &AppendOptions) -> Result<Receipt> {
        self.shared.append(name, messages, options)
    }

    fn begin(
        &self,
        name: &Name,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Box<dyn OpenMessage>>, Receipt)> {
        let (writer, receipt) = self.shared.begin(name, role, metadata, options)?;
        let open = |writer| Box::new(Open { shared: Arc::clone(&self.shared), writer }) as Box<dyn OpenMessage>;
        Ok((writer.map(open), receipt))
    }

    fn create(&self, name: &Name, conversation: &NewConversation) -> Result<Receipt> {
        self.shared.create(name, conversation)
    }

    fn control(&self, name: &Name, control: &Control<'_>) -> Result<Controlled> {
        control.check()?;
        self.shared.check_writable()?;
        let attempts = Attempts::new(&self.shared);
        loop {
            let view = reading::view(self, name)?;
            let Some(decision) = decision::decide(self, name, &view, control)? else {
                return Ok(Controlled::unchanged(&view));
            };
            if let Some(controlled) = self.shared.control(Decided { name, view: &view, decision })? {
                return Ok(controlled);
            }
            attempts.again(name)?;
        }
    }

    fn fork(&self, parent: &Name, at_seq: Option<u64>, child: &Name) -> Result<()> {
        self.shared.fork(parent, at_seq, child, None)
    }

    fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()> {
        if let Some((id, keep_to)) = self.shared.remove(name, at)? {
            truncated(id, self.shared.truncate(id, keep_to));
        }
        Ok(())
    }

    fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction> {
        self.shared.redact(name, message, chunk)
    }

    fn view(&self, name: &Name) -> Result<Option<View>> {
        self.shared.view(name)
    }

    fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.shared.read(view.id, &self.shared.segments(view)?, seqs, order, visit)
    }

    fn is_there(&self, view: &View) -> Result<bool> {
        let now = self.shared.view_of(view.id)?;
        Ok(now.is_some_and(|now| now.head.incarnation == view.head.incarnation))
    }

    fn is_redacted_since(&self, view: &View, commit: u64) -> Result<bool> {
        Ok(view.commit > commit)
    }

    fn item_seqs(&self, view: &View, item: &str) -> Result<Vec<u64>> {
        self.shared.item_seqs(view, item)
    }

    fn conversations(&self) -> Result<Vec<ConversationId>> {
        self.shared.conversations()
    }

    fn list(&self, query: &ListQuery) -> Result<ListPage> {
        self.shared.list(query)
    }

    fn unfinished(&self) -> Result<Vec<ConversationId>> {
        self.shared.unfinished()
    }

    fn wait_for(&self, wait: &Wait<'_>) -> Result<bool> {
        self.shared.wait_for(wait)
    }

    fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        self.shared.poll_for(wait, follower, waker)
    }

    fn wake(&self, name: &Name, follower: u64) {
        self.shared.watched.wake(name.id(), follower);
    }

    fn sync(&self) -> Result<()> {
        self.shared.flush_all()
    }

    fn close(&self) -> Result<()> {
        Self::close(self)
    }

    fn health(&self) -> Health {
        Health { closed: self.shared.is_closed(), warnings: self.shared.warnings.clone(), ..Health::default() }
    }

    fn size(&self) -> Result<Size> {
        self.shared.size()
    }

    fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
        self.shared.verify(progress)
    }

    fn backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
        if !self.shared.is_closed() {
            self.shared.flush_all()?;
        }
        self.shared.backup(path, progress)
    }
}
