//! What is read of a conversation, once or as it comes.

use std::time::{Duration, SystemTime};

use conversation_store::model::Name;
use conversation_store::{ListItem, ReportLine, Store, StoredMessage, Summary, Tail};

use super::super::failure::Failure;
use super::super::location::Location;

/// How long a store that others write to is asked for news at a time.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is stored of a conversation at one moment.
pub(super) struct Shown {
    pub(super) item: ListItem,
    pub(super) messages: Vec<StoredMessage>,
    pub(super) report: Vec<ReportLine>,
    pub(super) summary: Option<Summary>,
}

/// Reads a conversation. `raw`: as it was appended, with nothing repaired.
pub(super) fn load(store: &Store, name: &Name, raw: bool) -> Result<Shown, Failure> {
    let item = store.describe(name)?;
    if raw {
        return Ok(Shown { item, messages: store.load_raw(name)?, report: Vec::new(), summary: None });
    }
    let conversation = store.load(name)?;
    let (report, summary) = (conversation.report().to_vec(), conversation.summary().cloned());
    Ok(Shown { item, messages: conversation.into_messages(), report, summary })
}

/// A store that is followed.
pub(super) enum Followed<'a> {
    /// It stays open, and is asked for news.
    Shared(Store, Tail),
    /// It is opened where its files have changed since this time: a process that has it open keeps all others out.
    Directory(&'a Location, Option<SystemTime>),
}

impl<'a> Followed<'a> {
    /// Of a store that was read, after this seq at the earliest.
    pub(super) fn new(location: &'a Location, store: Store, name: &Name, last_seq: u64) -> Result<Self, Failure> {
        if !location.is_shared() {
            return Ok(Self::Directory(location, None));
        }
        let tail = store.tail(name, last_seq)?;
        Ok(Self::Shared(store, tail))
    }

    /// What is stored now, if there may be something new.
    pub(super) fn look(&mut self, name: &Name, raw: bool) -> Result<Option<Shown>, Failure> {
        match self {
            Self::Shared(store, tail) => {
                let is_new = !tail.next(PATIENCE)?.is_empty();
                is_new.then(|| load(store, name, raw)).transpose()
            }
            Self::Directory(location, seen) => {
                let changed = location.changed();
                if changed.is_some() && changed == *seen {
                    return Ok(None);
                }
                let loaded = location.read().and_then(|store| load(&store, name, raw));
                // From before the store was read: what is written during the read is printed next time.
                if loaded.is_ok() {
                    *seen = changed;
                }
                loaded.map(Some)
            }
        }
    }
}
