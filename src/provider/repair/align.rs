//! Which items of a list that was rendered are those of the list that was given.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

use super::said::{Units, units};
use crate::model::Body;
use crate::provider::read::parsed::Given;
use crate::provider::target::Target;

/// A stretch of the given list, and what was rendered for it.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) given: Range<usize>,
    pub(super) rendered: Range<usize>,
    /// Whether it is one item, which reads the same in both.
    pub(super) same: bool,
}

/// Two lists, side by side.
#[derive(Debug)]
pub(super) struct Alignment {
    pub(super) stretches: Vec<Stretch>,
    /// For each rendered item, the given one that reads the same, if it is elsewhere.
    pub(super) moved: Vec<Option<usize>>,
}

/// What an item says, whatever its spelling.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// Items that read the same have the same.
    pub(super) key: u64,
    /// What is in it.
    pub(super) units: Units,
    /// Whether something in it could not be read.
    pub(super) is_strange: bool,
}

impl Reading {
    /// Of an item of the list of messages.
    pub(super) fn of_item(target: Target, item: &RawValue) -> Self {
        let list = RawValue::from_string(format!("[{}]", item.get())).ok();
        list.map(|list| Self::of(target, Given::List(&list))).unwrap_or_default()
    }

    /// Of another field of the request, such as `system`.
    pub(super) fn of_field(target: Target, name: &str, value: &RawValue) -> Self {
        let request = format!("{{{}:[],{}:{}}}", Value::from(target.wire().messages), Value::from(name), value.get());
        Self::of(target, Given::Object(&request))
    }

    fn of(target: Target, given: Given<'_>) -> Self {
        let Ok((parsed, _)) = (target.wire().parse)(target, given) else { return Self::default() };
        let mut hash = DefaultHasher::new();
        for message in &parsed.messages {
            (message.role, message.chunks.len()).hash(&mut hash);
            message.chunks.iter().for_each(|chunk| format!("{:?}", chunk.body).hash(&mut hash));
        }
        let chunks = || parsed.messages.iter().flat_map(|message| &message.chunks);
        Self {
            key: hash.finish(),
            units: chunks().flat_map(units).collect(),
            is_strange: !parsed.notes.is_empty() || chunks().any(|chunk| matches!(chunk.body, Body::Opaque { .. })),
        }
    }
}

/// Finds the longest row of items that read the same and stand in the same order. Costs n log n.
pub(super) fn align(given: &[u64], rendered: &[u64]) -> Alignment {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, key) in given.iter().enumerate().rev() {
        places.entry(*key).or_default().push(at);
    }
    let mut moved: Vec<Option<usize>> = rendered.iter().map(|key| places.get_mut(key)?.pop()).collect();
    let row = longest_row(&moved);
    let mut stretches = Vec::new();
    let (mut g, mut r) = (0, 0);
    for (at_rendered, at_given) in row.into_iter().chain([(rendered.len(), given.len())]) {
        if g < at_given || r < at_rendered {
            stretches.push(Stretch { given: g..at_given, rendered: r..at_rendered, same: false });
        }
        if at_given < given.len() {
            stretches.push(Stretch {
                given: at_given..at_given + 1,
                rendered: at_rendered..at_rendered + 1,
                same: true,
            });
            if let Some(pair) = moved.get_mut(at_rendered) {
                *pair = None;
            }
        }
        (g, r) = (at_given + 1, at_rendered + 1);
    }
    Alignment { stretches, moved }
}

/// The longest row of pairs that rises in both.
fn longest_row(pairs: &[Option<usize>]) -> Vec<(usize, usize)> {
    // For each length, the row that ends lowest: the position of its last pair.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (at, given) in pairs.iter().enumerate() {
        let Some(given) = *given else { continue };
        let length = ends.partition_point(|(_, last)| *last < given);
        if let Some(previous) = before.get_mut(at) {
            *previous = length.checked_sub(1).and_then(|length| ends.get(length)).map(|(at, _)| *at);
        }
        match ends.get_mut(length) {
            Some(end) => *end = (at, given),
            None => ends.push((at, given)),
        }
    }
    let mut row = Vec::new();
    let mut next = ends.last().map(|(at, _)| *at);
    while let Some(at) = next {
        row.extend(pairs.get(at).copied().flatten().map(|given| (at, given)));
        next = before.get(at).copied().flatten();
    }
    row.reverse();
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_the_same_stays_and_the_rest_is_told_apart() {
        let shown = |given: &[u64], rendered: &[u64]| {
            let aligned = align(given, rendered);
            let sides = aligned.stretches.iter().map(|of| (of.same, of.given.clone(), of.rendered.clone()));
            (sides.collect::<Vec<_>>(), aligned.moved)
        };
        assert_eq!(shown(&[1, 2], &[1, 2]).0, [(true, 0..1, 0..1), (true, 1..2, 1..2)]);
        // Left out, put in, written again.
        assert_eq!(shown(&[1, 2], &[2]).0, [(false, 0..1, 0..0), (true, 1..2, 0..1)]);
        assert_eq!(shown(&[1], &[1, 2]).0, [(true, 0..1, 0..1), (false, 1..1, 1..2)]);
        assert_eq!(shown(&[1, 2, 3], &[1, 9, 3]).0[1], (false, 1..2, 1..2));
        // Moved to the front.
        let (sides, moved) = shown(&[1, 2, 3], &[3, 1, 2]);
        assert_eq!(sides.first(), Some(&(false, 0..0, 0..1)));
        assert_eq!((sides.last(), moved), (Some(&(false, 2..3, 3..3)), vec![Some(2), None, None]));
    }
}
