//! The marks of what is cached: a block that is written again keeps its mark where it says the same. Without it the next
//! request pays for its whole prefix again.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::value::RawValue;

use crate::json::compact;
use crate::json::fields::{Fields, array};
use crate::provider::check::judge::check;
use crate::provider::target::Target;

const MARK: &str = "cache_control";

/// A block of a request, or a text in the place of blocks.
struct Block<'a> {
    /// Who says it, and its fields without the mark.
    key: String,
    mark: Option<&'a RawValue>,
    place: String,
    raw: &'a RawValue,
}

/// What was rendered, with the marks of the given request on the blocks that say the same: counted from the end, where the
/// marks of a conversation are. Marks that the target refuses are not among them.
pub(super) fn kept(target: Target, given: &RawValue, rendered: Box<RawValue>) -> Box<RawValue> {
    if !given.get().contains(MARK) {
        return rendered;
    }
    let refused = refused_marks(target, given.get());
    let mut marks: HashMap<String, VecDeque<Option<&RawValue>>> = HashMap::new();
    for Block { key, mark, place, .. } in blocks(target, given) {
        let mark = mark.filter(|_| !refused.contains(&format!("{place}.{MARK}")));
        marks.entry(key).or_default().push_back(mark);
    }
    let rendered_blocks = blocks(target, &rendered);
    let last_first = rendered_blocks.iter().rev().map(|Block { key, raw, .. }| {
        let mark = marks.get_mut(key).and_then(VecDeque::pop_back).flatten();
        mark.map(|mark| (*raw, mark))
    });
    let mut marked: Vec<(&RawValue, &RawValue)> = last_first.flatten().collect();
    marked.reverse();
    let (whole, mut text, mut end) = (rendered.get(), String::new(), 0);
    for (raw, mark) in marked {
        let Some(start) = raw.get().as_ptr().addr().checked_sub(whole.as_ptr().addr()) else { continue };
        text.push_str(whole.get(end..start).unwrap_or_default());
        match raw.get().strip_suffix('}') {
            Some(block) => text.push_str(&format!("{block},\"{MARK}\":{mark}}}")),
            None => text.push_str(&format!("[{{\"type\":\"text\",\"text\":{raw},\"{MARK}\":{mark}}}]")),
        }
        end = start + raw.get().len();
    }
    text.push_str(whole.get(end..).unwrap_or_default());
    drop(rendered_blocks);
    // What moved may have put them in another order.
    if !refused_marks(target, &text).is_empty() {
        return rendered;
    }
    RawValue::from_string(text).unwrap_or(rendered)
}

/// The places of the marks that the target refuses.
fn refused_marks(target: Target, request: &str) -> HashSet<String> {
    let mut findings = check(target, request).unwrap_or_default();
    findings.retain(|found| found.level.is_refused() && (found.place.ends_with(MARK) || found.problem.contains(MARK)));
    findings.into_iter().map(|found| found.place).collect()
}

/// All blocks of a request, in order, with their places.
fn blocks(target: Target, request: &RawValue) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let Some(fields) = Fields::of(request) else { return found };
    if let Some(system) = fields.peek("system") {
        add("system", system, "system", &mut found);
    }
    let list = target.wire().messages;
    for (at, message) in fields.peek(list).and_then(array).unwrap_or_default().into_iter().enumerate() {
        let Some(mut message) = Fields::of(message) else { continue };
        let role = message.string("role").unwrap_or_default();
        if let Some(content) = message.peek("content") {
            add(&role, content, &format!("{list}[{at}].content"), &mut found);
        }
    }
    found
}

fn add<'a>(role: &str, content: &'a RawValue, place: &str, found: &mut Vec<Block<'a>>) {
    if content.get().starts_with('"') {
        let key = key(role, [("type", "\"text\""), ("text", content.get())].into_iter());
        return found.push(Block { key, mark: None, place: place.to_owned(), raw: content });
    }
    for (at, raw) in array(content).unwrap_or_default().into_iter().enumerate() {
        let Some(fields) = Fields::of(raw) else { continue };
        let said = fields.present().filter(|(name, _)| *name != MARK).map(|(name, raw)| (name, raw.get()));
        let key = key(role, said);
        found.push(Block { key, mark: fields.peek(MARK), place: format!("{place}[{at}]"), raw });
    }
}

fn key<'a>(role: &str, fields: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut fields: Vec<_> = fields.map(|(name, value)| (name, compact(value))).collect();
    fields.sort_unstable();
    format!("{role} {fields:?}")
}
