//! Limits on what one owner has stored: a log around the log, so that no way to write goes past them.
//!
//! `usage` knows what each owner has, and what may be added. It is counted on what is stored: on a thread of its own, one owner
//! after the other.

mod usage;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::config::Bounds;
use super::keys::RESERVED;
use super::proxy;
use crate::error::{Error, Result};
use crate::history::Cursor;
use crate::log::limits::{check_chunk, check_messages};
use crate::log::locked;
use crate::log::{
    AppendOptions, Around, Changes, Control, Controlled, ExpectedHead, ForkAt, ListQuery, Log, NewConversation,
    OpenMessage, Order, Reading, Receipt, View,
};
use crate::model::{Chunk, FinishReason, Json, Message, Metadata, Name, Role};
use crate::record::Body;
use crate::store::Store;
use usage::{Amount, Usages};

/// What an entry takes beside its content: 10 to 50 bytes.
const ENTRY: u64 = 32;

/// A log that takes no more of one owner than it may store.
struct Quota {
    log: Arc<dyn Log>,
    usages: Arc<Usages>,
    counter: Counter,
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.log.fmt(f)
    }
}

/// The store, with the limits that are set.
pub(super) fn limited(store: Store, limits: &Bounds) -> Store {
    let most = Amount { bytes: limits.owner_bytes, conversations: limits.owner_conversations };
    if most == Amount::default() {
        return store;
    }
    store.around(|log| {
        let (usages, counter) = start(Arc::clone(&log), most);
        Quota { log, usages, counter }
    })
}

impl Quota {
    /// Whose conversation it is, or will be.
    fn owner(&self, name: &Name) -> Result<String> {
        match (name.owner(), name.key()) {
            (Some(owner), _) => Ok(owner.to_owned()),
            (None, Some(_)) => Ok(String::new()),
            (None, None) => Ok(self.log.view(name)?.map_or_else(String::new, |view| view.head.owner.clone())),
        }
    }

    /// One conversation, if there is none of that name. Not looked up if their number is not limited.
    fn new_conversations(&self, name: &Name) -> Result<u64> {
        let is_limited = self.usages.most().conversations > 0;
        Ok(u64::from(is_limited && self.log.view(name)?.is_none()))
    }

    /// Writes something of this size that is kept beside an owner's conversations.
    fn write_beside<T>(&self, whose: &str, bytes: u64, ends: bool, write: impl FnOnce() -> Result<T>) -> Result<T> {
        let taken = self.usages.take_beside(whose, bytes, ends)?;
        let written = write()?;
        taken.keep(Amount { bytes, conversations: 0 });
        Ok(written)
    }

    /// Writes something of this size. What repeats an earlier request adds nothing, and is answered over the limit too.
    fn write<T>(
        &self,
        name: &Name,
        bytes: u64,
        options: &AppendOptions,
        receipt: impl Fn(&T) -> &Receipt,
        write: impl Fn(&AppendOptions) -> Result<T>,
    ) -> Result<T> {
        let owner = self.owner(name)?;
        if let Some(whose) = proxy::whose_book(name) {
            return self.write_beside(whose, bytes, false, || write(options));
        }
        if owner.starts_with(RESERVED) {
            return write(options);
        }
        let amount = Amount { bytes, conversations: self.new_conversations(name)? };
        let taken = match self.usages.take(&owner, amount) {
            Ok(taken) => taken,
            Err(over @ Error::LimitExceeded { .. }) if options.idempotency_key.is_some() => {
                // The key is looked at before what is expected, and nothing else can be written.
                return match write(&options.clone().with_expected(ExpectedHead::At(u64::MAX))) {
                    Err(error) if !matches!(error, Error::KeyReused { .. }) => Err(over),
                    repeated => repeated,
                };
            }
            Err(error) => return Err(error),
        };
        let written = write(options)?;
        match receipt(&written) {
            Receipt { duplicate: true, .. } => {}
            // Another one made the conversation meanwhile.
            Receipt { first_seq: 2.., .. } => taken.keep(Amount { bytes, conversations: 0 }),
            _ => taken.keep(amount),
        }
        Ok(written)
    }
}

impl Around for Quota {
    fn log(&self) -> &dyn Log {
        &*self.log
    }

    fn append(&self, name: &Name, messages: &[Message], changes: &Changes, options: &AppendOptions) -> Result<Receipt> {
        let content = if messages.is_empty() { 0 } else { check_messages(messages)? };
        let is_limited = self.usages.most().bytes > 0;
        let said = if is_limited { Body::messages(messages, content)?.content().len() as u64 } else { 0 };
        let changed = if changes.is_empty() { 0 } else { changes.bytes() as u64 + ENTRY };
        let bytes = said + changed;
        let write = |options: &AppendOptions| self.log.append(name, messages, changes, options);
        match proxy::whose_book(name) {
            Some(whose) => self.write_beside(whose, bytes, proxy::is_end(messages), || write(options)),
            None => self.write(name, bytes, options, |receipt| receipt, write),
        }
    }

    fn begin(
        &self,
        name: &Name,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Box<dyn OpenMessage>>, Receipt)> {
        let begin = |options: &AppendOptions| self.log.begin(name, role, metadata.clone(), options);
        let known = Message { metadata: metadata.clone(), ..Message::new(role, []) };
        let bytes = check_messages(std::slice::from_ref(&known))? as u64 + ENTRY;
        let (message, receipt) = self.write(name, bytes, options, |(_, receipt)| receipt, begin)?;
        let (usages, owner) = (Arc::clone(&self.usages), self.owner(name)?);
        let counted = |message| Box::new(Counted { message, usages, owner }) as Box<dyn OpenMessage>;
        Ok((message.map(counted), receipt))
    }

    fn create(&self, name: &Name, conversation: &NewConversation) -> Result<Receipt> {
        let NewConversation { title, tags, metadata, time: _ } = conversation;
        let metadata = metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
        let texts = title.iter().chain(tags).map(String::len).sum::<usize>();
        let bytes = (metadata + texts) as u64 + ENTRY;
        let create = |_: &AppendOptions| self.log.create(name, conversation);
        match self.write(name, bytes, &AppendOptions::new(), |receipt| receipt, create) {
            // What is there is known at the limit, too.
            Err(over @ Error::LimitExceeded { .. }) => match self.log.view(name)? {
                Some(view) => Err(Error::NameTaken { conversation: name.clone(), actual: view.last_seq() }),
                None => Err(over),
            },
            created => created,
        }
    }

    fn control(&self, name: &Name, control: &Control<'_>) -> Result<Controlled> {
        let bytes = ENTRY
            + match control {
                Control::Title(title) => title.map_or(0, str::len),
                Control::Tags { add, .. } => add.iter().map(|tag| tag.len()).sum(),
                Control::Metadata(metadata) => metadata.as_str().len(),
                Control::Summarize { text, .. } => text.len(),
                // What hides something is never refused.
                Control::Rewind { .. } | Control::Remove { .. } => return self.log.control(name, control),
            } as u64;
        let amount = Amount { bytes, conversations: 0 };
        let taken = self.usages.take(&self.owner(name)?, amount)?;
        let controlled = self.log.control(name, control)?;
        taken.keep(amount);
        Ok(controlled)
    }

    fn fork(&self, parent: &Name, at: ForkAt, child: &Name) -> Result<()> {
        let owner = if child.owner().is_some() { self.owner(child)? } else { self.owner(parent)? };
        let view = if self.usages.most().bytes > 0 { self.log.view(parent)? } else { None };
        let through = at.seq.unwrap_or(u64::MAX);
        let shared = view.map_or(Ok(0), |view| read_bytes(&*self.log, &view, through))?;
        let amount = Amount { bytes: shared + ENTRY, conversations: 1 };
        let taken = self.usages.take(&owner, amount)?;
        self.log.fork(parent, at, child)?;
        taken.keep(amount);
        Ok(())
    }

    fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()> {
        let owner = self.owner(name)?;
        let view = if self.usages.is_counted(&owner) { self.log.view(name)? } else { None };
        let is_limited = self.usages.most().bytes > 0;
        // What cannot be read is deleted all the same.
        let bytes = view.filter(|_| is_limited).and_then(|view| read_bytes(&*self.log, &view, u64::MAX).ok());
        self.log.delete(name, at)?;
        self.usages.give_back(&owner, Amount { bytes: bytes.unwrap_or(0), conversations: 1 });
        Ok(())
    }

    fn close(&self) -> Result<()> {
        self.counter.stop();
        self.log.close()
    }
}

/// A message that is being written, whose deltas are counted as they come.
#[derive(Debug)]
struct Counted {
    message: Box<dyn OpenMessage>,
    usages: Arc<Usages>,
    owner: String,
}

impl OpenMessage for Counted {
    fn index(&self) -> u64 {
        self.message.index()
    }

    fn push(&self, chunk_index: u32, delta: Chunk) -> Result<()> {
        let amount = Amount { bytes: check_chunk(&delta)? as u64, conversations: 0 };
        let taken = self.usages.take(&self.owner, amount)?;
        self.message.push(chunk_index, delta)?;
        taken.keep(amount);
        Ok(())
    }

    fn finish(&self, reason: Option<FinishReason>, usage: Option<Json>, metadata: Metadata) -> Result<Receipt> {
        let end = Message { finish_reason: reason, usage, metadata, ..Message::new(Role::Assistant, []) };
        let bytes = check_messages(std::slice::from_ref(&end)).map_or(0, |bytes| bytes as u64) + ENTRY;
        let Message { finish_reason, usage, metadata, .. } = end;
        // A message is always closed, and what its end holds is counted.
        let receipt = self.message.finish(finish_reason, usage, metadata)?;
        self.usages.add(&self.owner, Amount { bytes, conversations: 0 });
        Ok(receipt)
    }
}

/// Conversations of one page of a list.
const PAGE: usize = 256;
/// Bytes of an entry's length before it.
const LENGTH: usize = 4;

/// The thread that counts.
pub(super) struct Counter {
    usages: Arc<Usages>,
    stopped: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Begins to count when a write asks for it.
fn start(log: Arc<dyn Log>, most: Amount) -> (Arc<Usages>, Counter) {
    let (queue, asked) = channel();
    let usages = Usages::new(most, queue);
    let stopped = Arc::<AtomicBool>::default();
    let (counting, ends) = (Arc::clone(&usages), Arc::clone(&stopped));
    let thread = std::thread::spawn(move || serve(&*log, &counting, &asked, &ends));
    let counter = Counter { usages: Arc::clone(&usages), stopped, thread: Mutex::new(Some(thread)) };
    (usages, counter)
}

fn serve(log: &dyn Log, usages: &Usages, asked: &Receiver<String>, stopped: &AtomicBool) {
    for owner in asked {
        let is_stopped = || stopped.load(Ordering::Acquire);
        let counted = count(log, &owner, usages.most().bytes > 0, &is_stopped);
        if let Err(error) = &counted {
            tracing::error!(%error, "what an owner has stored cannot be counted");
        }
        usages.set(&owner, counted.ok().filter(|_| !is_stopped()));
    }
}

impl Counter {
    /// Ends the thread, between two conversations.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.usages.stop();
        let thread = locked(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What an owner has. Cost: a read of the owner's conversations, whole if their bytes are counted.
fn count(log: &dyn Log, owner: &str, bytes: bool, is_stopped: &dyn Fn() -> bool) -> Result<Amount> {
    let mut query = ListQuery::new().with_owner(owner).with_limit(PAGE);
    let mut amount = Amount::default();
    if bytes && let Some(book) = log.view(&proxy::book(owner))? {
        amount.bytes += read_bytes(log, &book, u64::MAX)?;
    }
    loop {
        let page = log.list(&query)?;
        amount.conversations += (page.items.len() + page.unreadable.len()) as u64;
        if bytes {
            for item in &page.items {
                if is_stopped() {
                    return Ok(amount);
                }
                // One that was deleted meanwhile has nothing.
                if let Some(view) = log.view(&Name::from(item.id))? {
                    amount.bytes += read_bytes(log, &view, u64::MAX)?;
                }
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(amount),
        }
    }
}

/// Bytes of the entries that a conversation reads up to a seq: its own, and those that it shares. What is shared stays readable
/// when the others are deleted, so it counts for each.
fn read_bytes(log: &dyn Log, view: &View, through: u64) -> Result<u64> {
    let mut bytes = 0;
    log.read(view, 1..=through.min(view.last_seq()), Order::Ascending, &mut |reading| {
        if let Reading::Record { record, last, .. } = reading {
            let through = last.min(through);
            let read = record.raw_entries().take_while(|(seq, _)| *seq <= through);
            bytes += read.map(|(_, entry)| (entry.len() + LENGTH) as u64).sum::<u64>();
        }
        ControlFlow::Continue(())
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(bytes: u64, conversations: u64) -> Bounds {
        Bounds { owner_bytes: bytes, owner_conversations: conversations, ..Bounds::default() }
    }

    fn name(key: &str) -> Name {
        Name::from(key).with_owner("ada")
    }

    /// A store with limits, the store without them, and what is counted.
    fn counted(most: Amount) -> (Store, Store, Arc<Usages>) {
        let inner = Store::open("memory:").unwrap();
        let (log, mut usages) = (inner.clone(), None);
        let store = inner.around(|log| {
            let (counted, counter) = start(Arc::clone(&log), most);
            usages = Some(Arc::clone(&counted));
            Quota { log, usages: counted, counter }
        });
        (store, log, usages.unwrap())
    }

    /// What is counted as it is written is what is counted on what is stored.
    #[test]
    fn what_is_counted_is_what_is_stored() {
        let (store, log, usages) = counted(Amount { bytes: 1 << 30, conversations: 100 });
        let now = |usages: &Usages| usages.now("ada").unwrap();
        for at in 0..50_usize {
            let message = Message::assistant([Chunk::thinking("x".repeat(at)), Chunk::text("é".repeat(100 * at))]);
            store.append(name(&format!("chat {}", at % 7)), &[message, Message::user("hello")]).unwrap();
            let stored = count(log.log(), "ada", true, &|| false).unwrap();
            assert_eq!(now(&usages), stored, "{at}");
        }
        store.delete(name("chat 3")).unwrap();
        assert_eq!(now(&usages), count(log.log(), "ada", true, &|| false).unwrap());
        // Streams, forks and entries about a conversation are counted within what an entry takes.
        let mut writer = store.begin(name("chat 1"), Role::Assistant, Metadata::default()).unwrap();
        for _ in 0..100 {
            writer.push(0, Chunk::text("x".repeat(1_000))).unwrap();
        }
        let usage = Json::new(format!("{{\"note\":\"{}\"}}", "x".repeat(10_000))).unwrap();
        writer.finish(None, Some(usage)).unwrap();
        store.set_title(name("chat 1"), Some("title")).unwrap();
        store.fork_to(name("chat 1"), None, name("child")).unwrap();
        let (counted, stored) = (now(&usages), count(log.log(), "ada", true, &|| false).unwrap());
        assert_eq!(counted.conversations, stored.conversations);
        assert!(counted.bytes.abs_diff(stored.bytes) < 105 * 50, "{counted:?} {stored:?}");
        store.close().unwrap();
    }

    #[test]
    fn what_is_over_a_limit_is_refused_and_leaves_nothing() {
        let store = limited(Store::open("memory:").unwrap(), &limits(1_000, 2));
        let say = |key: &str, text: &str, options: &AppendOptions| {
            store.append_with(name(key), &[Message::user(text)], options)
        };
        let none = AppendOptions::new();
        let keyed = AppendOptions::new().with_idempotency_key("k");
        say("one", &"x".repeat(300), &keyed).unwrap();
        say("two", &"x".repeat(300), &none).unwrap();
        let over = |result: Result<Receipt>, what: &str| match result {
            Err(Error::LimitExceeded { what: limited, .. }) => assert!(limited.contains(what), "{limited}"),
            other => panic!("{other:?}"),
        };
        over(say("three", "x", &none), "owner_conversations");
        over(say("one", &"x".repeat(500), &none), "owner_bytes");
        over(store.create(name("three"), &NewConversation::new()), "owner_conversations");
        assert!(store.fork_to(name("one"), None, name("child")).is_err());
        // A repetition adds nothing, and other content under its key is still refused as such.
        assert!(say("one", &"x".repeat(300), &keyed).unwrap().duplicate);
        say("one", &"x".repeat(250), &none).unwrap();
        assert!(say("one", &"x".repeat(300), &keyed).unwrap().duplicate);
        assert!(matches!(say("one", &"y".repeat(300), &keyed), Err(Error::KeyReused { .. })));
        over(say("one", &"y".repeat(300), &AppendOptions::new().with_idempotency_key("l")), "owner_bytes");
        let mut writer = store.begin(name("two"), Role::Assistant, Metadata::default()).unwrap();
        assert!(matches!(writer.push(0, Chunk::text("x".repeat(300))), Err(Error::LimitExceeded { .. })));
        writer.finish(None, None).unwrap();
        assert_eq!(store.load_raw(name("two")).unwrap().len(), 2);
        // Another owner has limits of its own; what is deleted makes room.
        store.append(Name::from("one").with_owner("grace"), &[Message::user("x".repeat(900))]).unwrap();
        store.delete(name("one")).unwrap();
        say("three", &"x".repeat(500), &none).unwrap();
        store.close().unwrap();
    }

    /// What forks share stays when their parents are deleted.
    #[test]
    fn forks_and_deletions_do_not_go_past_a_limit() {
        let store = limited(Store::open("memory:").unwrap(), &limits(5_000, 0));
        let readable = |keys: &[String]| -> usize {
            let texts = keys.iter().flat_map(|key| store.load_raw(name(key)).unwrap_or_default());
            texts.map(|stored| stored.message.chunks.iter().map(|chunk| chunk.growing().len()).sum::<usize>()).sum()
        };
        let mut keys = Vec::new();
        for at in 0..20 {
            let (parent, child) = (format!("parent {at}"), format!("child {at}"));
            let said = store.append(name(&parent), &[Message::user("x".repeat(1_000))]);
            let forked = said.and_then(|_| store.fork_to(name(&parent), None, name(&child)));
            let _ = store.delete(name(&parent));
            keys.extend(forked.is_ok().then_some(child));
        }
        assert!((3_000..=5_000).contains(&readable(&keys)), "{}", readable(&keys));
        let last = keys.last().unwrap();
        store.fork_to(name(last), None, name("one more")).unwrap();
        let refused = store.fork_to(name(last), None, name("another one"));
        assert!(matches!(refused, Err(Error::LimitExceeded { .. })), "{refused:?}");
        // A part of a conversation counts for what it is.
        store.fork_to(name(last), Some(0), name("nothing of it")).unwrap();
        store.delete(name(&keys[0])).unwrap();
        store.fork_to(name(last), None, name("another one")).unwrap();
        store.close().unwrap();
    }

    #[test]
    fn many_at_once_do_not_go_past_a_limit() {
        let (store, log, usages) = counted(Amount { bytes: 100_000, conversations: 5 });
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let store = &store;
                scope.spawn(move || {
                    for at in 0..50 {
                        let key = format!("chat {}", (thread + at) % 9);
                        let _ = store.append(name(&key), &[Message::user("x".repeat(1_000))]);
                    }
                });
            }
        });
        let stored = count(log.log(), "ada", true, &|| false).unwrap();
        // One thread may hold the room for a conversation that another one makes, until no bytes are left.
        assert!((1..=5).contains(&stored.conversations), "{stored:?}");
        assert!((95_000..=100_000).contains(&stored.bytes), "{stored:?}");
        // Then it has given that back.
        assert_eq!(usages.now("ada"), Some(stored));
        store.close().unwrap();
    }
}
