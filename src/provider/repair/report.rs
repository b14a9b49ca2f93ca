//! The lines of a repair: where they belong, one for each difference, and those for unknown fields that were lost.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::value::RawValue;

use super::edits::{Edits, NEAR};
use crate::history::report::Fact;
use crate::history::{ReportLine, Rule, StoredMessage};
use crate::json::compact;
use crate::json::fields::{Fields, array};
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

/// Adds the places to the lines that name a message: paths into the request that the messages were read from.
pub(super) fn place(lines: &mut [ReportLine], places: &[Place]) {
    let position = |index: u64| usize::try_from(index).ok();
    for line in lines.iter_mut().filter(|line| line.place.is_none()) {
        let Some(place) = line.message_index.and_then(position).and_then(|message| places.get(message)) else {
            continue;
        };
        let chunk = line.chunk_index.map(u64::from).and_then(position).and_then(|chunk| place.chunk(chunk));
        line.place = Some(chunk.unwrap_or_else(|| place.whole()));
    }
}

/// A field that is not known, and the line that it gets if it does not reach the prompt.
pub(super) struct Unknown<'a> {
    name: &'a str,
    value: &'a str,
    line: ReportLine,
}

/// The unknown fields of messages and chunks.
pub(super) fn unknown_fields(messages: &[StoredMessage]) -> Vec<Unknown<'_>> {
    let mut unknown = Vec::new();
    for stored in messages {
        unknown.extend(stored.message.metadata.extra.iter().map(|(name, json)| Unknown {
            name,
            value: json.as_str(),
            line: ReportLine::message(gone(name), stored),
        }));
        for (at, chunk) in stored.message.chunks.iter().enumerate() {
            unknown.extend(chunk.extra.iter().map(|(name, json)| Unknown {
                name,
                value: json.as_str(),
                line: ReportLine::chunk(gone(name), stored, at),
            }));
        }
    }
    unknown
}

/// What is said of a field that does not reach the prompt.
fn gone(name: &str) -> Fact<'_> {
    let marks = ["cache_control", "prompt_cache_breakpoint"];
    if marks.contains(&name) {
        return Fact::FieldUnfit {
            name,
            problem: "the target refuses the mark there, or its block says something else now",
        };
    }
    Fact::FieldUnknown { name }
}

/// Lines for those unknown fields that are not in the request, or not as often: several blocks may have the same mark.
pub(super) fn left_out(unknown: Vec<Unknown<'_>>, request: &RawValue) -> Vec<ReportLine> {
    let (mut written, mut given) = (HashMap::new(), HashMap::new());
    if !unknown.is_empty() {
        collect(request, &mut written);
    }
    let field =
        |unknown: &Unknown<'_>| (Cow::Owned(unknown.name.to_owned()), Cow::Owned(compact(unknown.value).into_owned()));
    for unknown in &unknown {
        *given.entry(field(unknown)).or_insert(0_usize) += 1;
    }
    let lost = unknown.into_iter().filter(|unknown| {
        let field = field(unknown);
        given.get(&field) > written.get(&field)
    });
    lost.map(|unknown| unknown.line).collect()
}

/// All fields of all objects, their values without spaces. How deep a request is nested, its renderer and
/// [`Json::MAX_DEPTH`](crate::model::Json) limit.
fn collect<'a>(value: &'a RawValue, written: &mut HashMap<(Cow<'a, str>, Cow<'a, str>), usize>) {
    for (name, field) in Fields::of(value).unwrap_or_default().pairs() {
        collect(field, written);
        *written.entry((name, compact(field.get()))).or_default() += 1;
    }
    if value.get().starts_with('[') {
        array(value).unwrap_or_default().into_iter().for_each(|item| collect(item, written));
    }
}
