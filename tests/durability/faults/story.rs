//! A store with a past: forks of forks, deletions, names used anew, redactions, keys, item ids; and what was said where.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use conversation_store::model::{Chunk, ConversationId, Message, Metadata, Role};
use conversation_store::{AppendOptions, ListItem, Store};

use crate::common::program::Dice;
use crate::faults::damage::{Pair, Raw};
use crate::faults::{id, text_of, url};

const REDACTED: &str = "[redacted]";
const NAMES: u64 = 14;
const STEPS: u64 = 90;
/// How often a text is made longer that does not fit into one value.
const LARGE: usize = 5000;

/// What a conversation shows: index, text, state of each message.
pub(crate) type Shown = Vec<(u64, String, String)>;

/// A closed store, and what is known of it.
#[derive(Clone)]
pub(crate) struct Story {
    /// Each conversation that is there, as it loads.
    pub(crate) shown: BTreeMap<String, Shown>,
    /// What is said of each of them.
    pub(crate) described: BTreeMap<String, ListItem>,
    /// All texts that may ever be read in a conversation, by message: its own, and those that it shares.
    pub(crate) ever: BTreeMap<String, BTreeMap<u64, BTreeSet<String>>>,
    /// Names of conversations that were deleted and not made again.
    pub(crate) dead: BTreeSet<String>,
    /// The conversation that a fork was made from, also where that was deleted since.
    pub(crate) parents: BTreeMap<String, String>,
    /// Appends with an idempotency key: the conversation, the key, what was appended.
    pub(crate) keyed: Vec<(String, String, Vec<Message>)>,
    /// The pairs of the engine half way.
    pub(crate) earlier: Vec<Pair>,
    /// How often a name was used.
    incarnations: BTreeMap<String, u64>,
    said: u64,
}

pub(crate) fn name(at: u64) -> String {
    format!("c{at}")
}

pub(crate) fn names() -> Vec<String> {
    (0..NAMES).map(name).collect()
}

pub(crate) fn name_of(wanted: ConversationId) -> Option<String> {
    names().into_iter().find(|name| id(name) == wanted)
}

/// What a conversation shows now.
pub(crate) fn shown(store: &Store, name: &str) -> conversation_store::Result<(Shown, bool)> {
    let loaded = store.load(name)?;
    let is_reported = crate::faults::is_reported(&loaded);
    let messages = loaded.messages().iter();
    let shown = messages.map(|stored| (stored.index, text_of(&stored.message), format!("{:?}", stored.state)));
    Ok((shown.collect(), is_reported))
}

impl Story {
    /// Makes a store.
    pub(crate) fn tell(path: &Path, dice: &mut Dice) -> Self {
        let mut story = Self {
            shown: BTreeMap::new(),
            described: BTreeMap::new(),
            ever: BTreeMap::new(),
            dead: BTreeSet::new(),
            parents: BTreeMap::new(),
            keyed: Vec::new(),
            earlier: Vec::new(),
            incarnations: BTreeMap::new(),
            said: 0,
        };
        for half in 0..2 {
            let store = Store::open(&url(path)).unwrap();
            for _ in 0..STEPS / 2 {
                story.step(&store, dice);
            }
            store.close().unwrap();
            drop(store);
            if half == 0 {
                let raw = Raw::open(path);
                story.earlier = raw.pairs();
                raw.close();
            }
        }
        let store = Store::open(&url(path)).unwrap();
        for name in story.ever.keys() {
            story.shown.insert(name.clone(), shown(&store, name).unwrap().0);
            story.described.insert(name.clone(), store.describe(name).unwrap());
        }
        assert_eq!(crate::faults::problems(&store), Vec::<String>::new());
        store.close().unwrap();
        story
    }

    /// A text that nobody else says.
    pub(crate) fn text(&mut self, name: &str) -> String {
        self.said += 1;
        let incarnation = self.incarnations.get(name).copied().unwrap_or_default();
        format!("{name} {incarnation} {}", self.said)
    }

    /// A message was acknowledged, which may be read as any of these.
    pub(crate) fn hear(&mut self, name: &str, index: u64, texts: impl IntoIterator<Item = String>) {
        self.dead.remove(name);
        self.ever.entry(name.to_owned()).or_default().entry(index).or_default().extend(texts);
    }

    /// The conversation that a fork reads through.
    pub(crate) fn reads_through(&self, name: &str) -> Option<String> {
        self.described.get(name)?.parent.and_then(|parent| name_of(parent.conversation))
    }

    /// Whether a text may be read in a conversation, as the message of this index.
    pub(crate) fn is_known(&self, name: &str, index: u64, text: &str) -> bool {
        let texts = self.ever.get(name).and_then(|messages| messages.get(&index));
        texts.is_some_and(|texts| text == REDACTED || texts.contains(text))
    }

    /// A conversation of this name is gone: what comes next is another one.
    pub(crate) fn forget(&mut self, name: &str) {
        *self.incarnations.entry(name.to_owned()).or_default() += 1;
        self.ever.remove(name);
        self.keyed.retain(|(of, ..)| of != name);
        self.dead.insert(name.to_owned());
    }

    fn step(&mut self, store: &Store, dice: &mut Dice) {
        let name = name(dice.below(NAMES));
        let is_there = self.ever.contains_key(&name);
        match dice.below(12) {
            0 | 1 if !is_there && !self.ever.is_empty() => self.fork(store, &name, dice),
            2 if is_there => {
                store.delete(&name).unwrap();
                self.forget(&name);
            }
            3 if is_there => {
                let messages = store.load(&name).unwrap().into_messages();
                if let Some(stored) = messages.get(dice.below(messages.len().max(1) as u64) as usize) {
                    // Two forks may share what is redacted already.
                    let _ = store.redact(&name, stored.index, None);
                }
            }
            4 if is_there => drop(store.set_title(&name, Some(&format!("title of {name}"))).unwrap()),
            5 if is_there => drop(store.tag(&name, &["tag"]).unwrap()),
            6 if is_there => {
                let messages = store.load(&name).unwrap().into_messages();
                if messages.len() > 3 {
                    store.rewind(&name, messages[messages.len() - 1].index).unwrap();
                }
            }
            7 => self.stream(store, &name, dice),
            _ => self.append(store, &name, dice),
        }
    }

    fn append(&mut self, store: &Store, name: &str, dice: &mut Dice) {
        let mut texts: Vec<String> = (0..=dice.below(3)).map(|_| self.text(name)).collect();
        if dice.below(12) == 0 {
            texts[0].push_str(&" and more".repeat(LARGE));
        }
        let messages: Vec<Message> = texts.iter().map(|text| message(text, dice)).collect();
        let key = (dice.below(3) == 0).then(|| format!("key {}", self.said));
        let mut options = AppendOptions::new();
        options.idempotency_key.clone_from(&key);
        // It may have been deleted while forks still read it.
        let Ok(receipt) = store.append_with(name, &messages, &options) else { return };
        self.keyed.extend(key.map(|key| (name.to_owned(), key, messages)));
        for (index, text) in receipt.message_indexes.into_iter().zip(texts) {
            self.hear(name, index, [text]);
        }
    }

    fn stream(&mut self, store: &Store, name: &str, dice: &mut Dice) {
        let Ok(mut writer) = store.begin(name, Role::Assistant, Metadata::default()) else { return };
        let text = self.text(name);
        let (start, end) = text.split_at(text.len() / 2);
        // What damage leaves of it is a part of it.
        let parts = [&text, start, end, ""].map(str::to_owned);
        self.hear(name, writer.message_index(), parts);
        writer.push(0, Chunk::text(start)).unwrap();
        store.sync().unwrap();
        writer.push(0, Chunk::text(end)).unwrap();
        store.sync().unwrap();
        if dice.below(2) == 0 {
            writer.finish(None, None).unwrap();
        }
    }

    fn fork(&mut self, store: &Store, child: &str, dice: &mut Dice) {
        let alive: Vec<String> = self.ever.keys().cloned().collect();
        let parent = &alive[dice.below(alive.len() as u64) as usize];
        let last = store.describe(parent).unwrap().last_seq;
        let at = 1 + dice.below(last);
        if store.fork_to(parent, Some(at), child).is_err() {
            return;
        }
        let described = store.describe(child).unwrap();
        let next = described.messages + described.hidden;
        let shared = self.ever[parent].range(..next).map(|(index, texts)| (*index, texts.clone())).collect();
        self.ever.insert(child.to_owned(), shared);
        self.dead.remove(child);
        self.parents.insert(child.to_owned(), parent.clone());
    }
}

fn message(text: &str, dice: &mut Dice) -> Message {
    match dice.below(3) {
        0 => Message::assistant([Chunk { id: Some(format!("item of {text}")), ..Chunk::text(text) }]),
        _ => Message::user(text),
    }
}
