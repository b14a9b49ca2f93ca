//! Conversations, messages and entries; which conversations there are, and what is known of them.

use std::ops::{Bound, RangeBounds, RangeInclusive};
use std::sync::Arc;

use super::Store;
use super::tail::Tail;
use crate::error::{Error, Result};
use crate::history::{Conversation, Cursor, Entry, StoredMessage};
use crate::json::fields::Fields;
use crate::log::reading::LAST_SEQ;
#[cfg(feature = "server")]
use crate::log::reading::PageSize;
use crate::log::{
    Item, ListCursor, ListItem, ListPage, ListQuery, Log, Order, Unfinished, View, hidden, items, reading,
};
use crate::model::{Json, Name};

/// Conversations whose metadata are looked at for one page.
const METADATA_SCANNED: usize = 1_000;

impl Store {
    /// The conversation as it is durable now: grouped by message index and reconciled. Records that cannot be read are in
    /// the report.
    ///
    /// Cost: reading and decoding all entries.
    ///
    /// ```
    /// use conversation_store::Store;
    /// use conversation_store::model::{Message, Role};
    ///
    /// let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::user("hello")])?;
    /// let conversation = store.load("chat")?;
    /// assert_eq!(conversation.messages()[0].message.role, Role::User);
    /// assert!(conversation.report().is_empty());
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` if the head is damaged; `Io`.
    pub fn load(&self, name: impl Into<Name>) -> Result<Conversation> {
        self.ask(name, |log, name| {
            let span = tracing::debug_span!("load", conversation = %name.id());
            span.in_scope(|| reading::load(log, name))
        })
    }

    /// As [`Store::load`], but a record that cannot be read is an error.
    ///
    /// # Errors
    /// As [`Store::load`]; `Corrupt` if any record is damaged or missing.
    pub fn load_strict(&self, name: impl Into<Name>) -> Result<Conversation> {
        let (mut grouped, _) = self.ask(name, reading::grouped)?;
        if grouped.damage.is_empty() { Ok(Conversation::from_grouped(grouped)) } else { Err(grouped.damage.remove(0)) }
    }

    /// The messages as they were appended: grouped by message index, nothing repaired. Rewound ones are left out. A record
    /// that cannot be read is an error.
    ///
    /// # Errors
    /// As [`Store::load_strict`].
    pub fn load_raw(&self, name: impl Into<Name>) -> Result<Vec<StoredMessage>> {
        let (grouped, _) = self.ask(name, reading::grouped)?;
        reading::raw(grouped)
    }

    /// As [`Store::load`], but only the newest `count` messages, for an agent in a very long chat. The cost does not grow
    /// with the chat. [`Store::refresh`] brings it up to date: its beginning stays, and new messages are added.
    ///
    /// A result whose call comes before these messages leaves the conversation, with a line in the report.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn load_newest(&self, name: impl Into<Name>, count: usize) -> Result<Conversation> {
        self.ask(name, |log, name| reading::load_newest(log, name, count))
    }

    /// The conversation as it was when `seq` was its last entry: what [`Store::fork`] gives there, without a fork. What was
    /// rewound or removed later is in it; what was redacted later is not. A message that was being written is interrupted.
    ///
    /// The result has no cursor, and [`Store::refresh`] does not accept it. Cost: as [`Store::load`], up to that entry.
    ///
    /// ```
    /// # use conversation_store::{Store, model::Message};
    /// # let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::user("one"), Message::user("two")])?;
    /// store.rewind("chat", 0)?;
    /// assert_eq!(store.load_at("chat", 1)?.messages().len(), 1);
    /// assert_eq!(store.load("chat")?.messages().len(), 0);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::load`]; `CursorOutOfRange` if there is no such entry yet.
    pub fn load_at(&self, name: impl Into<Name>, seq: u64) -> Result<Conversation> {
        self.ask(name, |log, name| reading::load_at(log, name, seq))
    }

    /// Brings a loaded conversation up to date. It is then what [`Store::load`] gives now, except for the order of the lines
    /// in the report.
    ///
    /// Cost: reading and reconciling what is new, and what was not settled before it: messages that were open, and those
    /// from the first call on that had no result. It is read whole if a rewind, removal or redaction reaches back, also a
    /// redaction through a fork or through what this one was forked from; if it is damaged; if a result comes before its
    /// call; or if it was loaded before the store was opened, and anything was written in between.
    ///
    /// ```
    /// # use conversation_store::{Store, model::Message};
    /// # let store = Store::open("memory:")?;
    /// # store.append("chat", &[Message::user("one")])?;
    /// let mut conversation = store.load("chat")?;
    /// store.append("chat", &[Message::user("two")])?;
    /// store.refresh(&mut conversation)?;
    /// assert_eq!(conversation.messages().len(), 2);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` if it was not loaded from a store; `NotFound` if it was deleted; `Io`.
    pub fn refresh(&self, conversation: &mut Conversation) -> Result<()> {
        let refreshed = reading::refresh(&*self.log, conversation);
        match conversation.source() {
            Some(source) => refreshed.map_err(|error| error.named(&source.name)),
            None => refreshed,
        }
    }

    /// Up to `limit` messages with an index of `from` or above, in order, as they were appended: nothing is repaired. Hidden
    /// ones are left out.
    ///
    /// Cost: finding the first one by halving, and reading from where it begins to where the last one ends.
    ///
    /// ```
    /// # use conversation_store::{Store, model::Message};
    /// # let store = Store::open("memory:")?;
    /// # store.append("c", &[Message::user("a"), Message::user("b"), Message::user("c")])?;
    /// let page = store.messages("c", 1, 1)?;
    /// assert_eq!((page.len(), page[0].index), (1, 1));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` if one of these messages is damaged; `Io`.
    pub fn messages(&self, name: impl Into<Name>, from: u64, limit: usize) -> Result<Vec<StoredMessage>> {
        self.ask(name, |log, name| reading::messages(log, name, from, limit))
    }

    /// As [`Store::messages`], as many as a page holds. Also returns where the next page begins, if there is one.
    #[cfg(feature = "server")]
    pub(crate) fn page(
        &self,
        name: impl Into<Name>,
        from: u64,
        size: PageSize,
    ) -> Result<(Vec<StoredMessage>, Option<u64>)> {
        self.ask(name, |log, name| reading::page(log, name, from, &size))
    }

    /// The newest messages, or those before an index, as many as a page holds, in order. Cost: as [`Store::messages`]; if
    /// they are more than the page's bytes, some of them are read twice or more.
    #[cfg(feature = "server")]
    pub(crate) fn page_before(
        &self,
        name: impl Into<Name>,
        before: Option<u64>,
        size: PageSize,
    ) -> Result<Vec<StoredMessage>> {
        self.ask(name, |log, name| reading::page_before(log, name, before, &size))
    }

    /// The newest `count` messages, in order, as they were appended. Cost: as [`Store::messages`].
    ///
    /// # Errors
    /// As [`Store::messages`].
    pub fn newest_messages(&self, name: impl Into<Name>, count: usize) -> Result<Vec<StoredMessage>> {
        let (grouped, _) = self.ask(name, |log, name| reading::newest_messages(log, name, count))?;
        reading::raw(grouped)
    }

    /// Up to `limit` entries with these seqs, in order: the log itself, with what was rewound.
    ///
    /// ```
    /// # use conversation_store::{Store, model::Message};
    /// # let store = Store::open("memory:")?;
    /// # store.append("c", &[Message::user("a"), Message::user("b")])?;
    /// let entries = store.entries("c", 2.., 100)?;
    /// assert_eq!(entries[0].seq, 2);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `Corrupt`; `Io`.
    pub fn entries(&self, name: impl Into<Name>, seqs: impl RangeBounds<u64>, limit: usize) -> Result<Vec<Entry>> {
        self.ask(name, |log, name| reading::entries(log, name, inclusive(&seqs), Order::Ascending, limit))
    }

    /// Up to `limit` entries after a cursor: `entries_since(name, 41, 100)` begins with seq 42.
    ///
    /// # Errors
    /// As [`Store::entries`]; `CursorOutOfRange` if the cursor is past the last seq; `StaleCursor` if it belongs to an earlier
    /// conversation of this name.
    pub fn entries_since(&self, name: impl Into<Name>, cursor: impl Into<Cursor>, limit: usize) -> Result<Vec<Entry>> {
        let cursor = cursor.into();
        self.ask(name, |log, name| {
            check_cursor(name, &reading::view(log, name)?, cursor)?;
            reading::entries(log, name, cursor.seq.saturating_add(1)..=LAST_SEQ, Order::Ascending, limit)
        })
    }

    /// The newest `count` entries, in order of seq.
    ///
    /// # Errors
    /// As [`Store::entries`].
    pub fn newest_entries(&self, name: impl Into<Name>, count: usize) -> Result<Vec<Entry>> {
        let newest = |log: &dyn Log, name: &Name| reading::entries(log, name, 1..=LAST_SEQ, Order::Descending, count);
        let mut entries = self.ask(name, newest)?;
        entries.reverse();
        Ok(entries)
    }

    /// Follows a conversation from a cursor on: see [`Tail`].
    ///
    /// # Errors
    /// As [`Store::entries_since`].
    pub fn tail(&self, name: impl Into<Name>, cursor: impl Into<Cursor>) -> Result<Tail> {
        let cursor = cursor.into();
        self.ask(name, |log, name| {
            let view = reading::view(log, name)?;
            check_cursor(name, &view, cursor)?;
            Ok(Tail::new(Arc::clone(&self.log), name.clone(), view.head.incarnation, cursor.seq))
        })
    }
}

/// Fails on a cursor that is not of this conversation.
fn check_cursor(name: &Name, view: &View, cursor: Cursor) -> Result<()> {
    if cursor.incarnation.is_some_and(|incarnation| incarnation != view.head.incarnation) {
        return Err(Error::StaleCursor { conversation: name.clone() });
    }
    let last_seq = view.last_seq();
    if cursor.seq > last_seq {
        return Err(Error::CursorOutOfRange { conversation: name.clone(), cursor: cursor.seq, last_seq });
    }
    Ok(())
}

fn inclusive(range: &impl RangeBounds<u64>) -> RangeInclusive<u64> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(start) => start.saturating_add(1),
        Bound::Unbounded => 1,
    };
    let end = match range.end_bound() {
        Bound::Included(end) => *end,
        Bound::Excluded(end) => end.saturating_sub(1),
        Bound::Unbounded => LAST_SEQ,
    };
    start.max(1)..=end.min(LAST_SEQ)
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use std::ops::{ControlFlow, Range};
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::history::Grouper;
    use crate::log::limits::message_bytes;
    use crate::log::{Around, Reading, Visit};
    use crate::model::{Chunk, Message, Metadata, Role};

    /// However pages are cut, they have all messages once, in order.
    #[test]
    fn pages_have_everything_once() {
        let store = Store::open("memory:").unwrap();
        let said = |at: usize| Message::user(format!("{at} {}", "x".repeat(at * 37 % 500)));
        let append = |range: Range<usize>| store.append("c", &range.map(said).collect::<Vec<_>>()).unwrap();
        append(0..3);
        let mut open = store.begin("c", Role::Assistant, Metadata::default()).unwrap();
        open.push(0, Chunk::text("first ")).unwrap();
        append(3..30);
        (30..40).for_each(|at| drop(append(at..at + 1)));
        store.rewind("c", 35).unwrap();
        store.remove("c", 7, None).unwrap();
        append(40..70);
        store.remove("c", 50, None).unwrap();
        open.push(0, Chunk::text("last")).unwrap();
        store.sync().unwrap();
        for has_ended in [false, true] {
            if has_ended {
                open.finish(None, None).unwrap();
                open = store.begin("c", Role::Assistant, Metadata::default()).unwrap();
                open.push(0, Chunk::text("at the end")).unwrap();
                store.sync().unwrap();
            }
            let seen = store.load_raw("c").unwrap();
            assert!(seen.iter().any(|stored| stored.message.chunks == [Chunk::text("first last")]));
            for (limit, bytes) in
                [1, 2, 3, 7, 100].into_iter().flat_map(|limit| [1, 200, 2_000, usize::MAX].map(|bytes| (limit, bytes)))
            {
                let size = PageSize { limit, bytes, shows_hidden: false };
                let is_fitting = |page: &[StoredMessage]| {
                    let before_last =
                        page.iter().rev().skip(1).map(|stored| message_bytes(&stored.message)).sum::<usize>();
                    page.len() <= limit && (page.len() <= 1 || before_last < bytes)
                };
                let (mut forwards, mut from) = (Vec::new(), Some(0));
                while let Some(index) = from {
                    let (page, next) = store.page("c", index, size).unwrap();
                    assert!(is_fitting(&page), "{limit} {bytes} from {index}: {}", page.len());
                    forwards.extend(page);
                    from = next;
                }
                assert_eq!(forwards, seen, "{limit} {bytes}");
                let (mut backwards, mut before) = (Vec::new(), None);
                loop {
                    let mut page = store.page_before("c", before, size).unwrap();
                    let Some(first) = page.first() else { break };
                    before = Some(first.index);
                    assert!(is_fitting(&page), "{limit} {bytes} before {before:?}: {}", page.len());
                    page.append(&mut backwards);
                    backwards = page;
                }
                assert_eq!(backwards, seen, "{limit} {bytes}");
            }
            let all = PageSize { limit: 1_000, bytes: usize::MAX, shows_hidden: true };
            let (hidden, _) = store.page("c", 0, all).unwrap();
            assert_eq!(
                hidden.len() as u64,
                store.describe("c").unwrap().messages + store.describe("c").unwrap().hidden
            );
        }
    }

    /// A log that counts its reads.
    #[derive(Debug)]
    struct Reads<'a> {
        log: &'a dyn Log,
        count: AtomicU32,
    }

    impl Around for Reads<'_> {
        fn log(&self) -> &dyn Log {
            self.log
        }

        fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()> {
            self.count.fetch_add(1, Ordering::Relaxed);
            self.log.read(view, seqs, order, visit)
        }
    }

    /// Where all messages have as many entries, one read finds where a message begins. Elsewhere it takes some more.
    #[test]
    fn a_message_is_found_in_few_reads() {
        let store = Store::open("memory:").unwrap();
        for at in 0..1_000 {
            let chunks = if at < 900 { 1 } else { 50 };
            let uneven = Message::new(Role::User, (0..chunks).map(|_| Chunk::text("x")));
            store.append("even", &[Message::user("x")]).unwrap();
            store.append("uneven", &[uneven]).unwrap();
        }
        let log = Reads { log: store.log(), count: AtomicU32::new(0) };
        for at in 0..1_000 {
            for (name, most) in [("even", 2), ("uneven", 14)] {
                let messages = reading::messages(&log, &name.into(), at, 1).unwrap();
                assert_eq!((messages.len(), messages[0].index), (1, at));
                let reads = log.count.swap(0, Ordering::Relaxed);
                assert!(reads <= most, "{reads} reads for message {at} of {name}");
            }
        }
    }

    /// What one large record holds before a page does not count for it.
    #[test]
    fn a_page_after_a_large_record_is_full() {
        let store = Store::open("memory:").unwrap();
        store.append("c", &vec![Message::user("x".repeat(100)); 100]).unwrap();
        (0..3).for_each(|_| drop(store.append("c", &[Message::user("y")]).unwrap()));
        let size = PageSize { limit: 50, bytes: 9_000, shows_hidden: false };
        let page = store.page_before("c", None, size).unwrap();
        assert_eq!((page.len(), page.last().unwrap().index), (50, 102));
        assert_eq!(store.page("c", 60, size).unwrap().0.len(), 43);
    }

    /// A message that goes on far after it began is read to its end, and what others said meanwhile is not held.
    #[test]
    fn only_the_first_message_is_held_while_it_goes_on() {
        let store = Store::open("memory:").unwrap();
        let mut open = store.begin("c", Role::Assistant, Metadata::default()).unwrap();
        open.push(0, Chunk::text("first ")).unwrap();
        store.append("c", &vec![Message::user("x"); 50]).unwrap();
        open.push(0, Chunk::text("last")).unwrap();
        open.finish(None, None).unwrap();
        store.append("c", &[Message::user("later")]).unwrap();
        let view = reading::view(store.log(), &"c".into()).unwrap();
        let mut grouper = Grouper::new(view.epoch, view.live.clone(), 0);
        let read = store.log().read(&view, 1..=view.last_seq(), Order::Ascending, &mut |reading| {
            let Reading::Record { record, last, own } = reading else { panic!("it is whole") };
            grouper.push(record, last, own);
            grouper.keep_first();
            ControlFlow::Continue(())
        });
        read.unwrap();
        let first = store.messages("c", 0, 1).unwrap();
        assert_eq!(first[0].message.chunks, [Chunk::text("first last")]);
        assert_eq!(grouper.finish().messages, first);
    }
}

impl Store {
    /// What the list has of one conversation: title, key, times, last seq, parent. Cost: as in [`Store::list`].
    ///
    /// # Errors
    /// `NotFound`; `Corrupt`; `Io`.
    pub fn describe(&self, name: impl Into<Name>) -> Result<ListItem> {
        let view = self.ask(name, reading::view)?;
        let mut item = ListItem::new(view.id, view.head);
        self.count(&mut item)?;
        Ok(item)
    }

    /// A conversation's metadata, if some was set. A fork begins with that of its parent. Cost: one read for each change of
    /// title, tags or metadata since.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt`; `Io`.
    pub fn metadata(&self, name: impl Into<Name>) -> Result<Option<Json>> {
        self.ask(name, reading::metadata)
    }

    /// A page of the list of conversations, newest activity first unless the query says otherwise. Cost: one read an item, and
    /// one for each rewind and removal of it; see [`ListQuery`] for filters. A page with filters may have few items, and still
    /// a next page.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub fn list(&self, query: &ListQuery) -> Result<ListPage> {
        let mut page = if query.metadata.is_empty() { self.log.list(query)? } else { self.list_by_metadata(query)? };
        page.items.iter_mut().try_for_each(|item| self.count(item))?;
        Ok(page)
    }

    /// A page of what has the metadata, among as many conversations as one page of the log has.
    fn list_by_metadata(&self, query: &ListQuery) -> Result<ListPage> {
        let mut page = self.log.list(&query.clone().with_limit(METADATA_SCANNED.max(query.limit)))?;
        let mut last = None;
        for item in std::mem::take(&mut page.items) {
            if page.items.len() == query.limit {
                page.next = last.map(ListCursor);
                break;
            }
            last = Some(query.place(&item));
            let metadata = match self.metadata(item.id) {
                Err(Error::NotFound { .. }) => continue,
                read => read?,
            };
            if metadata.is_some_and(|metadata| has_fields(&metadata, &query.metadata)) {
                page.items.push(item);
            }
        }
        Ok(page)
    }

    /// Counts what is hidden. Where damage keeps that from being read, nothing is.
    fn count(&self, item: &mut ListItem) -> Result<()> {
        if item.is_uncounted
            && let Some(view) = readable(self.log.view(&item.id.into()))?.flatten()
            && let Some(hidden) = readable(hidden::count(&*self.log, &view))?
        {
            item.hide(hidden);
        }
        Ok(())
    }

    /// The messages that were begun and are not finished: those that are being written, and those that were interrupted and
    /// that no later message follows. By conversation id.
    ///
    /// After a crash these are the answers that were cut off. Cost: one read for each conversation that has such messages.
    ///
    /// ```
    /// use conversation_store::{MessageState, Store};
    /// use conversation_store::model::{Metadata, Role};
    ///
    /// let store = Store::open("memory:")?;
    /// let writer = store.begin("chat", Role::Assistant, Metadata::default())?;
    /// assert_eq!(store.unfinished()?[0].state, MessageState::Streaming);
    /// drop(writer);
    /// store.sync()?;
    /// assert_eq!(store.unfinished()?[0].state, MessageState::Interrupted);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub fn unfinished(&self) -> Result<Vec<Unfinished>> {
        let mut found = Vec::new();
        for id in self.log.unfinished()? {
            let view = readable(self.log.view(&id.into()))?.flatten();
            found.extend(view.iter().flat_map(reading::unfinished));
        }
        Ok(found)
    }

    /// The place of a provider's item id in a conversation: the id of a chunk ([`crate::model::Chunk::id`]) or of a message
    /// ([`crate::model::Metadata::id`]). If several have the id, the first that no rewind hides is returned. A fork also has
    /// the items that it shares with its parent.
    ///
    /// ```
    /// use conversation_store::Store;
    /// use conversation_store::model::{Chunk, Message};
    ///
    /// let store = Store::open("memory:")?;
    /// let thought = Chunk { id: Some("rs_1".to_owned()), ..Chunk::thinking("Hm.") };
    /// store.append("chat", &[Message::user("hello"), Message::assistant([thought])])?;
    /// let item = store.find_item("chat", "rs_1")?;
    /// assert_eq!(item.map(|item| (item.message_index, item.chunk_index)), Some((1, Some(0))));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// Cost: a look into the index, and reading the record that it names.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation; `Corrupt`; `Io`.
    pub fn find_item(&self, name: impl Into<Name>, item_id: &str) -> Result<Option<Item>> {
        self.ask(name, |log, name| items::find(log, &reading::view(log, name)?, item_id))
    }

    /// As [`Store::find_item`], where what was removed or rewound counts too: a reader who stopped there goes on from there.
    #[cfg(feature = "server")]
    pub(crate) fn find_hidden_item(&self, name: impl Into<Name>, item_id: &str) -> Result<Option<Item>> {
        self.ask(name, |log, name| items::find_hidden(log, &reading::view(log, name)?, item_id))
    }

    /// The places of a provider's item id in all conversations, by their ids. Cost: a look into the index for each
    /// conversation. Conversations that are damaged are left out; [`Store::verify`] reports them.
    ///
    /// # Errors
    /// `Io`.
    pub fn find_item_everywhere(&self, item_id: &str) -> Result<Vec<Item>> {
        let mut found = Vec::new();
        for id in self.log.conversations()? {
            let looked = self
                .log
                .view(&id.into())
                .and_then(|view| view.map_or(Ok(None), |view| items::find(&*self.log, &view, item_id)));
            found.extend(readable(looked)?.flatten());
        }
        Ok(found)
    }
}

/// What was read of one conversation among many: nothing, if damage keeps it from being read.
fn readable<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Error::Corrupt { .. } | Error::UnsupportedVersion { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether an object has these fields: texts, or other values as JSON.
fn has_fields(object: &Json, wanted: &[(String, String)]) -> bool {
    let Ok(fields) = Fields::read(object.as_str()) else { return false };
    wanted.iter().all(|(name, value)| {
        let raw = fields.last(name);
        raw.is_some_and(|raw| {
            raw.get() == value || serde_json::from_str::<String>(raw.get()).is_ok_and(|text| text == *value)
        })
    })
}
