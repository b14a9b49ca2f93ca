//! Which conversations exist: each head is proved by the records and indexes of its conversation, or derived from them.

use std::ops::ControlFlow;

use super::records::{accepts, born, origin, segments_through, stored_head};
use super::{damage_of, has_any, set_aside};
use crate::embedded::engine::{Engine, Order};
use crate::error::{Error, Result};
use crate::log::Reading;
use crate::log::replay::Names;
use crate::log::replay::{first_head, replay};
use crate::log::segments::{Segment, Segmented};
use crate::model::ConversationId;
use crate::record::{ForkPoint, Head, Origin, Record, Tombstone, index_keys, key};

/// What exists under a name.
#[derive(Debug)]
pub(crate) enum Standing {
    /// Nothing.
    Vacant,
    /// A conversation that was deleted; its entries wait for the forks that read them.
    Deleted(Tombstone),
    /// A conversation.
    Alive(Box<Head>),
}

/// The conversation of a name; none if it was deleted or never created.
///
/// # Errors
/// `Corrupt` if what is there does not decide it.
pub(crate) fn sound_head(engine: &dyn Engine, id: ConversationId) -> Result<Option<Head>> {
    Ok(match standing(engine, id)? {
        Standing::Alive(head) => Some(*head),
        Standing::Vacant | Standing::Deleted(_) => None,
    })
}

/// What is known of a deleted conversation, while something of it is left.
pub(crate) fn tombstone(engine: &dyn Engine, id: ConversationId) -> Result<Option<Tombstone>> {
    Ok(match standing(engine, id)? {
        Standing::Deleted(tombstone) => Some(tombstone),
        Standing::Vacant | Standing::Alive(_) => None,
    })
}

/// What exists under a name.
pub(crate) fn standing(engine: &dyn Engine, id: ConversationId) -> Result<Standing> {
    let tombstone_key = key::tombstone(id);
    let tombstone = engine.get(&tombstone_key)?.map(|bytes| Tombstone::open(&tombstone_key, &bytes));
    let head = damage_of(stored_head(engine, id))?;
    if let Ok(Some(head)) = &head
        && !is_stale(engine, id, head, tombstone.as_ref())?
    {
        return grown(engine, id, head).map(|head| Standing::Alive(Box::new(head)));
    }
    let first = origin(engine, id)?;
    let header = first.as_ref().filter(|header| header.origin.is_some());
    let origin = header.and_then(|header| header.origin.as_ref());
    match (tombstone, header, origin) {
        // A conversation that was created since.
        (Some(Ok(tombstone)), Some(header), Some(origin))
            if origin.incarnation > tombstone.incarnation && !header.deleted => {}
        (Some(Ok(tombstone)), ..) => return Ok(Standing::Deleted(tombstone)),
        (_, Some(header), Some(origin)) if header.deleted => {
            let Origin { parent, incarnation, .. } = origin;
            return Ok(Standing::Deleted(Tombstone { parent: *parent, incarnation: *incarnation }));
        }
        (Some(Err(_)), ..) => return Ok(Standing::Deleted(Tombstone { parent: None, incarnation: 0 })),
        (None, ..) => {}
    }
    derived_standing(engine, id, head, origin.is_some())
}

/// What exists under a name that has no head, or a head that is damaged or of an earlier conversation.
fn derived_standing(
    engine: &dyn Engine,
    id: ConversationId,
    head: std::result::Result<Option<Head>, Error>,
    is_known: bool,
) -> Result<Standing> {
    if !has_any(engine, &key::prefix(key::RECORD, id))? {
        return match head {
            Ok(None) => Ok(Standing::Vacant),
            Ok(Some(_)) => Err(set_aside(id, None, "it has a head, and nothing that proves it")),
            Err(error) => Err(set_aside(id, None, &detail(&error))),
        };
    }
    let derived = if is_known { derived_head(engine, id, None)? } else { None };
    let Some(derived) = derived else {
        return Err(set_aside(id, None, "neither its head nor its first record can be read"));
    };
    // Nothing of this conversation is left but its head; the records are of an earlier one.
    if head.as_ref().is_ok_and(|head| head.as_ref().is_some_and(|head| head.incarnation >= derived.incarnation)) {
        return Err(set_aside(id, None, "it has a head, and nothing that proves it"));
    }
    // Without any head, the records may belong to a conversation that was deleted.
    if matches!(head, Ok(None)) && !is_listed(engine, id, &derived)? {
        return Err(set_aside(id, None, "it has records, but no head and no place in the list"));
    }
    Ok(Standing::Alive(Box::new(derived)))
}

/// Whether a head belongs to a conversation that was deleted: damage brings back what was erased.
fn is_stale(
    engine: &dyn Engine,
    id: ConversationId,
    head: &Head,
    tombstone: Option<&Result<Tombstone>>,
) -> Result<bool> {
    if let Some(Ok(tombstone)) = tombstone
        && tombstone.incarnation >= head.incarnation
    {
        return Ok(true);
    }
    let mut is_proved = false;
    let (start, end) = (key::record(id, head.first_seq()), key::after(&key::prefix(key::RECORD, id)));
    let mut is_stale = false;
    engine.scan(&start..&end, Order::Ascending, &mut |key, value| {
        let Some((_, first_seq)) = key::parse_record(key) else { return ControlFlow::Continue(()) };
        let header = Record::open(id, first_seq, value).map(|record| record.header);
        let origin = header.as_ref().ok().and_then(|header| header.origin.as_ref());
        let older = |origin: &Origin| origin.incarnation < head.incarnation;
        match (&header, origin) {
            (Ok(_), Some(origin)) if older(origin) => return ControlFlow::Continue(()),
            (Ok(header), Some(origin)) => {
                is_stale = origin.incarnation != head.incarnation || header.deleted;
            }
            (Ok(header), None) if header.commit <= born(head.incarnation) => {
                return ControlFlow::Continue(());
            }
            _ => {}
        }
        is_proved = true;
        ControlFlow::Break(())
    })?;
    if is_proved {
        return Ok(is_stale);
    }
    // A conversation of this name was deleted, and its tombstone cannot be read. No record proves that the head is of a
    // later one.
    if matches!(tombstone, Some(Err(_))) {
        return Ok(true);
    }
    // A fork without entries of its own is known to its parent.
    let Some(parent) = head.parent.filter(|parent| parent.at_seq > 0) else { return Ok(true) };
    let key = key::fork(parent.id(), id);
    let point = engine.get(&key)?.and_then(|bytes| ForkPoint::open(&key, &bytes).ok());
    Ok(point.is_none_or(|point| point.child != head.incarnation))
}

/// The head, unless it ends before its records do: an append after it would overwrite them.
fn grown(engine: &dyn Engine, id: ConversationId, head: &Head) -> Result<Head> {
    if !has_entries_from(engine, id, head)? {
        return Ok(head.clone());
    }
    let derived = derived_head(engine, id, Some(head))?;
    Ok(derived.filter(|derived| derived.next_seq > head.next_seq).unwrap_or_else(|| head.clone()))
}

/// Whether a conversation has entries of its own after the end of its head.
pub(crate) fn has_entries_from(engine: &dyn Engine, id: ConversationId, head: &Head) -> Result<bool> {
    let mut found = false;
    let own = Segment { incarnation: head.incarnation, ..Segment::all(id) };
    let (start, end) = (key::record(id, head.next_seq), key::after(&key::prefix(key::RECORD, id)));
    engine.scan(&start..&end, Order::Ascending, &mut |key, value| {
        let Some((_, first_seq)) = key::parse_record(key) else { return ControlFlow::Continue(()) };
        // The origin of a fork is a record without entries: it is stored where the first entry will be.
        found = Record::open(id, first_seq, value).is_ok_and(|record| accepts(&own, &record) && record.len() > 0);
        if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(found)
}

/// Whether the list of conversations has it, in any place.
fn is_listed(engine: &dyn Engine, id: ConversationId, head: &Head) -> Result<bool> {
    if let Some(place) = index_keys(id, head).first()
        && engine.get(place)?.is_some()
    {
        return Ok(true);
    }
    // Its last entries may be missing: only damage leads here.
    let mut found = false;
    let all = key::index_of(&head.owner_digest());
    engine.scan(&all..&key::after(&all), Order::Ascending, &mut |key, _| {
        found = key::parse_index(key).is_some_and(|(_, _, listed)| listed == id);
        if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(found)
}

/// The head that the records of a conversation give, if any can be read. `known`: a readable head of it; what the
/// records do not state is taken from there. Seqs of damaged records at the end are not counted.
pub(crate) fn derived_head(engine: &dyn Engine, id: ConversationId, known: Option<&Head>) -> Result<Option<Head>> {
    derived_head_at(engine, id, known, u64::MAX)
}

/// The same, as it was after a commit.
pub(crate) fn derived_head_at(
    engine: &dyn Engine,
    id: ConversationId,
    known: Option<&Head>,
    through: u64,
) -> Result<Option<Head>> {
    let incarnation = known.map_or(0, |head| head.incarnation);
    let mut all = Segment { incarnation, through, ..Segment::all(id) };
    let mut head: Option<Head> = None;
    let mut names = Names::default();
    if incarnation == 0 {
        let origin = origin(engine, id)?.and_then(|header| header.origin);
        all.incarnation = origin.map_or(0, |origin| origin.incarnation);
    }
    engine.read(&[all], 1..=all.last, Order::Ascending, &mut |item| {
        let Reading::Record { record, last, .. } = item else { return ControlFlow::Continue(()) };
        replay(head.get_or_insert_with(|| first_head(record, known)), record);
        names.read(record, last);
        ControlFlow::Continue(())
    })?;
    let Some(mut head) = head else { return Ok(None) };
    give_names(engine, id, &mut head, names, through)?;
    Ok(Some(head))
}

/// The head of a fork that has only its origin.
pub(crate) fn head_of_origin(
    engine: &dyn Engine,
    id: ConversationId,
    origin: &Record<'_>,
    through: u64,
) -> Result<Head> {
    let mut head = first_head(origin, None);
    give_names(engine, id, &mut head, Names::default(), through)?;
    Ok(head)
}

/// `own`: what its own records give.
fn give_names(engine: &dyn Engine, id: ConversationId, head: &mut Head, own: Names, through: u64) -> Result<()> {
    let mut names = own;
    if head.parent.is_some_and(|parent| parent.at_seq > 0) {
        // A fork has title and tags of its parent, as they were at the fork point.
        let segments = segments_through(engine, id, head, through)?;
        names = engine.names(&segments, head.next_seq - 1)?;
    }
    names.give(head);
    Ok(())
}

fn detail(error: &Error) -> String {
    match error {
        Error::Corrupt { detail, .. } => detail.clone(),
        other => other.to_string(),
    }
}
