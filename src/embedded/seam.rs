//! The embedded log as a store sees it.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::Embedded;
use crate::embedded::appending::writer::Writer;
use crate::embedded::core::Core;
use crate::embedded::families::frozen::Rewritten;
use crate::error::Result;
use crate::history::Cursor;
use crate::log::decision::{self, Decision};
use crate::log::reading;
use crate::log::{
    AppendOptions, BackupSummary, Control, Controlled, Health, ListPage, ListQuery, Log, NewConversation, OpenMessage,
    Order, Receipt, Redaction, Size, Verification, View, Visit, Wait,
};
use crate::model::{Chunk, ConversationId, FinishReason, Json, Message, Metadata, Name, Role};
use crate::record::key;

impl Log for Embedded {
    fn append(&self, name: &Name, messages: &[Message], options: &AppendOptions) -> Result<Receipt> {
        self.core().append(name, messages, options)
    }

    fn begin(
        &self,
        name: &Name,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Box<dyn OpenMessage>>, Receipt)> {
        let (writer, receipt) = self.core().begin(name, role, metadata, options)?;
        let open = |writer| Box::new(Open { core: Arc::clone(self.core()), writer }) as Box<dyn OpenMessage>;
        Ok((writer.map(open), receipt))
    }

    fn create(&self, name: &Name, conversation: &NewConversation) -> Result<Receipt> {
        self.core().create(name, conversation)
    }

    fn control(&self, name: &Name, control: &Control<'_>) -> Result<Controlled> {
        control.check()?;
        // A title that is derived may come from a text that a redaction through another conversation erases meanwhile.
        let _held = match control {
            Control::Title(None) => Some(self.core().hold(&[name.id()])?),
            _ => None,
        };
        let frozen = self.core().freeze(name.id())?;
        let view = reading::view(self, name)?;
        let Some(Decision { body, closes, change }) = decision::decide(self, name, &view, control)? else {
            return Ok(Controlled::unchanged(&view));
        };
        let tags = change.tags(&view.head);
        let receipt =
            self.core().write_control(&frozen, name, body, Rewritten::default(), closes, |head| change.apply(head))?;
        Ok(Controlled { receipt, tags })
    }

    fn fork(&self, parent: &Name, at_seq: Option<u64>, child: &Name) -> Result<()> {
        self.core().fork(parent, at_seq, child)
    }

    fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()> {
        self.core().delete(name, at)
    }

    fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction> {
        self.core().redact(name, message, chunk)
    }

    fn view(&self, name: &Name) -> Result<Option<View>> {
        Ok(self.core().view(name.id())?.filter(|view| name.allows(&view.head.owner)))
    }

    fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()> {
        let segments = self.core().segments_through(view.id, &view.head, view.through)?;
        self.core().read(view.id, &segments, seqs, order, visit)
    }

    fn is_there(&self, view: &View) -> Result<bool> {
        self.core().is_still(view.id, &view.head)
    }

    fn is_redacted_since(&self, view: &View, commit: u64) -> Result<bool> {
        self.core().is_redacted_since(view, commit)
    }

    fn item_seqs(&self, view: &View, item: &str) -> Result<Vec<u64>> {
        let mut seqs = Vec::new();
        for segment in self.core().segments(view.id, &view.head)? {
            seqs.extend(self.core().item_seqs(segment, item)?);
        }
        Ok(seqs)
    }

    fn conversations(&self) -> Result<Vec<ConversationId>> {
        Ok(self.core().ids(key::HEAD)?.into_iter().collect())
    }

    fn list(&self, query: &ListQuery) -> Result<ListPage> {
        self.core().list(query)
    }

    fn unfinished(&self) -> Result<Vec<ConversationId>> {
        Ok(self.core().ids(key::UNFINISHED)?.into_iter().collect())
    }

    fn wait_for(&self, wait: &Wait<'_>) -> Result<bool> {
        self.core().wait_for(wait)
    }

    fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        self.core().poll_for(wait, follower, waker)
    }

    fn wake(&self, name: &Name, follower: u64) {
        self.core().wake(name.id(), follower);
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
        self.core().verify(progress)
    }

    fn backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
        self.core().backup(path, progress)
    }
}

/// A message that is being written.
#[derive(Debug)]
struct Open {
    core: Arc<Core>,
    writer: Arc<Writer>,
}

impl OpenMessage for Open {
    fn index(&self) -> u64 {
        self.writer.message_index()
    }

    fn push(&self, chunk_index: u32, delta: Chunk) -> Result<()> {
        self.core.push(&self.writer, chunk_index, delta)
    }

    fn finish(&self, reason: Option<FinishReason>, usage: Option<Json>, metadata: Metadata) -> Result<Receipt> {
        self.core.finish(&self.writer, reason, usage, metadata)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.core.abandon(&self.writer);
    }
}
