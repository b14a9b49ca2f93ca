//! Opening: is this a store, is it the store that was here before, which opening is this.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use bincode::BorrowDecode;

use super::core::{COMMIT, Clock, Core, EPOCH, RESTORING, STORE};
use super::state::{Blocked, State};
use crate::embedded::engine::{Batch, Directory, Engine, MARKER, Order};
use crate::error::{Error, Result};
use crate::log::Health;
use crate::model::ConversationId;
use crate::record::{self, Commit, StoreInfo, key};

/// How a log is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Nothing is written, not even that the store was opened.
    pub(crate) read_only: bool,
    /// A store that went back is written on from where it is.
    pub(crate) accept_loss: bool,
}

pub(super) fn open(engine: Arc<dyn Engine>, clock: Clock, opening: Opening) -> Result<Core> {
    let store_key = key::meta(STORE);
    let info: Option<StoreInfo> = match engine.get(&store_key)? {
        Some(bytes) => Some(record::open("the store's marker", &store_key, &bytes)?),
        None => None,
    };
    let info = match info {
        Some(info) => check_version(info)?,
        None => new_store(&*engine)?,
    };
    let epoch = meta::<u64>(&*engine, EPOCH)?.saturating_add(1);
    record::check_number(EPOCH, epoch)?;
    let commit = match meta::<Commit>(&*engine, COMMIT) {
        Err(Error::Corrupt { .. }) if opening.accept_loss => Commit::default(),
        commit => commit?,
    };
    record::check_number(COMMIT, commit.number)?;
    let marked = engine.directory().and_then(|directory| directory.watermark().found());
    let went_back = marked.filter(|marked| *marked > commit.number).map(|marked| (commit.number, marked));
    // A store that exists has one: it was durable before the store was marked as such.
    let is_unmarked = marked.is_none() && engine.directory().is_some_and(Directory::established);
    let blocked = if opening.read_only || engine.is_read_only() {
        Some(Blocked::ReadOnly)
    } else if engine.directory().is_some_and(Directory::disk_full) {
        Some(Blocked::DiskFull)
    } else if opening.accept_loss {
        None
    } else if let Some((from, to)) = went_back {
        Some(Blocked::WentBack { from, to })
    } else if is_unmarked {
        Some(Blocked::Unmarked)
    } else {
        None
    };
    let mut health = health_of(&*engine);
    let is_writable = blocked.is_none();
    if is_writable {
        note_opening(&*engine, &info, epoch)?;
    } else {
        (health.went_back, health.watermark_lost) = (went_back, is_unmarked);
    }
    let core = Core::new(engine, clock, epoch, health, State { commit, blocked, ..State::default() });
    if is_writable {
        core.finish_deletions()?;
        core.repair(opening.accept_loss)?;
        if let Some(directory) = core.engine.directory().filter(|_| marked != Some(commit.number)) {
            directory.watermark().reset(commit.number)?;
        }
        core.interrupt_left_open()?;
    }
    Ok(core)
}

/// Writes that the store exists, and that it was opened once more.
fn note_opening(engine: &dyn Engine, info: &StoreInfo, epoch: u64) -> Result<()> {
    let mut batch = Batch::default();
    let (store_key, epoch_key) = (key::meta(STORE), key::meta(EPOCH));
    let (store, epoch) = (record::seal(&store_key, info)?, record::seal(&epoch_key, &epoch)?);
    batch.put(store_key, store);
    batch.put(epoch_key, epoch);
    engine.write(batch)?;
    engine.sync()?;
    let Some(directory) = engine.directory() else { return Ok(()) };
    directory.keep_ballast();
    if !directory.established() {
        let commit: Commit = meta(engine, COMMIT)?;
        directory.watermark().reset(commit.number)?;
        directory.establish(info.format_version, &ConversationId::from_bytes(info.store_id).to_string())?;
    }
    Ok(())
}

/// A value of the store as a whole.
fn meta<T: Default + for<'a> BorrowDecode<'a, ()>>(engine: &dyn Engine, name: &str) -> Result<T> {
    let key = key::meta(name);
    match engine.get(&key)? {
        Some(bytes) => record::open(name, &key, &bytes),
        None => Ok(T::default()),
    }
}

fn check_version(info: StoreInfo) -> Result<StoreInfo> {
    let supported = u32::from(record::VERSION);
    if info.format_version > supported {
        let found = info.format_version;
        return Err(Error::UnsupportedVersion { what: "the store".to_owned(), found, supported });
    }
    Ok(info)
}

/// The marker of a new store, if the engine is empty and always was.
fn new_store(engine: &dyn Engine) -> Result<StoreInfo> {
    let place = engine.directory().map(|directory| directory.path().display().to_string()).unwrap_or_default();
    if engine.directory().is_some_and(Directory::established) {
        return Err(Error::Corrupt {
            conversation: None,
            seq: None,
            detail: format!(
                "{place} holds the file {MARKER}, but the store in it is empty: its data was lost or damaged"
            ),
        });
    }
    let mut is_empty = true;
    let visit = &mut |_: &[u8], _: &[u8]| {
        is_empty = false;
        ControlFlow::Break(())
    };
    engine.scan(&[]..&[u8::MAX; 32], Order::Ascending, visit)?;
    if engine.get(&key::meta(RESTORING))?.is_some() {
        return Err(Error::InvalidInput(format!(
            "{place}: a restore into it was cut off: remove it, then restore again"
        )));
    }
    if !is_empty {
        return Err(Error::InvalidInput(format!(
            "{place} is not a conversation store: it holds another program's data"
        )));
    }
    let format_version = record::VERSION.into();
    Ok(StoreInfo { store_id: *ConversationId::new().as_bytes(), format_version })
}

/// What the engine says of itself.
fn health_of(engine: &dyn Engine) -> Health {
    Health {
        disk_full: engine.directory().is_some_and(Directory::disk_full),
        set_aside: engine.directory().and_then(Directory::set_aside).map(Path::to_owned),
        ..Health::default()
    }
}
