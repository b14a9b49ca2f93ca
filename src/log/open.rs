//! Opening: is this a store, is it the store that was here before, which opening is this.

use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex};

use super::backup::RESTORING;
use super::health;
use super::state::{Blocked, State};
use super::ticker::Ticker;
use super::{COMMIT_NUMBER, Clock, Core, EPOCH, STORE};
use crate::engine::{Batch, Directory, Engine, MARKER, Order};
use crate::error::{Error, Result};
use crate::model::ConversationId;
use crate::record::{self, StoreInfo, key};

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
    let epoch = number(&*engine, EPOCH)? + 1;
    let commit_number = number(&*engine, COMMIT_NUMBER)?;
    let acknowledged = engine.directory().and_then(|directory| directory.watermark().found()).unwrap_or(0);
    let went_back = acknowledged > commit_number;
    let blocked = if opening.read_only || engine.is_read_only() {
        Some(Blocked::ReadOnly)
    } else if engine.directory().is_some_and(Directory::disk_full) {
        Some(Blocked::DiskFull)
    } else if went_back && !opening.accept_loss {
        Some(Blocked::WentBack { from: commit_number, to: acknowledged })
    } else {
        None
    };
    let mut health = health::of(&*engine);
    if went_back && blocked.is_some() {
        health.went_back = Some((commit_number, acknowledged));
    }
    if blocked.is_none() {
        note_opening(&*engine, &info, epoch)?;
        if let Some(directory) = engine.directory().filter(|_| acknowledged != commit_number) {
            directory.watermark().set(commit_number)?;
            directory.watermark().sync()?;
        }
    }
    let core = Core {
        engine,
        clock,
        epoch,
        health,
        state: Mutex::new(State { commit_number, blocked, ..State::default() }),
        buffering: Mutex::default(),
        ticker: Ticker::default(),
        gathered: Condvar::new(),
        room: Condvar::new(),
        published: Condvar::new(),
        structure: Mutex::new(()),
    };
    if core.lock().blocked.is_none() {
        core.finish_deletions()?;
        let damaged = core.engine.directory().filter(|directory| directory.set_aside().is_some());
        if damaged.is_some() || went_back {
            core.rebuild_all()?;
        }
        damaged.map_or(Ok(()), Directory::repaired)?;
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
        directory.establish(info.format_version, &ConversationId::from_bytes(info.store_id).to_string())?;
    }
    Ok(())
}

fn number(engine: &dyn Engine, name: &str) -> Result<u64> {
    let key = key::meta(name);
    match engine.get(&key)? {
        Some(bytes) => record::open(name, &key, &bytes),
        None => Ok(0),
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
