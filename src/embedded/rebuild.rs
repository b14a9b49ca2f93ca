//! Heads, the listing index, the index of item ids and fork points, derived again from the records.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::core::{COMMIT, Core};
use super::place::index_keys;
use super::read::Item;
use super::segments::Segment;
use crate::embedded::engine::{Batch, Directory, Order};
use crate::error::{Error, Result};
use crate::history::Grouper;
use crate::log::title::first_title;
use crate::model::ConversationId;
use crate::record::{self, Commit, ForkPoint, Head, Line, Record, TitleSource, key};

/// Title and tags as they are read from entries, in order of seq.
struct Names {
    /// The caller's.
    title: Option<String>,
    tags: Vec<String>,
    /// Whose first user text is the title where the caller gave none.
    messages: Grouper,
}

impl Names {
    fn new(epoch: u64) -> Self {
        Self { title: None, tags: Vec::new(), messages: Grouper::new(epoch, Vec::new(), 0) }
    }

    /// Takes a record; entries above `last` do not belong to the conversation. `own` unless it is an ancestor's.
    fn read(&mut self, record: &Record<'_>, last: u64, own: bool) {
        for (_, line) in record.lines().filter_map(Result::ok).filter(|(seq, _)| *seq <= last) {
            let Line::Meta(meta) = line else { continue };
            if let Some(title) = meta.title {
                self.title = title.map(str::to_owned);
            }
            if let Some(tags) = meta.tags {
                self.tags = tags.into_iter().map(str::to_owned).collect();
            }
        }
        self.messages.push(record, last, own);
    }

    fn give(self, head: &mut Head) {
        head.tags = self.tags;
        (head.title, head.title_source) = match self.title {
            Some(title) => (Some(title), TitleSource::Caller),
            None => match first_title(&self.messages.finish().messages) {
                Some((index, title)) => (Some(title), TitleSource::Message(index)),
                None => (None, TitleSource::Pending),
            },
        };
    }
}

/// What an entry does to the head, beside moving it.
fn replay(head: &mut Head, record: &Record<'_>, seq: u64, line: &Line<'_>) {
    match line {
        Line::Chunk(chunk) if chunk.header.is_some() => head.interrupted.clear(),
        Line::Begin(begin) => {
            head.interrupted.clear();
            if begin.epoch.is_some() {
                head.open.push(record.message_index(begin.message));
            }
        }
        Line::Finish(finish) => head.close(record.message_index(finish.message)),
        Line::Interrupt(interrupt) => head.interrupt(record.message_index(interrupt.message)),
        Line::Rewind(rewind) => {
            head.last_hide = seq;
            head.forget_unfinished(rewind.to..);
        }
        Line::Remove(remove) => {
            head.last_hide = seq;
            if remove.chunk.is_none() {
                head.forget_unfinished(remove.message..=remove.message);
            }
        }
        Line::Meta(_) => head.last_meta = seq,
        Line::Chunk(_) | Line::Summary(_) | Line::Redact(_) | Line::Unknown(_) => {}
    }
}

/// Conversations that are rebuilt in one batch.
const REBUILD_BATCH: usize = 256;

impl Core {
    /// The head that the records of a conversation give, if it has any that can be read. Seqs of records that are damaged
    /// at the end are not counted.
    pub(super) fn derived_head(&self, id: ConversationId) -> Result<Option<Head>> {
        let mut head = self.own_head(id)?;
        if let Some(head) = &mut head {
            self.inherit(id, head)?;
        }
        Ok(head)
    }

    /// The head that a conversation's own records give: of a fork without the title and tags of its parent.
    pub(super) fn own_head(&self, id: ConversationId) -> Result<Option<Head>> {
        let all = Segment { conversation: id, first: 1, last: u64::MAX - 2 };
        let mut head: Option<Head> = None;
        let mut names = Names::new(self.epoch);
        self.read(id, &[all], 1..=u64::MAX - 2, Order::Ascending, &mut |item| {
            let Item::Record { record, last, own } = item else { return ControlFlow::Continue(()) };
            let head = head.get_or_insert_with(|| {
                let origin = record.header.origin.as_ref();
                Head {
                    next_seq: record.first_seq,
                    next_message_index: record.header.next_message_index,
                    last_hide: origin.map_or(0, |origin| origin.last_hide),
                    last_meta: origin.map_or(0, |origin| origin.last_meta),
                    incarnation: origin.map_or(0, |origin| origin.incarnation),
                    owner: origin.map(|origin| origin.owner.clone()).unwrap_or_default(),
                    created: origin.map_or(record.header.time, |origin| origin.created),
                    last_activity: record.header.time,
                    key: origin.and_then(|origin| origin.key.clone()),
                    parent: origin.and_then(|origin| origin.parent),
                    title: None,
                    title_source: TitleSource::Pending,
                    tags: Vec::new(),
                    open: Vec::new(),
                    interrupted: Vec::new(),
                }
            });
            head.next_seq = record.first_seq + record.len();
            head.next_message_index = record.header.next_message_index;
            head.last_activity = head.last_activity.max(record.header.time);
            for (seq, line) in record.lines().filter_map(Result::ok) {
                replay(head, record, seq, &line);
            }
            names.read(record, last, own);
            ControlFlow::Continue(())
        })?;
        if let Some(head) = &mut head {
            names.give(head);
        }
        Ok(head)
    }

    /// Gives a fork's head, which its own records gave, the title and tags that all its entries give, as far as they can
    /// be read.
    fn inherit(&self, id: ConversationId, head: &mut Head) -> Result<()> {
        if head.parent.is_none() {
            return Ok(());
        }
        let segments = match self.segments(id, head) {
            Err(Error::Corrupt { .. } | Error::UnsupportedVersion { .. }) => return Ok(()),
            segments => segments?,
        };
        let mut names = Names::new(self.epoch);
        self.read(id, &segments, 1..=head.next_seq - 1, Order::Ascending, &mut |item| {
            if let Item::Record { record, last, own } = item {
                names.read(record, last, own);
            }
            ControlFlow::Continue(())
        })?;
        names.give(head);
        Ok(())
    }

    /// Makes consistent what a store that was damaged holds, if this one was, or if what it lost is accepted. For opening
    /// only: nobody else writes.
    pub(super) fn repair(&self, accept_loss: bool) -> Result<()> {
        let damaged = self.engine.directory().filter(|directory| directory.set_aside().is_some());
        if damaged.is_some() || accept_loss {
            self.rebuild_all(accept_loss)?;
        }
        // What is missing stays a problem until the loss is accepted.
        if accept_loss {
            self.recount()?;
        }
        damaged.map_or(Ok(()), Directory::repaired)
    }

    /// Takes what there is for all there was.
    fn recount(&self) -> Result<()> {
        let mut commit = Commit { number: self.lock().commit.number, ..Commit::default() };
        for id in self.ids(key::HEAD)? {
            commit.count(None, self.stored_head(id)?.as_ref());
        }
        let key = key::meta(COMMIT);
        let mut batch = Batch::default();
        let value = record::seal(&key, &commit)?;
        batch.put(key, value);
        self.engine.write(batch)?;
        self.engine.sync()?;
        self.lock().commit = commit;
        Ok(())
    }

    /// Writes the heads, entries of indexes and fork points that differ from what the records give. A head that promises more
    /// than the records hold stays, unless the loss is accepted: reading tells what is missing.
    pub(super) fn rebuild_all(&self, accept_loss: bool) -> Result<()> {
        let deleted = self.ids(key::TOMBSTONE)?;
        let mut ids: BTreeSet<ConversationId> = self.ids(key::RECORD)?;
        ids.extend(self.ids(key::HEAD)?);
        ids.extend(self.ids(key::ITEM)?);
        let mut batch = Batch::default();
        for id in ids.into_iter().filter(|id| !deleted.contains(id)) {
            self.rebuild(id, accept_loss, &mut batch)?;
            if batch.ops.len() >= REBUILD_BATCH {
                self.engine.rewrite(std::mem::take(&mut batch))?;
                self.engine.sync()?;
            }
        }
        self.engine.rewrite(std::mem::take(&mut batch))?;
        self.remove_stray_index_entries(&mut batch)?;
        self.engine.rewrite(batch)?;
        self.engine.sync()
    }

    fn rebuild(&self, id: ConversationId, accept_loss: bool, batch: &mut Batch) -> Result<()> {
        let head_key = key::head(id);
        let stored = self.engine.get(&head_key)?;
        let stored = stored.and_then(|bytes| Head::open(&head_key, &bytes).ok());
        self.rebuild_items(id, batch)?;
        let mut derived = self.own_head(id)?;
        let end = |head: &Option<Head>| head.as_ref().map_or(0, |head| head.next_seq);
        let agrees = match (&stored, &derived) {
            _ if end(&stored) > end(&derived) => !accept_loss,
            (Some(stored), Some(derived)) => {
                (stored.next_seq, stored.next_message_index, stored.last_hide, &stored.key, stored.parent)
                    == (derived.next_seq, derived.next_message_index, derived.last_hide, &derived.key, derived.parent)
            }
            _ => false,
        };
        if let Some(derived) = derived.as_mut().filter(|_| !agrees) {
            self.inherit(id, derived)?;
        }
        let Some(head) = (if agrees { stored } else { derived }) else {
            batch.remove(head_key);
            return Ok(());
        };
        if !agrees {
            let value = record::seal(&head_key, &head)?;
            batch.put(head_key, value);
        }
        if let Some(parent) = head.parent {
            let fork = key::fork(parent.id(), id);
            let point = ForkPoint { at_seq: parent.at_seq, parent: parent.incarnation, child: head.incarnation };
            let value = record::seal(&fork, &point)?;
            if self.engine.get(&fork)?.as_ref() != Some(&value) {
                batch.put(fork, value);
            }
        }
        for index in index_keys(id, &head) {
            if self.engine.get(&index)?.is_none() {
                batch.put(index, Vec::new());
            }
        }
        Ok(())
    }

    fn rebuild_items(&self, id: ConversationId, batch: &mut Batch) -> Result<()> {
        let (stored, derived) = (self.item_keys(id, u64::MAX)?, self.derived_item_keys(id)?);
        stored.difference(&derived).for_each(|stray| batch.remove(stray.clone()));
        derived.difference(&stored).for_each(|missing| batch.put(missing.clone(), Vec::new()));
        Ok(())
    }

    fn remove_stray_index_entries(&self, batch: &mut Batch) -> Result<()> {
        let prefix = [key::INDEX];
        let mut failed = Ok(());
        self.engine.keys(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, _| {
            let Some((_, _, id)) = key::parse_index(key) else {
                batch.remove(key.to_vec());
                return ControlFlow::Continue(());
            };
            match self.stored_head(id) {
                Ok(Some(head)) if index_keys(id, &head).iter().any(|index| *index == *key) => {}
                Ok(_) => batch.remove(key.to_vec()),
                Err(error) => failed = Err(error),
            }
            ControlFlow::Continue(())
        })?;
        failed
    }
}
