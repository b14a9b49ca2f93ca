//! Everything that can be derived is derived again, and compared.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::open::UNMARKED;
use crate::embedded::core::Core;
use crate::embedded::engine::{Engine, Order};
use crate::embedded::stored::{self, Fault, damage_of};
use crate::error::{Error, Result};
use crate::log::check::Check;
use crate::log::replay::verify_record;
use crate::log::segments::{Segment, Segmented};
use crate::log::{Problem, Reading, Verification};
use crate::model::ConversationId;
use crate::record::{Commit, Head, Tombstone, index_keys, key};

/// What belongs to a conversation's records.
const DEPENDENTS: &[(u8, &str)] = &[
    (key::RECORD, "it has records, but no head"),
    (key::RECEIPT, "it has idempotency records, but no head"),
    (key::ITEM, "it is in the index of item ids, but has no head"),
];

/// Checks the store as it is durable now. `progress` is called with the number of conversations done, and of all.
pub(crate) fn verify(core: &Core, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
    core.commit.sync()?;
    let before = core.commit.lock().last_commit();
    let mut counted = Commit { number: before.number, ..Commit::default() };
    let mut found = Verification::default();
    if let Some((from, to)) = core.found.went_back {
        found.problems.push(Problem::of_store(Error::WentBack { from, to }.to_string()));
    }
    if core.found.watermark_lost {
        found.problems.push(Problem::of_store(UNMARKED));
    }
    found.problems.extend(core.found.damage.iter().map(Problem::of_store));
    let ids = stored::conversations_with(&*core.engine, key::HEAD)?;
    let all = ids.len() as u64;
    for id in &ids {
        let head = verify_conversation(core, *id, &mut found)?;
        counted.count(None, head.as_ref());
        found.conversations += 1;
        progress(found.conversations, all);
    }
    verify_deleted(core, &mut found)?;
    verify_indexes(core, &mut found)?;
    verify_fork_points(core, &mut found)?;
    verify_orphans(core, &ids, &mut found)?;
    if core.commit.lock().last_commit() == before && counted != before {
        found.problems.push(Problem::of_store(format!(
            "it holds {} conversations with {} entries, and was left with {} and {}: something is missing, or back, \
             that left no other trace",
            counted.conversations, counted.entries, before.conversations, before.entries
        )));
    }
    Ok(found)
}

/// Checks again, while nothing is written to a conversation: the first look may have met half of a change.
fn settled<T>(core: &Core, id: ConversationId, look: impl FnOnce() -> Result<T>) -> Result<T> {
    let _held = core.families.hold(&[id])?;
    let is_read_only = core.commit.lock().life.blocked().is_some();
    // A conversation that nothing identifies is not written to either.
    let _frozen = if is_read_only { None } else { damage_of(core.families.freeze(id))?.ok() };
    look()
}

/// Returns the head, if there still is one.
fn verify_conversation(core: &Core, id: ConversationId, found: &mut Verification) -> Result<Option<Head>> {
    let mut passing = Verification::default();
    let head = verify_head(core, id, &mut passing)?;
    if passing.problems.is_empty() {
        found.entries += passing.entries;
        return Ok(head);
    }
    settled(core, id, || verify_head(core, id, found))
}

fn verify_head(core: &Core, id: ConversationId, found: &mut Verification) -> Result<Option<Head>> {
    let stored = readable(id, stored::stored_head(&*core.engine, id), found)?.flatten();
    let Some(seen) = readable(id, seen_head(core, id), found)? else { return Ok(None) };
    let Some(head) = seen else {
        if stored.is_some() {
            found.problems.push(Problem::of(id, "it has a head, and was deleted"));
        }
        return Ok(None);
    };
    let segments = stored::segments(&*core.engine, id, &head)?;
    let Some((own, past)) = segments.split_last() else { return Ok(Some(head)) };
    verify_past(&*core.engine, id, past, found)?;
    verify_records(&*core.engine, *own, Some(&head), found)?;
    let is_short = stored.is_some_and(|stored| stored.next_seq < head.next_seq)
        || stored::has_entries_from(&*core.engine, id, &head)?;
    if is_short {
        found.problems.push(Problem::of(id, "the head ends before the last record"));
    }
    for index in index_keys(id, &head) {
        if core.engine.get(&index)?.is_none() {
            found.problems.push(Problem::of(id, "an index of conversations does not list it"));
        }
    }
    verify_content(&*core.engine, *own, &segments, &head, is_short, found)?;
    verify_receipts(&*core.engine, id, &head, found)?;
    Ok(Some(head))
}

/// The head that readers see.
fn seen_head(core: &Core, id: ConversationId) -> Result<Option<Head>> {
    if let Some(slot) = core.commit.lock().slots.get(id) {
        return Ok(slot.published().map(|head| Head::clone(head)));
    }
    stored::sound_head(&*core.engine, id)
}

/// What a fork reads of others: whether both ends of it exist. The rest is checked with its own conversation.
fn verify_past(engine: &dyn Engine, id: ConversationId, past: &[Segment], found: &mut Verification) -> Result<()> {
    for segment in past.iter().filter(|segment| segment.first <= segment.last) {
        for seq in [segment.first, segment.last] {
            let read = engine.records(&[*segment]).record(seq, "a record", |_| Ok(Some(())));
            if let Err(error) = damage_of(read)? {
                let shared = Problem::from_error(segment.conversation, &error);
                let detail = format!("seq {seq}, which it shares with {}: {}", segment.conversation, shared.detail);
                found.problems.push(Problem { conversation: Some(id), seq: Some(seq), detail });
            }
        }
    }
    Ok(())
}

/// Reads the records of a segment.
fn verify_records(engine: &dyn Engine, segment: Segment, head: Option<&Head>, found: &mut Verification) -> Result<()> {
    let id = segment.conversation;
    let mut next_message_index = None;
    let mut has_origin = false;
    let all = Segment { last: u64::MAX - 2, ..segment };
    // What comes after the last seq belongs to no deleted conversation, and is more than the head of a living one
    // covers.
    let mut visit = |item: Reading<'_>| {
        match item {
            Reading::Damaged(error) if is_after(&error, segment.last) => {}
            Reading::Damaged(error) | Reading::Stray(error) => {
                found.problems.push(Problem::from_error(id, &error));
                next_message_index = None;
            }
            Reading::Record { record, .. } => {
                let origin = record.header.origin.as_ref();
                has_origin |= origin.is_some();
                let expected = next_message_index.or(origin.map(|origin| origin.first_message_index));
                verify_record(id, record, expected, found);
                next_message_index = Some(record.header.next_message_index);
                if let (Some(origin), Some(head)) = (origin, head)
                    && (&origin.key, &origin.owner, origin.parent, origin.incarnation)
                        != (&head.key, &head.owner, head.parent, head.incarnation)
                {
                    found.problems.push(Problem::of(id, "what it is differs between head and first record"));
                }
            }
        }
        ControlFlow::Continue(())
    };
    engine.read(&[all], segment.first..=segment.last.max(segment.first), Order::Ascending, &mut visit)?;
    if head.is_some() && !has_origin {
        found.problems.push(Problem::of(id, "its first record cannot be read, or is missing"));
    }
    Ok(())
}

/// What the entries give, compared: the index of item ids, the head, what was redacted. Neither the index nor the head is judged
/// if a record cannot be read. `is_short`: the head is known to end too early, and is not judged either.
fn verify_content(
    engine: &dyn Engine,
    own: Segment,
    segments: &[Segment],
    head: &Head,
    is_short: bool,
    found: &mut Verification,
) -> Result<()> {
    let (id, last) = (own.conversation, head.next_seq - 1);
    let mut check = Check::new(id, head);
    let (mut keys, mut is_damaged) = (BTreeSet::new(), false);
    engine.read(&[own], own.first..=last.max(own.first), Order::Ascending, &mut |item| {
        match item {
            Reading::Damaged(_) => is_damaged = true,
            Reading::Stray(_) => {}
            Reading::Record { record, .. } => {
                record.item_keys(id, last, &mut keys);
                check.own(record, head);
            }
        }
        ControlFlow::Continue(())
    })?;
    if !is_damaged && stored::item_keys(engine, id, last)? != keys {
        found.problems.push(Problem::of(id, "the index of its item ids is not what its entries give"));
    }
    engine.read(segments, 1..=last, Order::Ascending, &mut |item| {
        match item {
            Reading::Damaged(_) => is_damaged = true,
            Reading::Stray(_) => {}
            Reading::Record { record, last, .. } => check.read(record, last, found),
        }
        ControlFlow::Continue(())
    })?;
    if is_damaged || is_short {
        check.damaged();
    }
    check.end(found);
    Ok(())
}

fn verify_receipts(engine: &dyn Engine, id: ConversationId, head: &Head, found: &mut Verification) -> Result<()> {
    let unproved = stored::unproved_receipts(engine, id, head)?;
    let problem = |_| Problem::of(id, "an idempotency record is damaged, or is not of the entries that it names");
    found.problems.extend(unproved.into_iter().map(problem));
    Ok(())
}

/// The entries of deleted conversations that forks read.
fn verify_deleted(core: &Core, found: &mut Verification) -> Result<()> {
    for id in stored::conversations_with(&*core.engine, key::TOMBSTONE)? {
        let mut passing = Verification::default();
        verify_shared(core, id, &mut passing)?;
        if !passing.problems.is_empty() {
            settled(core, id, || verify_shared(core, id, found))?;
        }
    }
    Ok(())
}

fn verify_shared(core: &Core, id: ConversationId, found: &mut Verification) -> Result<()> {
    let key = key::tombstone(id);
    let Some(value) = core.engine.get(&key)? else { return Ok(()) };
    readable(id, Tombstone::open(&key, &value), found)?;
    let Some(tombstone) = readable(id, stored::tombstone(&*core.engine, id), found)?.flatten() else {
        found.problems.push(Problem::of(id, "its tombstone is of an earlier conversation of the same name"));
        return Ok(());
    };
    let Some(last) = stored::forks(&*core.engine, id)?.into_iter().map(|fork| fork.at_seq).max() else { return Ok(()) };
    let first = tombstone.first_seq();
    let through = u64::MAX;
    let shared = Segment { conversation: id, first, last, incarnation: tombstone.incarnation, through };
    verify_records(&*core.engine, shared, None, found)
}

fn verify_fork_points(core: &Core, found: &mut Verification) -> Result<()> {
    for (parent, child) in stored::doubtful_fork_points(&*core.engine)? {
        // A fork may just have been created, or deleted.
        let _held = core.families.hold(&[parent, child])?;
        found.problems.extend(stored::fork_point_fault(&*core.engine, parent, child)?.map(|fault| match fault {
            Fault::Missing(_) => Problem::of(child, "the conversation that it was forked from does not know of it"),
            Fault::Stray => Problem::of(parent, format!("it knows of the fork {child}, which is not there")),
        }));
    }
    Ok(())
}

fn verify_indexes(core: &Core, found: &mut Verification) -> Result<()> {
    for kind in key::INDEXES {
        verify_index(core, kind, found)?;
    }
    Ok(())
}

fn verify_index(core: &Core, kind: u8, found: &mut Verification) -> Result<()> {
    let mut odd = Vec::new();
    let mut result = Ok(());
    core.engine.scan(&[kind]..&key::after(&[kind]), Order::Ascending, &mut |key, value| {
        let Some(id) = key::conversation(key) else {
            found.problems.push(Problem::of_store("a key of an index of conversations cannot be read"));
            return ControlFlow::Continue(());
        };
        if !value.is_empty() {
            found.problems.push(Problem::of(id, "its place in an index of conversations is damaged"));
        }
        match damage_of(core.catalogue.head_for_list(id)) {
            Ok(Ok(Some(head))) if index_keys(id, &head).iter().any(|index| *index == *key) => {}
            Ok(_) => odd.push((key.to_vec(), id)),
            Err(error) => {
                result = Err(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    result?;
    for (key, id) in odd {
        settled(core, id, || {
            let Some(head) = readable(id, core.catalogue.head_for_list(id), found)? else { return Ok(()) };
            let detail = match (core.engine.get(&key)?, head) {
                (None, _) => return Ok(()),
                (_, Some(head)) if index_keys(id, &head).contains(&key) => return Ok(()),
                (_, Some(_)) => "its place in an index of conversations is wrong",
                (_, None) => "it is in an index of conversations, but has no head",
            };
            found.problems.push(Problem::of(id, detail));
            Ok(())
        })?;
    }
    Ok(())
}

/// `heads`: the conversations that were checked.
fn verify_orphans(core: &Core, heads: &BTreeSet<ConversationId>, found: &mut Verification) -> Result<()> {
    for (kind, detail) in DEPENDENTS {
        for id in stored::conversations_with(&*core.engine, *kind)?.difference(heads) {
            settled(core, *id, || {
                let has_head = core.engine.get(&key::head(*id))?.is_some();
                let is_deleted = core.engine.get(&key::tombstone(*id))?.is_some();
                if !has_head && !is_deleted && stored::has_any(&*core.engine, &key::prefix(*kind, *id))? {
                    found.problems.push(Problem::of(*id, *detail));
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Whether there is damage past the last seq of a segment.
fn is_after(error: &Error, last: u64) -> bool {
    matches!(error, Error::Corrupt { seq: Some(seq), .. } if *seq > last)
}

/// What was read, or none if damage prevented it: that is a problem.
fn readable<T>(id: ConversationId, read: Result<T>, found: &mut Verification) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error @ (Error::Corrupt { .. } | Error::UnsupportedVersion { .. })) => {
            found.problems.push(Problem::from_error(id, &error));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
