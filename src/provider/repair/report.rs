//! The lines of a repair: where they belong, one for each difference, and those for unknown fields that were lost.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::value::RawValue;

use super::edits::{Edits, NEAR};
use super::list::Piece;
use crate::history::report::Fact;
use crate::history::{ReportLine, Rule, Severity, StoredMessage};
use crate::json::compact;
use crate::json::fields::{Fields, array};
use crate::provider::read::parsed::Place;
use crate::provider::target::Target;

/// Of the lines on what was rendered, those on what was written again; and a line for each other difference. A line that has a
/// place has it in what was rendered.
pub(super) fn named(lines: Vec<ReportLine>, places: &[Place], edits: &Edits<'_>, target: Target) -> Vec<ReportLine> {
    let list = target.wire().messages;
    let changed = edits.pieces().iter().filter(|piece| piece.why.is_some());
    let written = edits.places();
    let rewritten: HashSet<usize> = changed.clone().flat_map(|piece| piece.stretch.given.clone()).collect();
    // Where messages were put in, or written again.
    let begins: BTreeSet<usize> = changed.clone().map(|piece| piece.stretch.given.start).collect();
    let (mut named, mut reported) = (Vec::new(), HashSet::new());
    // What was rendered: messages with a line of their own, and those with an answer that was made up.
    let (mut stated, mut answering) = (HashSet::new(), HashSet::new());
    for mut line in lines {
        let made = line.place.take().and_then(|place| made_at(&place, list));
        if let Some(made) = made {
            if let Some(at) = written.get(&made) {
                stated.insert(made);
                line.place = Some(format!("{list}[{at}]"));
                named.push(line);
            }
            continue;
        }
        let index = line.message_index.and_then(|index| usize::try_from(index).ok());
        let is_kept = match index.map(|index| places.get(index).and_then(|place| place.items.clone())) {
            None => {
                line.rule == Rule::SurrogateReplaced || changed.clone().next().is_some() || edits.has_other_fields()
            }
            // What a field such as `system` says.
            Some(None) => edits.has_other_fields(),
            Some(Some(items)) => {
                reported.extend(items.clone().filter(|item| rewritten.contains(item)));
                let id = line.tool_call_id.as_deref().filter(|_| line.severity == Severity::Added);
                match id.map(|id| edits.gain_result(id)) {
                    None => items.clone().any(|item| rewritten.contains(&item)),
                    // An answer that was made up.
                    Some(Some(answers)) => {
                        answering.extend(answers.iter().flat_map(|piece| piece.stretch.rendered.clone()));
                        !answers.is_empty()
                    }
                    // Its id is another one. It comes soon after its call, or is among messages that were written together.
                    Some(None) => {
                        let answer = begins.range(items.start..items.end + NEAR).next();
                        reported.extend(answer);
                        let is_among =
                            |piece: &Piece| piece.stretch.given.len() > 1 && piece.stretch.given.contains(&items.start);
                        answer.is_some() || changed.clone().any(is_among)
                    }
                }
            }
        };
        if is_kept {
            named.push(line);
        }
    }
    for (at, piece) in edits.pieces().iter().enumerate() {
        let Some(why) = piece.why.as_deref() else { continue };
        let (given, made) = (&piece.stretch.given, &piece.stretch.rendered);
        let near = if given.is_empty() { given.start.saturating_sub(1)..given.start + 1 } else { given.clone() };
        let is_stated = |made: usize| answering.contains(&made) || given.is_empty() && stated.contains(&made);
        if near.into_iter().any(|at| reported.contains(&at)) || made.clone().any(is_stated) {
            continue;
        }
        let fact = match (given.is_empty(), made.is_empty()) {
            // It came from where something is left out, or written again.
            (true, _) if edits.is_tied(at) => continue,
            (true, _) => Fact::ItemsAdded { why },
            (_, true) if !edits.is_tied(at) => Fact::ItemsRemoved { count: given.len(), why },
            _ => Fact::ItemsRebuilt { count: given.len(), why },
        };
        named.push(ReportLine::new(fact).at(format!("{list}[{}]", given.start)));
    }
    named
}

/// The item of the list that a place is in.
fn made_at(place: &str, list: &str) -> Option<usize> {
    place.strip_prefix(list)?.strip_prefix('[')?.split_once(']')?.0.parse().ok()
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
