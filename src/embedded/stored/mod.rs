//! What the engine holds of conversations: read, compared, derived again.
//!
//! Plain functions of an engine, without state and without a lock; they write nothing. All rooms may call them. Each file
//! needs those above it: `records` by place and across forks, `heads` from them, `forks` and `indexes` against heads.

mod forks;
mod heads;
mod indexes;
mod records;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::embedded::engine::{Engine, Order};
use crate::error::{Error, Result};
use crate::model::ConversationId;
use crate::record::key;

pub(crate) use forks::{Fault, doubtful_fork_points, fork_point_fault, forks, point_of};
pub(crate) use heads::{
    Standing, derived_head, derived_head_at, has_entries_from, head_of_origin, sound_head, standing, tombstone,
};
pub(crate) use indexes::{
    derived_item_keys, is_proved, item_keys, item_seqs, items_behind, open_receipt, unproved_receipts,
};
pub(crate) use records::{born, grandparent, incarnation, origin, segments, segments_through, stored_head};

/// The conversations that have a key of this kind.
pub(crate) fn conversations_with(engine: &dyn Engine, kind: u8) -> Result<BTreeSet<ConversationId>> {
    let mut ids = BTreeSet::new();
    // Skips from one conversation to the next, past its other keys.
    let mut start = vec![kind];
    let end = key::after(&[kind]);
    loop {
        let mut next = None;
        engine.keys(&start..&end, Order::Ascending, &mut |key, _| {
            next = key::parse_id(key);
            ControlFlow::Break(())
        })?;
        let Some(id) = next else { return Ok(ids) };
        ids.insert(id);
        start = key::after(&key::prefix(kind, id));
    }
}

/// Whether a key with this prefix exists.
pub(crate) fn has_any(engine: &dyn Engine, prefix: &[u8]) -> Result<bool> {
    let mut found = false;
    engine.keys(prefix..&key::after(prefix), Order::Ascending, &mut |_, _| {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Whether an error comes from damage to a value. An engine that cannot read at all is another matter.
fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::UnsupportedVersion { .. })
}

/// What was read, or the damage that prevented it; an error of the engine stays an error.
pub(crate) fn damage_of<T>(read: Result<T>) -> Result<std::result::Result<T, Error>> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(error) if is_damage(&error) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

/// What damage left of a conversation does not identify it.
pub(crate) fn set_aside(id: ConversationId, seq: Option<u64>, why: &str) -> Error {
    let detail = format!("{why}: it is left as it is; `delete` removes it");
    Error::Corrupt { conversation: Some(id.into()), seq, detail }
}
