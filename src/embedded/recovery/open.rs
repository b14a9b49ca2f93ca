//! Opening: whether this is a store, whether it is the store that was here before, and which opening this is. It
//! repairs and finishes what a crash or damage left: nobody else writes meanwhile.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use bincode::BorrowDecode;

use crate::embedded::core::Core;
use crate::embedded::engine::{Batch, Directory, Engine, MARKER, Order, half_restored};
use crate::embedded::state::{Blocked, State};
use crate::embedded::stored::{self, Standing, born, damage_of, has_any};
use crate::error::{Error, Result};
use crate::log::segments::Segmented;
use crate::log::{Clock, Durability, Health, Opening, fork};
use crate::model::ConversationId;
use crate::record::{self, Commit, Head, InterruptCause, Lost, Record, StoreInfo, index_keys, key};

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
        core.families.finish_deletions(&mut |batch| write_now(&*core.engine, batch))?;
        repair(&core, opening.accept_loss)?;
        if marked != Some(commit.number) || !unknown.is_empty() {
            note_only(&*core.engine, commit.number)?;
        }
        if opening.accept_loss {
            forget_loss(&*core.engine, &info)?;
        }
        interrupt_left_open(&core)?;
        end_lags(&core)?;
    } else {
        find_lagging(&core)?;
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

/// Conversations that are rebuilt in one batch.
const REBUILD_BATCH: usize = 256;

/// Makes the content of a damaged store consistent, if this store was damaged, or if its loss is accepted. For
/// opening only: nobody else writes.
pub(super) fn repair(core: &Core, accept_loss: bool) -> Result<()> {
    let set_aside = core.engine.directory().filter(|directory| directory.set_aside().is_some());
    if set_aside.is_some() || accept_loss {
        rebuild_all(&*core.engine, accept_loss)?;
    }
    // What is missing stays a problem until the loss is accepted.
    if accept_loss {
        recount(core)?;
    }
    set_aside.map_or(Ok(()), Directory::repaired)
}

/// Accepts what is there as everything that was.
fn recount(core: &Core) -> Result<()> {
    let mut commit = Commit { number: core.commit.lock().last_commit().number, ..Commit::default() };
    for id in stored::conversations_with(&*core.engine, key::HEAD)? {
        if let Ok(Standing::Alive(head)) = damage_of(stored::standing(&*core.engine, id))? {
            commit.count(None, Some(&head));
        }
    }
    let key = key::meta(key::COMMIT);
    let mut batch = Batch::default();
    let value = record::seal(&key, &commit)?;
    batch.put(key, value);
    write_now(&*core.engine, batch)?;
    core.commit.lock().set_last_commit(commit);
    Ok(())
}

/// Writes the heads and index entries that differ from what the records give. A head that promises more than the
/// records hold stays, unless the loss is accepted: reading reports what is missing. Data that identifies no
/// conversation stays as it is.
pub(crate) fn rebuild_all(engine: &dyn Engine, accept_loss: bool) -> Result<()> {
    let mut ids: BTreeSet<ConversationId> = stored::conversations_with(engine, key::RECORD)?;
    ids.extend(stored::conversations_with(engine, key::HEAD)?);
    let mut batch = Batch::default();
    for id in ids {
        if let Ok(Standing::Alive(head)) = damage_of(stored::standing(engine, id))? {
            rebuild(engine, id, *head, accept_loss, &mut batch)?;
        }
        if batch.ops.len() >= REBUILD_BATCH {
            write_now(engine, std::mem::take(&mut batch))?;
        }
    }
    write_now(engine, batch)?;
    let mut batch = Batch::default();
    for id in stored::conversations_with(engine, key::ITEM)? {
        // It belongs to no owner: there are no records of it.
        if matches!(damage_of(stored::standing(engine, id))?, Ok(Standing::Vacant)) {
            rebuild_items(engine, id, &mut batch)?;
        }
    }
    remove_stray_index_entries(engine, &mut batch)?;
    write_now(engine, batch)
}

/// Writes a batch at once. For opening only: nobody else writes.
fn write_now(engine: &dyn Engine, batch: Batch) -> Result<()> {
    if batch.ops.is_empty() {
        return Ok(());
    }
    engine.rewrite(batch)?;
    engine.sync()
}

/// `sound`: the head that is used.
fn rebuild(engine: &dyn Engine, id: ConversationId, sound: Head, accept_loss: bool, batch: &mut Batch) -> Result<()> {
    rebuild_items(engine, id, batch)?;
    let mut head = sound.clone();
    if let Some(derived) = stored::derived_head(engine, id, Some(&sound))? {
        // For messages that cannot be read, nobody knows whether they were finished.
        head.open.clone_from(&derived.open);
        head.interrupted.clone_from(&derived.interrupted);
        let ends = |head: &Head| (head.next_seq, head.next_message_index, head.last_hide, head.last_meta);
        let promises_more = sound.next_seq > derived.next_seq;
        if if promises_more { accept_loss } else { ends(&sound) != ends(&derived) } {
            head = derived;
        }
    } else if accept_loss && sound.next_seq > sound.first_seq() {
        // A fork that has none of its own entries left.
        if let Some(parent) = sound.parent {
            head.next_seq = parent.at_seq + 1;
            let segments = stored::segments(engine, id, &head)?;
            head.next_message_index = fork::next_message_index_at(&engine.records(&segments), parent.at_seq)?;
        }
    }
    let head_key = key::head(id);
    let value = record::seal(&head_key, &head)?;
    if engine.get(&head_key)?.as_ref() != Some(&value) {
        batch.put(head_key, value);
    }
    if accept_loss {
        for key in stored::unproved_receipts(engine, id, &head)? {
            batch.remove(key);
        }
    }
    for index in index_keys(id, &head) {
        if engine.get(&index)?.is_none() {
            batch.put(index, Vec::new());
        }
    }
    Ok(())
}

fn rebuild_items(engine: &dyn Engine, id: ConversationId, batch: &mut Batch) -> Result<()> {
    let (stored, derived) = (stored::item_keys(engine, id, u64::MAX)?, stored::derived_item_keys(engine, id)?);
    stored.difference(&derived).for_each(|stray| batch.remove(stray.clone()));
    derived.difference(&stored).for_each(|missing| batch.put(missing.clone(), Vec::new()));
    Ok(())
}

fn remove_stray_index_entries(engine: &dyn Engine, batch: &mut Batch) -> Result<()> {
    for kind in key::INDEXES {
        let mut keys = Vec::new();
        engine.scan(&[kind]..&key::after(&[kind]), Order::Ascending, &mut |key, _| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        })?;
        for key in keys {
            let standing = key::conversation(&key).map(|id| (id, damage_of(stored::standing(engine, id))));
            let stays = match standing {
                None => false,
                Some((id, standing)) => match standing? {
                    Ok(Standing::Alive(head)) => index_keys(id, &head).contains(&key),
                    Ok(Standing::Vacant | Standing::Deleted(_)) => false,
                    // Nothing identifies it.
                    Err(_) => true,
                },
            };
            if !stays {
                batch.remove(key);
            }
        }
    }
    Ok(())
}

/// Interrupts the messages that earlier openings of the store left open. For opening only: nobody else writes.
fn interrupt_left_open(core: &Core) -> Result<()> {
    for id in stored::conversations_with(&*core.engine, key::UNFINISHED)? {
        // Nobody knows whether what would replace a damaged head is complete.
        let Ok(Some(_)) = damage_of(stored::stored_head(&*core.engine, id))? else { continue };
        let Ok(head) = damage_of(core.catalogue.published_head(id))? else { continue };
        let open = head.map(|head| head.open.clone()).unwrap_or_default();
        for message in open {
            core.appender.interrupt(id, message, InterruptCause::Reopened, Durability::Buffered)?;
        }
    }
    core.commit.sync()
}

/// Moves the conversations that lag to the places of their last activity.
fn end_lags(core: &Core) -> Result<()> {
    for id in stored::conversations_with(&*core.engine, key::LAGGING)? {
        // What is damaged stays as it is.
        let Ok(Some(_)) = damage_of(stored::stored_head(&*core.engine, id))? else { continue };
        let Ok(Some(_)) = damage_of(core.catalogue.published_head(id))? else { continue };
        let _pin = core.catalogue.pin(id)?;
        let mut state = core.commit.writable(id, Durability::Buffered)?;
        if let Some(head) = state.slots.slot(id).queued().cloned() {
            state.order.let_lag([id]);
            state.end_lag(id, &head);
        }
    }
    core.commit.sync()
}

/// Finds the conversations that lag, in a store that is only read.
fn find_lagging(core: &Core) -> Result<()> {
    let ids = stored::conversations_with(&*core.engine, key::LAGGING)?;
    core.commit.lock().order.let_lag(ids);
    Ok(())
}
