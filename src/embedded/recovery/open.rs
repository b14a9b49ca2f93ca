//! Opening: whether this is a store, whether it is the store that was here before, and which opening this is.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use bincode::BorrowDecode;

use super::repair;
use crate::embedded::core::Core;
use crate::embedded::engine::{Batch, Directory, Engine, MARKER, Order, half_restored};
use crate::embedded::state::{Blocked, State};
use crate::embedded::stored::{born, damage_of, has_any};
use crate::error::{Error, Result};
use crate::log::{Clock, Health, Opening};
use crate::model::ConversationId;
use crate::record::{self, Commit, Head, Lost, Record, StoreInfo, key};

/// Commit numbers that are skipped when the last one is unknown: no number is used twice.
const UNKNOWN_COMMITS: u64 = 1 << 32;

/// The problem of a store that has no watermark.
pub(super) const UNMARKED: &str = "its file `watermark` is damaged or missing: nobody can know whether \
                                   acknowledged data was lost; `verify --accept-loss` goes on with what is there";

/// What belongs to the store as a whole. All of it is read before anything is written.
struct Found {
    info: StoreInfo,
    epoch: u64,
    commit: Commit,
    /// The newest commit that is known to have been acknowledged.
    marked: Option<u64>,
    watermark_lost: bool,
    /// Damaged values that can be derived again.
    mended: Vec<String>,
    /// Damage after which nobody can know whether acknowledged data is missing.
    unknown: Vec<String>,
}

pub(crate) fn open(engine: Arc<dyn Engine>, clock: Clock, opening: Opening) -> Result<Core> {
    let found = find(&*engine)?;
    let Found { info, epoch, mut commit, marked, watermark_lost, mended, unknown } = found;
    let went_back = marked.filter(|marked| *marked > commit.number).map(|marked| (commit.number, marked));
    let blocked = if opening.read_only || engine.is_read_only() {
        Some(Blocked::ReadOnly)
    } else if engine.directory().is_some_and(Directory::disk_full) {
        Some(Blocked::DiskFull)
    } else if opening.accept_loss {
        None
    } else if let Some(detail) = unknown.first() {
        Some(Blocked::Damaged(detail.clone()))
    } else if let Some((from, to)) = went_back {
        Some(Blocked::WentBack { from, to })
    } else {
        None
    };
    let mut health = health_of(&*engine);
    let is_writable = blocked.is_none();
    health.damage = mended;
    if !is_writable {
        (health.went_back, health.watermark_lost) = (went_back, watermark_lost);
        health.damage.extend(unknown.iter().filter(|detail| *detail != UNMARKED).cloned());
    }
    let acknowledged = commit.number.max(marked.unwrap_or(0));
    if is_writable && opening.accept_loss {
        commit.number = next_number(&*engine, acknowledged, !unknown.is_empty())?;
    }
    let core = Core::new(engine, clock, epoch, health, State::after(commit, blocked));
    if is_writable {
        if !unknown.is_empty() {
            // The first write may take away what states the damage. If this opening is cut off, the next one finds no number.
            if let Some(directory) = core.engine.directory() {
                directory.watermark().clear()?;
            }
        }
        note_opening(&*core.engine, &info, epoch, acknowledged)?;
        core.families.finish_deletions(&mut |batch| repair::write_now(&*core.engine, batch))?;
        repair::repair(&core, opening.accept_loss)?;
        if marked != Some(commit.number) || !unknown.is_empty() {
            note_only(&*core.engine, commit.number)?;
        }
        if opening.accept_loss {
            forget_loss(&*core.engine, &info)?;
        }
        repair::interrupt_left_open(&core)?;
        repair::end_lags(&core)?;
    } else {
        repair::find_lagging(&core)?;
    }
    Ok(core)
}

/// Reads what belongs to the store as a whole.
fn find(engine: &dyn Engine) -> Result<Found> {
    let mut mended = Vec::new();
    let mut unknown: Vec<String> = engine.damage().map(str::to_owned).into_iter().collect();
    let named = named(engine);
    let (info, is_new) = match damage_of(meta::<StoreInfo>(engine, key::STORE))? {
        Ok(Some(info)) => (check_version(info)?, false),
        Ok(None) if named.is_none() || is_empty(engine)? => (new_store(engine)?, true),
        found => {
            // The file in the directory names the store too.
            let Some(id) = named else { return Err(unnamed(found.err())) };
            mended.push("the store's marker among its data is damaged or missing".to_owned());
            (StoreInfo { store_id: *id.as_bytes(), format_version: record::VERSION.into() }, false)
        }
    };
    if let Some(named) = named.filter(|named| *named.as_bytes() != info.store_id) {
        let id = ConversationId::from_bytes(info.store_id);
        unknown.push(format!("its files are those of the store {id}, its file {MARKER} names the store {named}"));
    }
    let epoch = damage_of(meta::<u64>(engine, key::EPOCH))?;
    if !is_new && !matches!(epoch, Ok(Some(_))) {
        mended.push("the count of its openings is damaged or missing".to_owned());
    }
    let epoch = epoch.ok().flatten().unwrap_or(0).saturating_add(1);
    record::check_number(key::EPOCH, epoch)?;
    let commit = damage_of(meta::<Commit>(engine, key::COMMIT))?;
    let is_lost = match &commit {
        Ok(Some(commit)) => record::check_number(key::COMMIT, commit.number).is_err(),
        Ok(None) => has_any(engine, &[key::HEAD])? || has_any(engine, &[key::RECORD])?,
        Err(_) => true,
    };
    if is_lost {
        unknown.push("the number of its last commit is damaged or missing".to_owned());
    }
    let commit = commit.ok().flatten().filter(|_| !is_lost).unwrap_or_default();
    let lost = damage_of(meta::<Lost>(engine, key::LOST))?;
    if lost.is_err() {
        unknown.push("what it had lost when it was backed up cannot be read".to_owned());
    }
    let lost = lost.ok().flatten().unwrap_or_default();
    unknown.extend(lost.unknown);
    let watermark = engine.directory().map(Directory::watermark);
    let noted = watermark.and_then(|watermark| watermark.of(&info.store_id));
    // A store that exists has one: it was durable before the store was marked as existing.
    let watermark_lost = noted.is_none()
        && (is_established(engine) || watermark.is_some_and(|watermark| watermark.is_of_another(&info.store_id)));
    if watermark_lost {
        unknown.push(UNMARKED.to_owned());
    }
    let marked = noted.max(Some(lost.acknowledged).filter(|number| *number > 0));
    Ok(Found { info, epoch, commit, marked, watermark_lost, mended, unknown })
}

/// The number from which commits continue after a loss: no record has a higher one, lost records included.
fn next_number(engine: &dyn Engine, known: u64, is_unknown: bool) -> Result<u64> {
    let mut number = known;
    engine.scan(&[key::RECORD]..&key::after(&[key::RECORD]), Order::Ascending, &mut |key, value| {
        let Some((id, first_seq)) = key::parse_record(key) else { return ControlFlow::Continue(()) };
        if let Ok(record) = Record::open(id, first_seq, value) {
            number = number.max(record.header.commit);
        }
        ControlFlow::Continue(())
    })?;
    engine.scan(&[key::HEAD]..&key::after(&[key::HEAD]), Order::Ascending, &mut |key, value| {
        number = number.max(Head::open(key, value).map_or(0, |head| born(head.incarnation)));
        ControlFlow::Continue(())
    })?;
    let number = if is_unknown { number.saturating_add(UNKNOWN_COMMITS) } else { number };
    record::check_number(key::COMMIT, number).map(|()| number)
}

/// Writes that the store exists, and that it was opened once more. `acknowledged`: its last commit.
fn note_opening(engine: &dyn Engine, info: &StoreInfo, epoch: u64, acknowledged: u64) -> Result<()> {
    let mut batch = Batch::default();
    let (store_key, epoch_key) = (key::meta(key::STORE), key::meta(key::EPOCH));
    let (store, epoch) = (record::seal(&store_key, info)?, record::seal(&epoch_key, &epoch)?);
    batch.put(store_key, store);
    batch.put(epoch_key, epoch);
    engine.write(batch)?;
    engine.sync()?;
    if let Some(directory) = engine.directory() {
        directory.keep_ballast();
    }
    if is_established(engine) {
        return Ok(());
    }
    note_only(engine, acknowledged)?;
    mark(engine, info)
}

/// Removes what states that something was lost: that is accepted, and what is left is repaired. An opening that is cut
/// off before that has accepted nothing.
fn forget_loss(engine: &dyn Engine, info: &StoreInfo) -> Result<()> {
    let mut batch = Batch::default();
    batch.remove(key::meta(key::LOST));
    engine.write(batch)?;
    engine.sync()?;
    mark(engine, info)
}

/// Whether a store existed in the engine's directory before this opening.
pub(super) fn is_established(engine: &dyn Engine) -> bool {
    engine.directory().is_some_and(Directory::established)
}

/// The store that the marker in the engine's directory names.
fn named(engine: &dyn Engine) -> Option<ConversationId> {
    engine.directory().and_then(Directory::store).and_then(|id| id.parse().ok())
}

/// Writes the marker of a store, unless it names that store already: from now on, an empty store here is a damaged one.
fn mark(engine: &dyn Engine, store: &StoreInfo) -> Result<()> {
    let id = ConversationId::from_bytes(store.store_id);
    match engine.directory().filter(|_| named(engine) != Some(id)) {
        Some(directory) => directory.establish(store.format_version, &id.to_string()),
        None => Ok(()),
    }
}

/// Notes a commit in place of all others. The note survives a power cut.
fn note_only(engine: &dyn Engine, commit: u64) -> Result<()> {
    engine.directory().map_or(Ok(()), |directory| directory.watermark().reset(commit))
}

/// A value of the store as a whole, if it exists.
fn meta<T: for<'a> BorrowDecode<'a, ()>>(engine: &dyn Engine, name: &str) -> Result<Option<T>> {
    let key = key::meta(name);
    engine.get(&key)?.map(|bytes| record::open(name, &key, &bytes)).transpose()
}

fn is_empty(engine: &dyn Engine) -> Result<bool> {
    let mut is_empty = true;
    let visit = &mut |_: &[u8], _: &[u8]| {
        is_empty = false;
        ControlFlow::Break(())
    };
    engine.scan(&[]..&[u8::MAX; 32], Order::Ascending, visit)?;
    Ok(is_empty)
}

/// A store whose id nothing states.
fn unnamed(error: Option<Error>) -> Error {
    error.unwrap_or_else(|| Error::Corrupt {
        conversation: None,
        seq: None,
        detail: "its marker is missing: nothing states which store this is".to_owned(),
    })
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
    if is_established(engine) {
        return Err(Error::Corrupt {
            conversation: None,
            seq: None,
            detail: format!(
                "{place} holds the file {MARKER}, but the store in it is empty: its data was lost or damaged"
            ),
        });
    }
    let is_empty = is_empty(engine)?;
    if engine.get(&key::meta(key::RESTORING))?.is_some() {
        return Err(half_restored(&place));
    }
    if !is_empty {
        return Err(Error::InvalidInput(format!(
            "{place} is not a conversation store: it holds another program's data"
        )));
    }
    let format_version = record::VERSION.into();
    Ok(StoreInfo { store_id: *ConversationId::new().as_bytes(), format_version })
}

/// What the engine reports about itself.
fn health_of(engine: &dyn Engine) -> Health {
    let Some(directory) = engine.directory() else { return Health::default() };
    let set_aside = directory.set_aside().map(Path::to_owned);
    Health { disk_full: directory.disk_full(), set_aside, ..Health::default() }
}
