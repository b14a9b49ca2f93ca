//! A line for each difference, and none for what was left as it is.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::edits::{Edits, NEAR};
use crate::history::{ReportLine, Rule, StoredMessage};
use crate::model::Role;
use crate::provider::target::Target;

/// Of the lines on what was rendered, those on what was written anew; and a line for each other difference.
pub(super) fn named(
    lines: Vec<ReportLine>,
    messages: &[StoredMessage],
    edits: &Edits<'_>,
    target: Target,
) -> Vec<ReportLine> {
    let changed = edits.pieces().iter().filter(|piece| piece.why.is_some());
    let anew: HashSet<usize> = changed.clone().flat_map(|piece| piece.stretch.given.clone()).collect();
    // Where messages were put in, or written anew.
    let begins: BTreeSet<usize> = changed.clone().map(|piece| piece.stretch.given.start).collect();
    let items = items_of(messages, edits);
    let (mut named, mut told) = (Vec::new(), HashSet::new());
    for line in lines {
        let index = line.message_index.and_then(|index| usize::try_from(index).ok());
        let is_kept = match index.map(|index| items.get(index).cloned().flatten()) {
            None => {
                line.rule == Rule::SurrogateReplaced || changed.clone().next().is_some() || edits.has_other_fields()
            }
            // What a field such as `system` says.
            Some(None) => edits.has_other_fields(),
            Some(Some(items)) => {
                told.extend(items.clone().filter(|item| anew.contains(item)));
                // An answer that was made up stands soon behind its call, a bridge beside its message.
                let is_of_call = line.tool_call_id.is_some() || line.rule == Rule::BridgeAdded;
                let answer = begins.range(items.start..items.end + NEAR).next().filter(|_| is_of_call);
                told.extend(answer);
                items.clone().any(|item| anew.contains(&item)) || answer.is_some()
            }
        };
        if is_kept {
            named.push(line);
        }
    }
    for piece in changed {
        let given = &piece.stretch.given;
        let around = given.start.saturating_sub(1)..given.end.max(given.start + 1);
        let is_told = if given.is_empty() {
            around.clone().any(|at| told.contains(&at))
        } else {
            given.clone().any(|at| told.contains(&at))
        };
        if is_told {
            continue;
        }
        let list = target.wire().messages;
        let place = match given.len() {
            0 => format!("before `{list}[{}]`", given.start),
            1 => format!("`{list}[{}]`", given.start),
            _ => format!("`{list}[{}]` to `[{}]`", given.start, given.end - 1),
        };
        let (rule, done) = match (given.is_empty(), piece.stretch.rendered.is_empty()) {
            (true, _) => (Rule::BridgeAdded, "a message was added"),
            (_, true) => (Rule::LeftOut, "left out"),
            _ => (Rule::Altered, "written anew"),
        };
        let why = piece.why.as_deref().unwrap_or_default();
        named.push(ReportLine::new(rule, format!("{place}: {done}: {why}")));
    }
    named
}

/// For each message that was read, the items that it was read from; `None` if from another field of the request.
fn items_of(messages: &[StoredMessage], edits: &Edits<'_>) -> Vec<Option<Range<usize>>> {
    let readings = edits.readings();
    let chunks = |messages: &[StoredMessage]| messages.iter().map(|stored| stored.message.chunks.len()).sum::<usize>();
    let of_items: usize = readings.iter().map(|reading| reading.chunks).sum();
    let by_field = |first: &StoredMessage| first.message.role == Role::System && chunks(messages) > of_items;
    let first = usize::from(messages.first().is_some_and(by_field));
    let mut items = vec![None; first];
    if messages.len() - first == readings.len() {
        items.extend((0..readings.len()).map(|at| Some(at..at + 1)));
        return items;
    }
    // Several items may be one message, or one item several: their chunks stand in the same order.
    let (mut at, mut left) = (0, readings.first().map_or(0, |reading| reading.chunks));
    for stored in messages.iter().skip(first) {
        let start = at;
        let mut wanted = stored.message.chunks.len();
        while wanted > left && at + 1 < readings.len() {
            wanted -= left;
            at += 1;
            left = readings.get(at).map_or(0, |reading| reading.chunks);
        }
        left = left.saturating_sub(wanted);
        let end = at + 1;
        if left == 0 && end <= readings.len() {
            at = end;
            left = readings.get(at).map_or(0, |reading| reading.chunks);
        }
        items.push(Some(start..end));
    }
    items
}
