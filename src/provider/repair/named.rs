//! A line for each difference, and none for what was left as it is.

use std::collections::{BTreeSet, HashSet};

use super::edits::{Edits, NEAR};
use crate::history::report::Fact;
use crate::history::{ReportLine, Rule};
use crate::provider::read::parsed::Place;
use crate::provider::target::Target;

/// Of the lines on what was rendered, those on what was written again; and a line for each other difference.
pub(super) fn named(lines: Vec<ReportLine>, places: &[Place], edits: &Edits<'_>, target: Target) -> Vec<ReportLine> {
    let changed = edits.pieces().iter().filter(|piece| piece.why.is_some());
    let rewritten: HashSet<usize> = changed.clone().flat_map(|piece| piece.stretch.given.clone()).collect();
    // Where messages were put in, or written again.
    let begins: BTreeSet<usize> = changed.clone().map(|piece| piece.stretch.given.start).collect();
    let (mut named, mut reported) = (Vec::new(), HashSet::new());
    for line in lines {
        let index = line.message_index.and_then(|index| usize::try_from(index).ok());
        let is_kept = match index.map(|index| places.get(index).and_then(|place| place.items.clone())) {
            None => {
                line.rule == Rule::SurrogateReplaced || changed.clone().next().is_some() || edits.has_other_fields()
            }
            // What a field such as `system` says.
            Some(None) => edits.has_other_fields(),
            Some(Some(items)) => {
                reported.extend(items.clone().filter(|item| rewritten.contains(item)));
                // An answer that was made up comes soon after its call, a bridge beside its message.
                let is_of_call = line.tool_call_id.is_some() || line.rule == Rule::BridgeAdded;
                let answer = begins.range(items.start..items.end + NEAR).next().filter(|_| is_of_call);
                reported.extend(answer);
                items.clone().any(|item| rewritten.contains(&item)) || answer.is_some()
            }
        };
        if is_kept {
            named.push(line);
        }
    }
    let bridged = named.iter().any(|line: &ReportLine| line.rule == Rule::BridgeAdded);
    let begun = named.iter().any(|line| line.rule == Rule::TurnMade && line.message_index.is_none());
    for piece in changed {
        let given = &piece.stretch.given;
        let around = given.start.saturating_sub(1)..given.end.max(given.start + 1);
        let is_told = if given.is_empty() {
            let is_ends = bridged && given.start == edits.readings().len() || begun && given.start == 0;
            is_ends || around.clone().any(|at| reported.contains(&at))
        } else {
            given.clone().any(|at| reported.contains(&at))
        };
        if is_told {
            continue;
        }
        let list = target.wire().messages;
        let (count, why) = (given.len(), piece.why.as_deref().unwrap_or_default());
        let fact = match (given.is_empty(), piece.stretch.rendered.is_empty()) {
            (true, _) => Fact::ItemsAdded { why },
            (_, true) => Fact::ItemsRemoved { count, why },
            _ => Fact::ItemsRebuilt { count, why },
        };
        named.push(ReportLine::new(fact).at(format!("{list}[{}]", given.start)));
    }
    named
}
