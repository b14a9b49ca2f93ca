//! What the opening of a store repairs or finishes: nobody else writes meanwhile.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::embedded::core::Core;
use crate::embedded::engine::{Batch, Directory, Engine, Order};
use crate::embedded::stored::{self, Standing, damage_of};
use crate::error::Result;
use crate::log::segments::Segmented;
use crate::log::{Durability, fork};
use crate::model::ConversationId;
use crate::record::{self, Commit, Head, InterruptCause, index_keys, key};

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
pub(super) fn write_now(engine: &dyn Engine, batch: Batch) -> Result<()> {
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
pub(super) fn interrupt_left_open(core: &Core) -> Result<()> {
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
pub(crate) fn end_lags(core: &Core) -> Result<()> {
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
pub(super) fn find_lagging(core: &Core) -> Result<()> {
    let ids = stored::conversations_with(&*core.engine, key::LAGGING)?;
    core.commit.lock().order.let_lag(ids);
    Ok(())
}
