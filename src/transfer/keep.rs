//! A foreign conversation into the store: the shown branch becomes the conversation, the others its forks.
//!
//! Each node is one append. Its idempotency key names its source, its conversation and itself, so what is stored
//! already is not stored again. If the store holds something else at its place, a fork takes what the export holds.
//!
//! The metadata of a conversation has a digest of what was imported. Where the export still has the same, and each branch has
//! its end, nothing of the branches is read or written: an import that is repeated costs what reading the export costs.

use std::hash::{DefaultHasher, Hasher};
use std::io;

use uuid::Uuid;

use super::foreign::{Branch, Foreign, Node, Skipped};
use super::take;
use crate::error::{Error, Result};
use crate::history::{Cursor, EntryKind, StoredMessage};
use crate::json;
use crate::log::{AppendOptions, Changes, Durability, ExpectedHead, ForkAt, Limits, NewConversation};
use crate::model::{Extra, Json, Message, Name, Timestamp};
use crate::store::Store;

/// The most forks of one conversation: each of them is a conversation of its own.
const BRANCHES: usize = 1000;
/// The most forks for changes of one node.
const CHANGES: u32 = 20;
/// The most entries between two imported messages that are no messages: titles, tags, metadata.
const BETWEEN: u64 = 1000;

/// The format of our own transcript.
pub(crate) const TRANSCRIPT: &str = "transcript";

/// What was done with a conversation.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The id of the shown branch.
    pub(crate) name: Name,
    /// Messages of the shown branch.
    pub(crate) messages: u64,
    /// Forks for the other branches.
    pub(crate) branches: u64,
    /// Messages that were not stored before.
    pub(crate) added: u64,
    /// What the user should know.
    pub(crate) notes: Vec<String>,
}

/// Which branches of a conversation are imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Branches {
    /// The shown branch becomes the conversation, each other one a fork.
    #[default]
    All,
    /// Only the shown branch; what is on others is counted.
    Current,
}

/// The key of a conversation of a format. A key that would be too long is replaced by a UUID of it.
///
/// The name in a transcript is the name here too: this program gave it.
pub(crate) fn key(format: &str, id: &str) -> String {
    let key = if format == TRANSCRIPT { id.to_owned() } else { format!("{format}:{id}") };
    if key.len() <= Limits::NAME_BYTES / 2 { key } else { format!("{format}:{}", digest(&key)) }
}

fn digest(text: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes())
}

/// Stores a conversation; without a store it is only counted.
pub(crate) fn keep(
    store: Option<&Store>,
    format: &str,
    owner: Option<&str>,
    which: Branches,
    foreign: &mut Foreign,
) -> Result<Kept> {
    let branches = foreign.branches();
    let key = key(format, &foreign.id);
    let mut keeper = Keeper {
        store,
        format,
        owner,
        key,
        kept: Vec::new(),
        added: 0,
        notes: Vec::new(),
        forks: 0,
        skipped: Skipped::new(),
        is_exact: true,
    };
    let (metadata, without_digest) = metadata(format, foreign);
    let is_stored = keeper.is_stored(&branches, which, foreign, metadata.as_ref())?;
    if is_stored {
        // It is only counted.
        keeper.store = None;
    }
    let mut shown = 0;
    let mut left = 0_u64;
    for (number, branch) in branches.iter().enumerate() {
        let says = nodes(branch, foreign).map(|node| node.messages.len() as u64).sum::<u64>();
        if number == 0 {
            shown = says;
        }
        let is_taken = number == 0 || says > 0 && which.takes(keeper.forks);
        if number > 0 && says > 0 && !is_taken {
            left += says;
        }
        keeper.branch(branch, is_taken, foreign, &metadata)?;
    }
    if branches.is_empty() {
        keeper.branch(&Branch { from: None, nodes: Vec::new() }, true, foreign, &metadata)?;
    }
    keeper.adopt(foreign, if keeper.is_exact { metadata } else { without_digest })?;
    if left > 0 {
        let kind =
            if which == Branches::Current { "message_of_another_branch" } else { "message_of_too_many_branches" };
        *keeper.skipped.entry(kind.to_owned()).or_default() += left;
    }
    for (kind, count) in std::mem::take(&mut keeper.skipped) {
        *foreign.skipped.entry(kind).or_default() += count;
    }
    let name = keeper.kept.first().map(|walked| walked.name.clone());
    let name = name.unwrap_or_else(|| keeper.name(&keeper.key));
    let (added, notes) = (if is_stored { 0 } else { keeper.added }, keeper.notes);
    Ok(Kept { name, messages: shown, branches: keeper.forks as u64, added, notes })
}

impl Branches {
    /// Whether one more branch becomes a fork, beside so many.
    fn takes(self, forks: usize) -> bool {
        self == Self::All && forks < BRANCHES
    }
}

/// The nodes of a branch.
fn nodes<'a>(branch: &'a Branch, foreign: &'a Foreign) -> impl Iterator<Item = &'a Node> {
    branch.nodes.iter().filter_map(|place| foreign.nodes.get(*place))
}

/// A digest of all that an import stores of a conversation. Where Rust changes it, everything is compared once more.
fn fingerprint(foreign: &Foreign) -> String {
    struct Digest(DefaultHasher);
    impl io::Write for Digest {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut digest = Digest(DefaultHasher::new());
    // All of it can be written as JSON, and the digest takes all that is written.
    let _ = serde_json::to_writer(&mut digest, &(&foreign.shown, &foreign.tags));
    for node in &foreign.nodes {
        let _ = serde_json::to_writer(&mut digest, &(&node.id, &node.parent, &node.messages));
    }
    format!("{:016x}", digest.0.finish())
}

/// What is known of a conversation beside its messages, as the store's metadata: with the digest of what is imported, and
/// without. Fields that would make it too large are left out.
fn metadata(format: &str, foreign: &mut Foreign) -> (Option<Json>, Option<Json>) {
    #[derive(serde::Serialize)]
    struct Import<'a> {
        source: &'a str,
        id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<&'a str>,
        #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
        raw: std::collections::BTreeMap<&'a str, &'a Json>,
    }
    const ROOM: usize = Limits::METADATA_BYTES - 4096;
    let mut fields: Vec<(&str, &Json)> = foreign.rest.iter().collect();
    fields.sort_by_key(|(name, json)| name.len() + json.as_str().len());
    let mut room = ROOM.saturating_sub(foreign.id.len() + foreign.title.as_ref().map_or(0, String::len));
    let mut left = Vec::new();
    let mut raw = std::collections::BTreeMap::new();
    for (name, json) in fields {
        let size = name.len() + json.as_str().len() + 8;
        if size <= room {
            room -= size;
            raw.insert(name, json);
        } else {
            left.push(format!("conversation_field_too_large:{name}"));
        }
    }
    let digest = fingerprint(foreign);
    let mut import = Import { source: format, id: &foreign.id, title: foreign.title.as_deref(), digest: None, raw };
    let json = |import: &Import<'_>| take::json_of(&std::collections::BTreeMap::from([("import", import)]));
    let without = json(&import);
    import.digest = Some(&digest);
    let with = json(&import);
    left.into_iter().for_each(|kind| foreign.skip(kind));
    (with, without)
}

/// A branch as it is stored.
struct Walked {
    name: Name,
    /// The name's key.
    key: String,
    /// Its beginning. Another conversation that is made under its name meanwhile gets none of its messages.
    beginning: Cursor,
    /// The last seq after each node, shared nodes included; first that before any node.
    seqs: Vec<u64>,
    /// When what is stored next was said, as far as the source knows.
    time: Option<Timestamp>,
}

struct Keeper<'a> {
    store: Option<&'a Store>,
    format: &'a str,
    owner: Option<&'a str>,
    key: String,
    kept: Vec<Walked>,
    added: u64,
    notes: Vec<String>,
    forks: usize,
    skipped: Skipped,
    /// Whether all that was taken is stored at its place, with nothing left out.
    is_exact: bool,
}

impl Keeper<'_> {
    fn name(&self, key: &str) -> Name {
        let name = Name::from(key);
        match self.owner {
            Some(owner) => name.with_owner(owner),
            None => name,
        }
    }

    /// Stores one branch. A branch that is not imported still has its place, so that others can fork from it.
    fn branch(&mut self, branch: &Branch, is_taken: bool, foreign: &Foreign, metadata: &Option<Json>) -> Result<()> {
        let nodes: Vec<&Node> = nodes(branch, foreign).collect();
        let mut walked = match branch.from.and_then(|(from, after)| Some((self.kept.get(from)?, after))) {
            None => {
                let name = self.name(&self.key);
                let seq = self.begin(&name, foreign, metadata, first_time(&nodes))?;
                Walked { beginning: self.beginning(&name)?, name, key: self.key.clone(), seqs: vec![seq], time: None }
            }
            Some((parent, after)) => {
                let seqs: Vec<u64> = parent.seqs.iter().take(after + 1).copied().collect();
                let (parent, parent_key) = (parent.name.clone(), parent.key.clone());
                if is_taken && let Some(name) = self.holds(&nodes, foreign)? {
                    // Another branch was shown when it was imported.
                    Walked { beginning: self.beginning(&name)?, name, key: self.key.clone(), seqs, time: None }
                } else if is_taken {
                    let key = self.fork_key(&nodes);
                    let name = self.name(&key);
                    let at = ForkAt { seq: seqs.last().copied(), time: first_time(&nodes) };
                    self.fork(&parent, at, &name)?;
                    self.forks += 1;
                    Walked { beginning: self.beginning(&name)?, name, key, seqs, time: None }
                } else {
                    Walked { beginning: Cursor::default(), name: parent, key: parent_key, seqs, time: None }
                }
            }
        };
        walked.time = first_time(&nodes);
        for node in nodes {
            walked.time = times(node).max().or(walked.time);
            let before = walked.seqs.last().copied().unwrap_or_default();
            let after = if is_taken { self.node(&mut walked, before, node, foreign)? } else { before };
            walked.seqs.push(after);
        }
        self.kept.push(walked);
        Ok(())
    }

    /// The key of a fork: it is named after its first node with a message.
    fn fork_key(&self, nodes: &[&Node]) -> String {
        let first = nodes.iter().find(|node| !node.messages.is_empty()).map_or("", |node| node.id.as_str());
        key(&self.key, first)
    }

    /// Whether an earlier import stored all that this one would: it left the same metadata, with their digest, and each branch
    /// has its end. What comes before the end of a branch is there too, because each append expects the one before it.
    fn is_stored(
        &self,
        branches: &[Branch],
        which: Branches,
        foreign: &Foreign,
        metadata: Option<&Json>,
    ) -> Result<bool> {
        let Some(store) = self.store else { return Ok(false) };
        match store.metadata(self.name(&self.key)) {
            Ok(known) if known.as_ref() == metadata => {}
            Ok(_) | Err(Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        let mut forks = 0;
        for (number, branch) in branches.iter().enumerate() {
            let nodes: Vec<&Node> = nodes(branch, foreign).collect();
            let Some(last) = nodes.iter().rev().find(|node| !node.messages.is_empty()) else { continue };
            if number > 0 && !which.takes(forks) {
                continue;
            }
            forks += usize::from(number > 0);
            let key = if number == 0 { self.key.clone() } else { self.fork_key(&nodes) };
            if !self.has(store, &self.name(&key), last, foreign)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The conversation itself, if it has the messages of a branch that would be a fork.
    fn holds(&self, nodes: &[&Node], foreign: &Foreign) -> Result<Option<Name>> {
        let last = nodes.iter().rev().find(|node| !node.messages.is_empty());
        let (Some(store), Some(last)) = (self.store, last) else { return Ok(None) };
        let name = self.name(&self.key);
        Ok(self.has(store, &name, last, foreign)?.then_some(name))
    }

    /// Whether a conversation has the messages of a node.
    fn has(&self, store: &Store, name: &Name, node: &Node, foreign: &Foreign) -> Result<bool> {
        /// No conversation ends here, so what is not stored yet is not appended.
        const NOWHERE: u64 = 1 << 62;
        let Some((messages, key)) = self.appends(node, foreign).next_back() else { return Ok(true) };
        let options = AppendOptions::new()
            .with_expected(ExpectedHead::At(NOWHERE))
            .with_idempotency_key(key)
            .with_durability(Durability::Buffered);
        match store.append_with(name, messages, &options) {
            Ok(_) => Ok(true),
            Err(
                Error::StaleHead { .. }
                | Error::KeyReused { .. }
                | Error::NotFound { .. }
                | Error::LimitExceeded { .. },
            ) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates the conversation, or finds it. Returns its seq before any message. `time`: when it began.
    fn begin(&self, name: &Name, foreign: &Foreign, metadata: &Option<Json>, time: Option<Timestamp>) -> Result<u64> {
        const FIRST: u64 = 1;
        let Some(store) = self.store else { return Ok(0) };
        let mut new = NewConversation::new();
        new.title = title(foreign);
        new.tags = tags(foreign);
        new.metadata.clone_from(metadata);
        new.time = time;
        match store.create(name, &new) {
            Ok(receipt) => Ok(receipt.last_seq),
            // One that was not imported may begin with a message.
            Err(Error::NameTaken { .. }) => {
                store.sync()?;
                let first = store.entries(name, FIRST..=FIRST, 1)?;
                let is_about_all = first.iter().any(|entry| matches!(entry.kind, EntryKind::Meta { .. }));
                Ok(if is_about_all { FIRST } else { 0 })
            }
            Err(error) => Err(error),
        }
    }

    fn beginning(&self, name: &Name) -> Result<Cursor> {
        self.store.map_or_else(|| Ok(Cursor::default()), |store| Ok(store.tail(name, 0)?.cursor()))
    }

    /// Adopts a title, tags and metadata that changed in the source, once the messages are stored: the digest says that they
    /// are. A title that was given here stays.
    fn adopt(&self, foreign: &Foreign, metadata: Option<Json>) -> Result<()> {
        let (Some(store), Some(now)) = (self.store, metadata) else { return Ok(()) };
        let name = self.name(&self.key);
        let Some(old) = store.metadata(&name)?.filter(|old| *old != now) else { return Ok(()) };
        let import = Extra::from_object(old.as_str()).ok().and_then(|fields| fields.get("import").cloned());
        let Some(import) = import.and_then(|import| Extra::from_object(import.as_str()).ok()) else { return Ok(()) };
        let old_title: Option<String> = import.get("title").and_then(|json| serde_json::from_str(json.as_str()).ok());
        store.sync()?;
        let known = store.describe(&name)?;
        let mut changes = Changes::new().with_metadata(now);
        let new = title(foreign);
        if new != known.title && known.title.as_deref() == old_title.as_deref().map(cut) {
            changes.title = new;
        }
        changes.add_tags = tags(foreign);
        // Nothing was said: it was active when it was.
        store.append_changing(&name, &[], &changes, &AppendOptions::new().with_time(known.last_activity))?;
        Ok(())
    }

    fn fork(&self, parent: &Name, at: ForkAt, name: &Name) -> Result<bool> {
        let Some(store) = self.store else { return Ok(true) };
        if store.describe(name).is_ok() {
            return Ok(false);
        }
        // A fork shares durable entries.
        store.sync()?;
        match store.fork_when(parent, at, name) {
            Ok(()) => Ok(true),
            Err(Error::NameTaken { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Stores a node's messages after this seq. Returns the last seq.
    fn node(&mut self, walked: &mut Walked, before: u64, node: &Node, foreign: &Foreign) -> Result<u64> {
        let Some(store) = self.store else {
            self.added += node.messages.len() as u64;
            return Ok(0);
        };
        let mut last = before;
        for (messages, key) in self.appends(node, foreign) {
            last = self.append(store, walked, last, messages, &key, &node.id)?;
        }
        Ok(last)
    }

    /// The appends of a node, each with its idempotency key.
    fn appends<'n>(
        &self,
        node: &'n Node,
        foreign: &Foreign,
    ) -> impl DoubleEndedIterator<Item = (&'n [Message], String)> + use<'n> {
        let node_key = format!("import:{}:{}:{}", self.format, foreign.id, node.id);
        node.messages.chunks(Limits::APPEND_MESSAGES).enumerate().map(move |(part, messages)| {
            let part = if part == 0 { String::new() } else { format!("#{part}") };
            // A message that was exported while it was being written has more chunks once it is complete.
            let chunks = messages.iter().map(|message| message.chunks.len()).sum::<usize>();
            let chunks = if chunks == 1 { String::new() } else { format!("+{chunks}") };
            let key = format!("{node_key}{part}{chunks}");
            (messages, if key.len() <= Limits::NAME_BYTES { key } else { format!("import:{}", digest(&key)) })
        })
    }

    fn append(
        &mut self,
        store: &Store,
        walked: &mut Walked,
        before: u64,
        messages: &[Message],
        key: &str,
        id: &str,
    ) -> Result<u64> {
        let (name, own_key) = (walked.name.clone(), walked.key.clone());
        let mut expected = before;
        let mut changes = 0;
        let mut has_grown = false;
        loop {
            let mut options = AppendOptions::new()
                .with_expected(ExpectedHead::AtCursor(walked.beginning.with_seq(expected)))
                .with_idempotency_key(key)
                .with_durability(Durability::Buffered);
            options.time = walked.time;
            match store.append_with(&walked.name, messages, &options) {
                Ok(receipt) => {
                    if !receipt.duplicate {
                        self.added += messages.len() as u64;
                    }
                    return Ok(receipt.last_seq);
                }
                Err(Error::LimitExceeded { .. }) => {
                    self.is_exact = false;
                    *self.skipped.entry("message_over_a_limit_of_the_store".to_owned()).or_default() +=
                        messages.len() as u64;
                    return Ok(before);
                }
                Err(Error::StaleHead { actual, .. })
                    if expected != actual && is_about(store, &walked.name, expected, actual)? =>
                {
                    expected = actual;
                }
                Err(Error::StaleHead { actual, .. })
                    if expected != actual
                        && !has_grown
                        && said(store, &walked.name, before, messages)?.is_none()
                        && grew(store, &walked.name, before, messages)? =>
                {
                    has_grown = true;
                    expected = store.describe(&walked.name)?.last_seq;
                }
                Err(error @ (Error::StaleHead { .. } | Error::KeyReused { .. })) if changes < CHANGES => {
                    self.is_exact = false;
                    // The same text, perhaps with more or fewer details than before: it is not stored twice.
                    if let Some(last) = said(store, &walked.name, before, messages)? {
                        if matches!(error, Error::KeyReused { .. }) {
                            *self.skipped.entry("change_beside_the_words".to_owned()).or_default() += 1;
                        }
                        return Ok(last);
                    }
                    changes += 1;
                    let number = if changes == 1 { String::new() } else { format!("~{changes}") };
                    let child_key = self::key(&own_key, &format!("changed:{id}{number}"));
                    let child = self.name(&child_key);
                    if self.fork(&name, ForkAt { seq: Some(before), time: walked.time }, &child)? {
                        self.notes.push(format!(
                            "{name} differs from the earlier import from {id} on: the new branch is the fork {child_key}"
                        ));
                    }
                    self.forks += usize::from(changes == 1);
                    has_grown = false;
                    walked.beginning = self.beginning(&child)?;
                    (walked.name, walked.key, expected) = (child, child_key, before);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// When the messages of a node were made, as far as that is known.
fn times(node: &Node) -> impl Iterator<Item = Timestamp> {
    let times = node.messages.iter().filter_map(|message| message.metadata.created_at);
    times.filter(|time| time.as_micros() > 0)
}

/// When the first message of a branch was made.
fn first_time(nodes: &[&Node]) -> Option<Timestamp> {
    nodes.iter().copied().flat_map(times).min()
}

/// The last seq of these messages, if they are what follows a seq, whatever their other fields are.
fn said(store: &Store, name: &Name, after: u64, messages: &[Message]) -> Result<Option<u64>> {
    store.sync()?;
    let entries = store.entries(name, after + 1.., usize::try_from(BETWEEN).unwrap_or(usize::MAX))?;
    let Some(first) = entries.iter().find_map(|entry| entry.message_index) else { return Ok(None) };
    let stored = store.messages(name, first, messages.len())?;
    let is_same = |(stored, message): (&StoredMessage, &Message)| {
        let bodies = |message: &Message| message.chunks.iter().map(|chunk| chunk.body.clone()).collect::<Vec<_>>();
        stored.message.role == message.role && bodies(&stored.message) == bodies(message)
    };
    let are_same = stored.len() == messages.len() && stored.iter().zip(messages).all(is_same);
    Ok(stored.last().filter(|_| are_same).map(|last| last.last_seq))
}

/// Hides what was imported of these messages before they were complete, if nothing else follows a seq.
fn grew(store: &Store, name: &Name, after: u64, messages: &[Message]) -> Result<bool> {
    store.sync()?;
    let newest = store.newest_messages(name, messages.len() + 1)?;
    let stored: Vec<_> = newest.into_iter().filter(|stored| stored.first_seq > after).collect();
    let Some(first) = stored.first() else { return Ok(false) };
    let begins = |(stored, whole): (&StoredMessage, &Message)| {
        stored.message.role == whole.role && whole.chunks.starts_with(&stored.message.chunks)
    };
    let is_beginning = stored.len() <= messages.len() && stored.iter().zip(messages).all(begins);
    if is_beginning {
        store.rewind(name, first.index)?;
    }
    Ok(is_beginning)
}

/// Whether the entries after a seq say nothing: they concern the whole conversation, or what was said before.
fn is_about(store: &Store, name: &Name, after: u64, last: u64) -> Result<bool> {
    if last <= after || last - after > BETWEEN {
        return Ok(false);
    }
    store.sync()?;
    let entries = store.entries(name, after + 1..=last, usize::try_from(BETWEEN).unwrap_or(usize::MAX))?;
    let says_nothing = |kind: &EntryKind| {
        matches!(kind, EntryKind::Meta { .. } | EntryKind::Redact | EntryKind::Remove | EntryKind::Summary { .. })
    };
    Ok(entries.len() as u64 == last - after && entries.iter().all(|entry| says_nothing(&entry.kind)))
}

/// A title, or a tag, that the store accepts.
fn cut(text: &str) -> &str {
    text.get(..json::boundary(text, Limits::NAME_BYTES)).unwrap_or_default()
}

fn title(foreign: &Foreign) -> Option<String> {
    foreign.title.as_deref().map(|title| cut(title).to_owned())
}

fn tags(foreign: &Foreign) -> Vec<String> {
    let tags = foreign.tags.iter().map(|tag| cut(tag).to_owned()).filter(|tag| !tag.trim().is_empty());
    tags.take(Limits::TAGS).collect()
}
