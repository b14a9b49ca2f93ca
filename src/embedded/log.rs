//! The embedded log as a store sees it.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::Embedded;
use crate::embedded::appending::Appender;
use crate::embedded::families::Rewritten;
use crate::embedded::state::Writer;
use crate::embedded::{recovery, stored};
use crate::error::Result;
use crate::history::Cursor;
use crate::log::decision::{self, Decision};
use crate::log::reading;
use crate::log::segments::Segmented;
use crate::log::{
    AppendOptions, BackupSummary, Changes, Control, Controlled, ForkAt, Health, ListPage, ListQuery, Log,
    NewConversation, OpenMessage, Order, Receipt, Redaction, Size, Verification, View, Visit, Wait,
};
use crate::model::{Chunk, ConversationId, FinishReason, Json, Message, Metadata, Name, Role};
use crate::record::key;

impl Log for Embedded {
    fn append(&self, name: &Name, messages: &[Message], changes: &Changes, options: &AppendOptions) -> Result<Receipt> {
        self.core().appender.append(name, messages, changes, options)
    }

    fn begin(
        &self,
        name: &Name,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Box<dyn OpenMessage>>, Receipt)> {
        let (writer, receipt) = self.core().appender.begin(name, role, metadata, options)?;
        let open =
            |writer| Box::new(Open { appender: Arc::clone(&self.core().appender), writer }) as Box<dyn OpenMessage>;
        Ok((writer.map(open), receipt))
    }

    fn create(&self, name: &Name, conversation: &NewConversation) -> Result<Receipt> {
        self.core().appender.create(name, conversation)
    }

    fn control(&self, name: &Name, control: &Control<'_>) -> Result<Controlled> {
        control.check()?;
        // A title that is derived may come from a text that a redaction through another conversation erases meanwhile.
        let _held = match control {
            Control::Title(None) => Some(self.core().families.hold(&[name.id()])?),
            _ => None,
        };
        let frozen = self.core().families.freeze(name.id())?;
        let view = reading::view(self, name)?;
        let Some(Decision { body, closes, change }) = decision::decide(self, name, &view, control)? else {
            return Ok(Controlled::unchanged(&view));
        };
        let tags = change.tags(&view.head);
        let receipt =
            self.core()
                .families
                .write_control(&frozen, name, body, Rewritten::default(), closes, |head| change.apply(head))?;
        Ok(Controlled { receipt, tags })
    }

    fn fork(&self, parent: &Name, at: ForkAt, child: &Name) -> Result<()> {
        self.core().families.fork(parent, at, child)
    }

    fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()> {
        self.core().families.delete(name, at)
    }

    fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction> {
        self.core().families.redact(name, message, chunk)
    }

    fn view(&self, name: &Name) -> Result<Option<View>> {
        Ok(self.core().catalogue.view(name.id())?.filter(|view| name.allows(&view.head.owner)))
    }

    fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()> {
        let segments = stored::segments_through(self.engine(), view.id, &view.head, view.through)?;
        self.engine().read(&segments, seqs, order, visit)
    }

    fn is_there(&self, view: &View) -> Result<bool> {
        self.core().catalogue.is_still(view.id, &view.head)
    }

    fn is_redacted_since(&self, view: &View, commit: u64) -> Result<bool> {
        self.core().catalogue.is_redacted_since(view, commit)
    }

    fn item_seqs(&self, view: &View, item: &str, most: usize) -> Result<Vec<u64>> {
        let mut seqs = Vec::new();
        for segment in stored::segments(self.engine(), view.id, &view.head)?.into_iter().rev() {
            stored::item_seqs(self.engine(), segment, item, most, &mut seqs)?;
        }
        seqs.reverse();
        Ok(seqs)
    }

    fn conversations(&self) -> Result<Vec<ConversationId>> {
        Ok(stored::conversations_with(self.engine(), key::HEAD)?.into_iter().collect())
    }

    fn list(&self, query: &ListQuery) -> Result<ListPage> {
        self.core().catalogue.list(query)
    }

    fn unfinished(&self) -> Result<Vec<ConversationId>> {
        Ok(stored::conversations_with(self.engine(), key::UNFINISHED)?.into_iter().collect())
    }

    fn wait_for(&self, wait: &Wait<'_>) -> Result<bool> {
        self.core().catalogue.wait_for(wait)
    }

    fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        self.core().catalogue.poll_for(wait, follower, waker)
    }

    fn wake(&self, name: &Name, follower: u64) {
        self.core().catalogue.wake(name.id(), follower);
    }

    fn sync(&self) -> Result<()> {
        self.flush()
    }

    fn close(&self) -> Result<()> {
        Self::close(self)
    }

    fn health(&self) -> Health {
        self.core().health()
    }

    fn size(&self) -> Result<Size> {
        self.core().size()
    }

    fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
        recovery::verify(self.core(), progress)
    }

    fn backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
        recovery::backup(self.core(), path, progress)
    }
}

/// A message that is being written.
#[derive(Debug)]
struct Open {
    appender: Arc<Appender>,
    writer: Arc<Writer>,
}

impl OpenMessage for Open {
    fn index(&self) -> u64 {
        self.writer.message_index()
    }

    fn push(&self, chunk_index: u32, delta: Chunk) -> Result<()> {
        self.appender.push(&self.writer, chunk_index, delta)
    }

    fn finish(&self, reason: Option<FinishReason>, usage: Option<Json>, metadata: Metadata) -> Result<Receipt> {
        self.appender.finish(&self.writer, reason, usage, metadata)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.appender.abandon(&self.writer);
    }
}
