//! Messages as they were appended, to a conversation that makes sense: repaired on the way out, never in the log.
//!
//! Pure, idempotent, deterministic; a clean conversation comes out unchanged with an empty report. The rules run in the
//! order of [`RULES`]. To add one: write a file with a function of that shape, add a row here, add what it reports to
//! `report/`, and add to `clean` when it has nothing to do.

mod clean;
mod pairing;
mod placeholder;
mod placement;
mod removals;
mod site;
mod steps;

use super::group::StoredMessage;
use super::report::ReportLine;

pub(crate) use pairing::Calls;
pub(crate) use placeholder::{NOT_RUN, OUTCOME_UNKNOWN};
pub(crate) use placement::{first_pending, is_cut_off, speaks};
pub(crate) use removals::is_content;
pub(crate) use site::Site;
pub(crate) use steps::parted;

type Reconcile = fn(Vec<StoredMessage>, &mut Vec<ReportLine>) -> Vec<StoredMessage>;

/// The rules. Each gets what the rules before it left. Once results have left their messages, some messages may be
/// empty.
const RULES: &[Reconcile] = &[
    removals::error_chunks,
    removals::empty_messages,
    steps::part,
    placement::place_results,
    removals::empty_messages,
];

/// Reconciles messages that are in order of their index.
pub(crate) fn reconcile(messages: Vec<StoredMessage>) -> (Vec<StoredMessage>, Vec<ReportLine>) {
    if clean::is_clean(&messages) { (messages, Vec::new()) } else { by_rules(messages) }
}

fn by_rules(messages: Vec<StoredMessage>) -> (Vec<StoredMessage>, Vec<ReportLine>) {
    let mut report = Vec::new();
    let messages = RULES.iter().fold(messages, |messages, rule| rule(messages, &mut report));
    (messages, report)
}
