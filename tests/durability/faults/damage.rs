//! The pairs of a closed store, for damaging them. Only this file knows how keys look (`src/docs/format.md`).

use std::path::Path;
use std::thread;
use std::time::Duration;

use conversation_store::model::ConversationId;

use crate::common::program::Dice;

/// What a key holds, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Record,
    /// A piece of a large value, as sled's engine stores it.
    Part,
    Head,
    Index,
    Receipt,
    Fork,
    Tombstone,
    Item,
    Tag,
    Unfinished,
    Store,
}

impl Kind {
    pub(crate) const ALL: [Self; 11] = [
        Self::Record,
        Self::Part,
        Self::Head,
        Self::Index,
        Self::Receipt,
        Self::Fork,
        Self::Tombstone,
        Self::Item,
        Self::Tag,
        Self::Unfinished,
        Self::Store,
    ];

    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Record => b'c',
            Self::Part => 0xff,
            Self::Head => b'h',
            Self::Index => b'i',
            Self::Receipt => b'k',
            Self::Fork => b'f',
            Self::Tombstone => b'd',
            Self::Item => b'x',
            Self::Tag => b't',
            Self::Unfinished => b'u',
            Self::Store => b'm',
        }
    }

    /// What a key holds.
    pub(crate) fn of(key: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| key.first() == Some(&kind.byte()))
    }
}

/// The conversation of a key that belongs to one.
fn conversation_of(key: &[u8]) -> Option<ConversationId> {
    let id: [u8; 16] = match Kind::of(key)? {
        Kind::Store => return None,
        Kind::Index | Kind::Tag => key.last_chunk().copied()?,
        // A piece of a large value of another key.
        Kind::Part => return conversation_of(key.get(1..key.len().checked_sub(4)?)?),
        _ => key.get(1..)?.first_chunk().copied()?,
    };
    Some(ConversationId::from_bytes(if Kind::of(key) == Some(Kind::Index) { id.map(|byte| !byte) } else { id }))
}

/// All conversations that a key names: a fork point names two.
pub(crate) fn conversations_of(key: &[u8]) -> Vec<ConversationId> {
    let child = match Kind::of(key) {
        Some(Kind::Fork) => key.last_chunk().copied().map(ConversationId::from_bytes),
        _ => None,
    };
    conversation_of(key).into_iter().chain(child).collect()
}

/// The first seq of a record's key.
pub(crate) fn seq_of(key: &[u8]) -> u64 {
    let seq = key[17..].first_chunk().copied();
    seq.map_or(0, u64::from_be_bytes)
}

/// Where sled has what it notes of the journal before it.
const JOURNAL: &[u8] = &[0xff, 0xff];

/// A pair of the engine.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// A closed store, as its engine has it.
pub(crate) struct Raw(sled::Db);

impl Raw {
    pub(crate) fn open(dir: &Path) -> Self {
        let config = sled::Config::new().path(dir).segment_size(8 * 1024 * 1024).flush_every_ms(None);
        // sled's own threads may hold the files for a moment after its last handle is gone.
        let mut tries = (0..100).map(|_| config.open().inspect_err(|_| thread::sleep(Duration::from_millis(20))));
        Self(tries.find_map(Result::ok).unwrap())
    }

    /// All pairs of the log: what counts the records of the journal is not the log's.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        let pairs = self.0.iter().map(|pair| pair.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec()));
        pairs.filter(|(key, _)| key != JOURNAL).collect()
    }

    /// All keys of a kind, in order.
    pub(crate) fn keys(&self, kind: Kind) -> Vec<Vec<u8>> {
        let keys = self.0.scan_prefix([kind.byte()]).keys().map(|key| key.unwrap().to_vec());
        keys.filter(|key| key != JOURNAL).collect()
    }

    /// A conversation's keys of a kind, in order.
    pub(crate) fn keys_of(&self, kind: Kind, id: ConversationId) -> Vec<Vec<u8>> {
        let mut keys = self.keys(kind);
        keys.retain(|key| conversation_of(key) == Some(id));
        keys
    }

    /// The only key of a kind that a conversation has.
    pub(crate) fn key_of(&self, kind: Kind, id: ConversationId) -> Vec<u8> {
        let mut keys = self.keys_of(kind, id);
        assert_eq!(keys.len(), 1, "{kind:?} of {id}");
        keys.remove(0)
    }

    /// The key of the record that begins with a seq.
    pub(crate) fn record(&self, id: ConversationId, first_seq: u64) -> Vec<u8> {
        let keys = self.keys_of(Kind::Record, id);
        keys.into_iter().find(|key| seq_of(key) == first_seq).unwrap_or_else(|| panic!("no record {first_seq} of {id}"))
    }

    /// A key that belongs to the store as a whole.
    pub(crate) fn of_store(&self, name: &str) -> Vec<u8> {
        let key = [&[Kind::Store.byte()], name.as_bytes()].concat();
        assert!(self.0.contains_key(&key).unwrap(), "{name}");
        key
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.get(key).unwrap().map(|value| value.to_vec())
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8]) {
        self.0.insert(key, value).unwrap();
    }

    pub(crate) fn remove(&self, key: &[u8]) {
        self.0.remove(key).unwrap();
    }

    /// Changes one bit of a value, in the last byte; a value without bytes gets one.
    pub(crate) fn flip(&self, key: &[u8]) {
        let mut value = self.get(key).unwrap();
        match value.last_mut() {
            Some(last) => *last ^= 1,
            None => value.push(1),
        }
        self.put(key, &value);
    }

    /// Changes one bit of a value, anywhere.
    pub(crate) fn flip_anywhere(&self, key: &[u8], dice: &mut Dice) {
        let mut value = self.get(key).unwrap();
        match value.len() as u64 {
            0 => value.push(1),
            bytes => value[dice.below(bytes) as usize] ^= 1 << dice.below(8),
        }
        self.put(key, &value);
    }

    /// Whether a text stands in any value.
    pub(crate) fn holds(&self, text: &str) -> bool {
        self.pairs().iter().any(|(_, value)| value.windows(text.len()).any(|window| window == text.as_bytes()))
    }

    pub(crate) fn close(self) {
        self.0.flush().unwrap();
    }
}

/// The number of commits that a closed store has acknowledged.
pub(crate) fn commits(dir: &Path) -> u64 {
    let file = std::fs::read(dir.join("watermark")).unwrap();
    [0, 4096]
        .map(|at| file.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u64::from_be_bytes))
        .into_iter()
        .max()
        .unwrap()
}
