//! An answer that the client went on without while it ran.

use uuid::Uuid;

use super::book::{Book, Entry};
use super::plan::Placed;
use super::recorded;
use super::voice::Voice;
use crate::error::Error;
use crate::history::StoredMessage;
use crate::model::Role;
use crate::server::refusal::Refusal;
use crate::store::Store;

/// The most attempts of a call that are looked at.
const ATTEMPTS: usize = 32;

/// Hides the choices of an answer that failed, or was not delivered, if the client went on without it: it asked again, and that
/// call has an answer or runs, or it asked something else.
pub(super) fn hide(
    book: &Book<'_>,
    store: &Store,
    placed: &Placed,
    exchange: Uuid,
    choices: &[Voice],
) -> Result<(), Refusal> {
    let entry = &placed.entry;
    let name = book.own(entry.conversation);
    let is_here = |other: &Entry| other.conversation == entry.conversation && other.from == entry.from;
    let attempts: Vec<Entry> = book.asked(&placed.asked, ATTEMPTS)?.into_iter().filter(is_here).collect();
    let is_choice = |id: Uuid| choices.iter().any(|choice| choice.id == id);
    let mut is_repeated = false;
    // Ids are in the order of time.
    for later in attempts.iter().filter(|other| other.exchange > exchange && !is_choice(other.exchange)) {
        is_repeated |= book.ended(later.exchange)?.is_none_or(|end| end.message.is_some());
    }
    let shown = store.messages(&name, entry.from, ATTEMPTS + choices.len())?;
    for index in choices.iter().filter_map(|choice| choice.message) {
        let Some(stored) = book.message(&name, index)?.filter(recorded::has_failed) else { continue };
        let asks_on = |other: &StoredMessage| other.message.role != Role::Assistant && other.last_seq < stored.last_seq;
        let is_kept = attempts.iter().any(|other| other.kept.contains(&index));
        if is_kept || !is_repeated && !shown.iter().any(asks_on) {
            continue;
        }
        match store.remove(&name, index, None) {
            Ok(_) | Err(Error::NotFound { .. } | Error::BeingWritten { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
