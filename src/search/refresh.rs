//! An index, brought up to date with one owner's conversations.
//!
//! What is new in a conversation is read from the seq up to which it was read before. Texts and that seq are written in one
//! commit of the index, so a crash between the store and the index loses nothing: the next refresh reads it again.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;
use tantivy::collector::DocSetCollector;
use tantivy::indexer::NoMergePolicy;
use tantivy::query::TermQuery;
use tantivy::schema::IndexRecordOption;
use tantivy::{IndexWriter, Term};

use super::document::{self, HIGH, INCARNATION, LOW, SEQ, State};
use super::index::SearchIndex;
use super::index::{found, guarded};
use crate::error::{Error, Result};
use crate::history::{Cursor, EntryKind, MessageState, StoredMessage};
use crate::log::locked;
use crate::log::{ListItem, ListQuery};
use crate::model::ConversationId;
use crate::store::Store;

/// Memory of the index's writer.
const WRITER_BYTES: usize = 32 * 1024 * 1024;
/// Conversations of a page of the list; entries and messages of one read.
const PAGE: usize = 1000;
/// Documents after which what was read is committed: an interrupted refresh goes on from there.
const COMMIT_AFTER: u64 = 100_000;

/// What bringing an index up to date did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refreshed {
    /// Conversations that were read, because they were new or had changed.
    pub conversations: u64,
    /// Conversations that were removed from the index, because they are gone.
    pub removed: u64,
    /// Conversations that cannot be read: their texts are not found.
    pub unreadable: u64,
}

impl SearchIndex {
    /// Brings the index up to date for one owner's conversations; the empty owner: those without one. [`Store::search`] does
    /// so by itself. Call it after a redaction or a deletion, to remove the words from the index's files at once.
    ///
    /// Cost: reading the owner's list of conversations, and indexing what is new. If something was redacted or
    /// deleted, the index is written again as a whole.
    ///
    /// # Errors
    /// As [`Store::search`].
    pub fn refresh(&self, store: &Store, owner: &str) -> Result<Refreshed> {
        let _refreshing = locked(&self.refreshing);
        let mut refresh =
            Refresh { index: self, store, owner, writer: None, added: 0, purges: false, done: Refreshed::default() };
        refresh.run()?;
        refresh.commit()?;
        let Refresh { purges, done, .. } = refresh;
        if purges {
            self.purge()?;
        }
        Ok(done)
    }

    /// Reads a conversation again as a whole: the index had something that the store has no more.
    pub(super) fn repair(&self, store: &Store, owner: &str, ids: &HashSet<ConversationId>) -> Result<()> {
        let _refreshing = locked(&self.refreshing);
        let mut refresh =
            Refresh { index: self, store, owner, writer: None, added: 0, purges: true, done: Refreshed::default() };
        for id in ids {
            match found(store.describe(*id))? {
                Some(item) => refresh.whole(&item)?,
                None => refresh.remove(*id)?,
            }
        }
        refresh.commit()?;
        self.purge()
    }

    /// Writes the index again without what was removed: until then its files still have the words.
    fn purge(&self) -> Result<()> {
        guarded(|| {
            let segments = self.index.searchable_segment_ids()?;
            let mut writer: IndexWriter = self.index.writer_with_num_threads(1, WRITER_BYTES)?;
            writer.set_merge_policy(Box::new(NoMergePolicy));
            if !segments.is_empty() {
                writer.merge(&segments).wait()?;
            }
            self.reader.reload()?;
            writer.garbage_collect_files().wait()?;
            writer.wait_merging_threads()
        })
    }

    /// How far each of an owner's conversations was read.
    fn states(&self, owner: &str) -> Result<HashMap<ConversationId, State>> {
        guarded(|| {
            let searcher = self.reader.searcher();
            let query = TermQuery::new(Term::from_field_text(self.fields.state_of, owner), IndexRecordOption::Basic);
            let mut states = HashMap::new();
            for address in searcher.search(&query, &DocSetCollector)? {
                let fast = searcher.segment_reader(address.segment_ord).fast_fields();
                let read =
                    |name: &str| Ok::<_, tantivy::TantivyError>(fast.u64(name)?.first(address.doc_id).unwrap_or(0));
                let id = document::conversation(read(HIGH)?, read(LOW)?);
                states.insert(id, State { incarnation: read(INCARNATION)?, seq: read(SEQ)? });
            }
            Ok(states)
        })
    }
}

/// A refresh in progress.
struct Refresh<'a> {
    index: &'a SearchIndex,
    store: &'a Store,
    owner: &'a str,
    /// Absent until something has changed.
    writer: Option<IndexWriter>,
    /// Documents since the last commit.
    added: u64,
    /// Whether something was removed that must not stay in the index's files.
    purges: bool,
    done: Refreshed,
}

impl Refresh<'_> {
    fn run(&mut self) -> Result<()> {
        let mut known = self.index.states(self.owner)?;
        let items = self.list()?;
        let mut redacted = HashSet::new();
        for item in &items {
            let state = State { incarnation: item.incarnation, seq: item.last_seq };
            match known.remove(&item.id) {
                Some(known) if known == state => continue,
                Some(known) if known.incarnation == state.incarnation => {
                    if self.update(item, known)? {
                        redacted.insert(item.id);
                    }
                }
                Some(_) => {
                    self.purges = true;
                    self.whole(item)?;
                }
                None => self.whole(item)?,
            }
            self.done.conversations += 1;
            if self.added >= COMMIT_AFTER {
                self.commit()?;
            }
        }
        self.redact(&items, &redacted)?;
        // A conversation that the list does not have is gone, cannot be read, or moved while the list was read.
        for id in known.into_keys() {
            if let Err(Error::NotFound { .. }) = self.store.describe(id) {
                self.remove(id)?;
                self.done.removed += 1;
            }
        }
        Ok(())
    }

    /// All conversations of the owner.
    fn list(&mut self) -> Result<Vec<ListItem>> {
        let mut items = Vec::new();
        let mut query = ListQuery::new().with_owner(self.owner).with_limit(PAGE);
        loop {
            let page = self.store.list(&query)?;
            items.extend(page.items);
            self.done.unreadable += page.unreadable.len() as u64;
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(items),
            }
        }
    }

    /// Indexes what is new in a conversation. Returns whether something of it was redacted.
    fn update(&mut self, item: &ListItem, known: State) -> Result<bool> {
        let mut seq = known.seq;
        let mut touched = BTreeSet::new();
        let (mut hides, mut redacts) = (false, false);
        let mut is_lost = false;
        loop {
            let cursor = Cursor { seq, incarnation: Some(known.incarnation) };
            let Some(entries) = found(self.store.entries_since(item.id, cursor, PAGE))? else {
                is_lost = true;
                break;
            };
            let Some(last) = entries.last() else { break };
            seq = last.seq;
            for entry in &entries {
                match entry.kind {
                    EntryKind::Chunk { .. } => touched.extend(entry.message_index),
                    EntryKind::Redact => (hides, redacts) = (true, true),
                    EntryKind::Rewind { .. } | EntryKind::Remove | EntryKind::Unknown { .. } => hides = true,
                    _ => {}
                }
            }
        }
        if hides || is_lost || !self.messages(item, &touched)? {
            self.purges |= redacts || is_lost;
            self.whole(item)?;
            return Ok(redacts);
        }
        self.title(item)?;
        self.state(item, State { incarnation: known.incarnation, seq })?;
        Ok(false)
    }

    /// Indexes these messages. False: one of them cannot be read.
    fn messages(&mut self, item: &ListItem, touched: &BTreeSet<u64>) -> Result<bool> {
        let (Some(first), Some(last)) = (touched.first().copied(), touched.last().copied()) else { return Ok(true) };
        let mut from = first;
        while from <= last {
            let Some(messages) = found(self.store.messages(item.id, from, PAGE))? else { return Ok(false) };
            let Some(newest) = messages.last() else { break };
            from = newest.index + 1;
            for stored in messages.iter().filter(|stored| touched.contains(&stored.index)) {
                self.delete(self.index.fields.message_of(item.id, stored.index))?;
                self.message(item, stored)?;
            }
        }
        Ok(true)
    }

    /// Indexes a conversation from its beginning.
    fn whole(&mut self, item: &ListItem) -> Result<()> {
        self.delete(self.index.fields.all_of(item.id))?;
        let Some(conversation) = found(self.store.load(item.id))? else {
            self.done.unreadable += 1;
            return Ok(());
        };
        for stored in conversation.messages().iter().filter(|stored| stored.state != MessageState::Synthetic) {
            self.message(item, stored)?;
        }
        self.title(item)?;
        let cursor = conversation.cursor().unwrap_or_default();
        let (incarnation, seq) = (cursor.incarnation.unwrap_or(item.incarnation), cursor.seq);
        self.state(item, State { incarnation, seq })
    }

    /// Indexes the conversations again that may share a redacted message: those with a common ancestor.
    fn redact(&mut self, items: &[ListItem], redacted: &HashSet<ConversationId>) -> Result<()> {
        if redacted.is_empty() {
            return Ok(());
        }
        let parents: HashMap<_, _> =
            items.iter().filter_map(|item| Some((item.id, item.parent?.conversation))).collect();
        let root = |mut id: ConversationId| {
            // A chain of parents ends; damage may make a circle of it.
            for _ in 0..=parents.len() {
                match parents.get(&id) {
                    Some(parent) => id = *parent,
                    None => break,
                }
            }
            id
        };
        let roots: HashSet<_> = redacted.iter().map(|id| root(*id)).collect();
        for item in items.iter().filter(|item| roots.contains(&root(item.id)) && !redacted.contains(&item.id)) {
            self.whole(item)?;
        }
        Ok(())
    }

    fn message(&mut self, item: &ListItem, stored: &StoredMessage) -> Result<()> {
        self.index.fields.message(item, stored).into_iter().try_for_each(|document| self.add(document))
    }

    fn title(&mut self, item: &ListItem) -> Result<()> {
        self.delete(self.index.fields.title_of(item.id))?;
        match &item.title {
            Some(title) => self.add(self.index.fields.title(item, title)),
            None => Ok(()),
        }
    }

    fn state(&mut self, item: &ListItem, state: State) -> Result<()> {
        self.delete(self.index.fields.state(item.id))?;
        self.add(self.index.fields.state_document(item.id, &item.owner, state))
    }

    /// Removes a conversation.
    fn remove(&mut self, id: ConversationId) -> Result<()> {
        self.purges = true;
        self.delete(self.index.fields.all_of(id))
    }

    fn delete(&mut self, term: Term) -> Result<()> {
        self.writer()?.delete_term(term);
        Ok(())
    }

    fn add(&mut self, document: tantivy::TantivyDocument) -> Result<()> {
        self.added += 1;
        let writer = self.writer()?;
        guarded(|| writer.add_document(document)).map(|_| ())
    }

    fn writer(&mut self) -> Result<&IndexWriter> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => guarded(|| self.index.index.writer_with_num_threads(1, WRITER_BYTES))?,
        };
        Ok(self.writer.insert(writer))
    }

    /// Makes what was indexed durable and visible.
    fn commit(&mut self) -> Result<()> {
        self.added = 0;
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        guarded(|| {
            writer.commit()?;
            writer.wait_merging_threads()?;
            self.index.reader.reload()
        })
    }
}
