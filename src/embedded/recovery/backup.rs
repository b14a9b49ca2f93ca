//! A store as one file, and back. The backup is consistent while the store is in use.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::open::{UNMARKED, is_established};
use crate::backup;
use crate::embedded::core::Core;
use crate::embedded::engine::{Batch, Directory, Engine, Order};
use crate::embedded::state::{Blocked, Existence};
use crate::embedded::stored::{self, Standing, born, damage_of};
use crate::error::{Error, Result};
use crate::log::segments::{Segment, Segmented};
use crate::log::{BackupSummary, Reading};
use crate::model::ConversationId;
use crate::record::{self, Commit, Head, Lag, Lost, Origin, Parent, Record, index_keys, key};

/// Bytes of pairs that a restore writes in one batch.
const RESTORE_BYTES: usize = 128 * 1024;

/// Writes everything that is durable now to a new file, as of one moment for all conversations. What is deleted or
/// redacted during the backup may be missing or redacted in it.
pub(crate) fn backup(core: &Core, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
    if core.commit.lock().life.blocked().is_none() {
        core.commit.sync()?;
    }
    backup::write(path, |out| write_backup(core, out, progress))
}

fn write_backup(core: &Core, out: &mut backup::Out, progress: &mut dyn FnMut(u64, u64)) -> Result<(u64, u64)> {
    for name in [key::STORE, key::EPOCH] {
        let key = key::meta(name);
        if let Some(value) = core.engine.get(&key)? {
            out.pair(&key, &value)?;
        }
    }
    let (deletions, is_deleting) = core.families.deletions();
    let (last, through, begun) = {
        let state = core.commit.lock();
        // Those that are being created are of a later commit. Of a fork, its records do not always show that.
        (state.last_commit(), state.readable_through(), state.slots.beginning().collect())
    };
    let mut ids = stored::conversations_with(&*core.engine, key::HEAD)?;
    ids.extend(stored::conversations_with(&*core.engine, key::RECORD)?);
    ids.extend(stored::conversations_with(&*core.engine, key::TOMBSTONE)?);
    let all = ids.len() as u64;
    let mut snapshot = Snapshot { core, out, through, written: Commit::default(), unreadable: 0, done: begun };
    for (done, id) in (1..).zip(ids) {
        // Everything that a fork reads is written with it. Nothing of that is erased meanwhile.
        let held = core.families.hold(&[id])?;
        snapshot.with_ancestors(id)?;
        drop(held);
        progress(done, all);
    }
    let Snapshot { out, written, unreadable, .. } = snapshot;
    // What disappeared here without a trace is reported as missing in the backup too.
    let is_whole = !is_deleting && core.families.deletions().0 == deletions;
    let commit = if is_whole { last } else { Commit { number: last.number, ..written } };
    let mut values = vec![(key::meta(key::COMMIT), record::seal(&key::meta(key::COMMIT), &commit)?)];
    values.extend(
        lost(core)?
            .map(|lost| record::seal(&key::meta(key::LOST), &lost).map(|value| (key::meta(key::LOST), value)))
            .transpose()?,
    );
    for (key, value) in values {
        out.pair(&key, &value)?;
    }
    Ok((written.conversations, unreadable))
}

/// What the store is known to have lost, if anything.
fn lost(core: &Core) -> Result<Option<Lost>> {
    let state = core.commit.lock();
    let lost = match state.life.blocked() {
        Some(Blocked::Damaged(detail)) => Some(Lost { acknowledged: 0, unknown: Some(detail.clone()) }),
        Some(Blocked::WentBack { to, .. }) => Some(Lost { acknowledged: *to, unknown: None }),
        _ => {
            let acknowledged = core.found.went_back.map_or(0, |(_, to)| to);
            let unknown = core.found.watermark_lost.then(|| UNMARKED.to_owned());
            Some(Lost { acknowledged, unknown }).filter(|lost| *lost != Lost::default())
        }
    };
    Ok(lost)
}

/// A backup in progress.
struct Snapshot<'a> {
    core: &'a Core,
    out: &'a mut backup::Out,
    /// The last commit that belongs to it.
    through: u64,
    written: Commit,
    unreadable: u64,
    /// The conversations that were written or left out.
    done: BTreeSet<ConversationId>,
}

impl Snapshot<'_> {
    /// Writes a conversation, after the conversations that it reads.
    fn with_ancestors(&mut self, id: ConversationId) -> Result<()> {
        let mut chain = vec![id];
        while let Some(last) = chain.last() {
            let parent = match damage_of(stored::standing(&*self.core.engine, *last))? {
                Ok(Standing::Alive(head)) => head.parent,
                Ok(Standing::Deleted(tombstone)) => tombstone.parent,
                Ok(Standing::Vacant) | Err(_) => None,
            };
            // One that reads nothing of its parent may be written before it.
            match parent.filter(|parent| parent.at_seq > 0).map(|parent| parent.id()) {
                // Damage may create a cycle.
                Some(parent) if !self.done.contains(&parent) && !chain.contains(&parent) => chain.push(parent),
                _ => break,
            }
        }
        for id in chain.into_iter().rev() {
            if self.done.insert(id) {
                self.conversation(id)?;
            }
        }
        Ok(())
    }

    fn conversation(&mut self, id: ConversationId) -> Result<()> {
        // The engine may show a part of one that is being created.
        match damage_of(self.core.catalogue.existence(id))? {
            Ok(Existence::Alive) => match self.head(id)? {
                Some(head) => {
                    self.written.count(None, Some(&head));
                    self.alive(id, &head)
                }
                // It was created later.
                None => Ok(()),
            },
            Ok(Existence::Vacant) => Ok(()),
            // All that is left, readable or not: the backup shows the same damage as the store.
            left => {
                match left {
                    Ok(_) => {
                        let tombstone = damage_of(stored::tombstone(&*self.core.engine, id))?.ok().flatten();
                        self.fork_point(id, tombstone.and_then(|tombstone| tombstone.parent))?;
                    }
                    Err(_) => {
                        self.unreadable += 1;
                        self.fork_points_of(id)?;
                    }
                }
                self.pairs(id, &[key::HEAD, key::RECORD, key::RECEIPT, key::TOMBSTONE, key::ITEM], u64::MAX)
            }
        }
    }

    /// The head of a conversation as it was at the backup's moment.
    fn head(&self, id: ConversationId) -> Result<Option<Head>> {
        let Some(head) = self.core.catalogue.published_head(id)? else { return Ok(None) };
        if born(head.incarnation) >= self.through {
            return Ok(None);
        }
        let own = Segment { incarnation: head.incarnation, ..Segment::all(id) };
        let mut is_newer = false;
        let last = head.next_seq - 1;
        self.core.engine.read(&[own], last..=last, Order::Ascending, &mut |item| {
            if let Reading::Record { record, .. } = item {
                is_newer |= record.header.commit > self.through;
            }
            ControlFlow::Continue(())
        })?;
        if !is_newer {
            return Ok(Some((*head).clone()));
        }
        let then = stored::derived_head_at(&*self.core.engine, id, Some(&head), self.through)?;
        if then.is_some() {
            return Ok(then);
        }
        // A fork that had no entries of its own.
        let first_seq = head.first_seq();
        let first = self.core.engine.get(&key::record(id, first_seq))?;
        let origin = first.map(|value| origin_then(id, first_seq, &value, self.through)).transpose()?.flatten();
        let Some(origin) = origin else { return Ok(None) };
        stored::head_of_origin(&*self.core.engine, id, &Record::open(id, first_seq, &origin)?, self.through).map(Some)
    }

    fn alive(&mut self, id: ConversationId, head: &Head) -> Result<()> {
        let head = &Head { lag: Lag::default(), ..head.clone() };
        let head_key = key::head(id);
        // A damaged value is copied as it is, so that the damage stays visible.
        let stored = self.core.engine.get(&head_key)?;
        let value = match (damage_of(stored::stored_head(&*self.core.engine, id))?, stored) {
            (Err(_), Some(damaged)) => Some(damaged),
            (Ok(None), _) => None,
            _ => Some(record::seal(&head_key, head)?),
        };
        if let Some(value) = value {
            self.pair(&head_key, &value)?;
        }
        self.fork_point(id, head.parent)?;
        for key in index_keys(id, head) {
            self.pair(&key, &[])?;
        }
        self.pairs(id, &[key::RECORD, key::RECEIPT, key::ITEM], head.next_seq)
    }

    /// Everything of these kinds, up to the head.
    fn pairs(&mut self, id: ConversationId, kinds: &[u8], next_seq: u64) -> Result<()> {
        let through = self.through;
        for kind in kinds {
            let prefix = key::prefix(*kind, id);
            let mut result = Ok(());
            self.core.engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
                result = then(key, value, next_seq, through)
                    .and_then(|value| value.map_or(Ok(()), |value| self.out.pair(key, &value)));
                if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            result?;
        }
        Ok(())
    }

    /// What the parent of a fork keeps of it, unchanged.
    fn fork_point(&mut self, id: ConversationId, parent: Option<Parent>) -> Result<()> {
        let Some(parent) = parent.filter(|parent| parent.at_seq > 0) else { return Ok(()) };
        let key = key::fork(parent.id(), id);
        let value = self.core.engine.get(&key)?;
        value.map_or(Ok(()), |value| self.pair(&key, &value))
    }

    /// What others keep of a conversation whose parent is unknown.
    fn fork_points_of(&mut self, id: ConversationId) -> Result<()> {
        let mut points = Vec::new();
        self.core.engine.scan(&[key::FORK]..&key::after(&[key::FORK]), Order::Ascending, &mut |key, value| {
            if key::parse_fork(key) == Some(id) {
                points.push((key.to_vec(), value.to_vec()));
            }
            ControlFlow::Continue(())
        })?;
        points.into_iter().try_for_each(|(key, value)| self.pair(&key, &value))
    }

    fn pair(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.out.pair(key, value)
    }
}

/// A value as it was at the backup's moment, if it existed then. A value that cannot be read counts as there.
fn then<'a>(key: &[u8], value: &'a [u8], next_seq: u64, through: u64) -> Result<Option<Cow<'a, [u8]>>> {
    let was_there = match key.first() {
        Some(&key::RECEIPT) => record::open::<record::Receipt>("an idempotency record", key, value)
            .map_or(true, |receipt| receipt.last_seq < next_seq),
        Some(&key::ITEM) => key::parse_item(key).is_none_or(|seq| seq < next_seq),
        Some(&key::RECORD) => match key::parse_record(key) {
            // An origin without entries is stored at the next seq itself.
            Some((id, first_seq)) if first_seq >= next_seq => {
                return Ok(origin_then(id, first_seq, value, through)?.map(Cow::Owned));
            }
            _ => true,
        },
        _ => true,
    };
    Ok(was_there.then_some(Cow::Borrowed(value)))
}

/// The origin of a fork without entries as it was: the fork's first entries may have replaced it since.
fn origin_then(id: ConversationId, first_seq: u64, value: &[u8], through: u64) -> Result<Option<Vec<u8>>> {
    let Ok(record) = Record::open(id, first_seq, value) else { return Ok(None) };
    if record.len() == 0 {
        return Ok((record.header.commit <= through).then(|| value.to_vec()));
    }
    let is_later = record.header.commit > through;
    let forked_before = |origin: &Origin| origin.parent.is_some() && born(origin.incarnation) < through;
    let Some(origin) = record.header.origin.filter(|origin| is_later && forked_before(origin)) else { return Ok(None) };
    let commit = born(origin.incarnation) + 1;
    backup::fork_record(id, first_seq, origin, commit, false).map(|(_, value)| Some(value))
}

/// Fills an empty engine from a backup. `progress` is called with the bytes read and the size of the file.
pub(crate) fn restore(
    path: &Path,
    engine: &Arc<dyn Engine>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BackupSummary> {
    let backup = backup::open(path)?;
    let size = backup.bytes();
    let mut is_empty = true;
    engine.keys(&[]..&[u8::MAX; 32], Order::Ascending, &mut |_, _| {
        is_empty = false;
        ControlFlow::Break(())
    })?;
    if !is_empty || is_established(&**engine) {
        return Err(Error::InvalidInput(
            "a backup can only be restored into a new store: name one that does not exist yet".to_owned(),
        ));
    }
    let mut target = Target { engine, batch: Batch::default(), bytes: 0 };
    let restoring = key::meta(key::RESTORING);
    target.put(&restoring, &record::seal(&restoring, &1_u64)?);
    target.write()?;
    // The marker comes last: an interrupted restore leaves no store.
    let mut marker = None;
    let mut conversations = 0;
    backup.read(&mut |key, value, bytes| {
        if key == key::meta(key::STORE).as_slice() {
            marker = Some((key.to_vec(), value.to_vec()));
            return Ok(());
        }
        conversations += u64::from(key.first() == Some(&key::HEAD));
        target.put(key, value);
        progress(bytes, size);
        if target.bytes >= RESTORE_BYTES { target.write() } else { Ok(()) }
    })?;
    let (key, value) = marker.ok_or_else(backup::without_marker)?;
    target.write()?;
    target.put(&key, &value);
    target.batch.remove(restoring);
    target.write()?;
    engine.directory().map_or(Ok(()), Directory::restored)?;
    Ok(BackupSummary { conversations, unreadable: 0, bytes: size })
}

struct Target<'a> {
    engine: &'a Arc<dyn Engine>,
    batch: Batch,
    bytes: usize,
}

impl Target<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.bytes += key.len() + value.len();
        self.batch.put(key.to_vec(), value.to_vec());
    }

    fn write(&mut self) -> Result<()> {
        self.bytes = 0;
        self.engine.write(std::mem::take(&mut self.batch))?;
        self.engine.sync()
    }
}
