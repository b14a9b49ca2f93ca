//! The messages of a request, as they were given and as they were rendered: the stretches in which they differ, and whether each is
//! made.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::value::RawValue;

use super::align::{Reading, Stretch, align};
use super::outline::{Outline, Part};
use super::said::{Unit, Units};
use crate::json;
use crate::json::fields::Fields;
use crate::provider::target::Target;

/// How deep a message may be nested, which is in a list in a request: a request that is nested 128 deep cannot be judged.
const DEEPEST: usize = 125;

/// The messages.
#[derive(Debug)]
pub(super) struct List<'a> {
    outline: Outline<'a>,
    readings: Vec<Reading>,
    pub(super) rendered: Vec<&'a RawValue>,
    /// What each of them says.
    made: Vec<Reading>,
    moved: Vec<Option<usize>>,
    /// Of the moved items, those that are spelled as they were rendered.
    pub(super) respelled: HashSet<usize>,
    pub(super) pieces: Vec<Piece>,
}

/// A stretch of the messages, and whether it is as it was rendered, and why.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) stretch: Stretch,
    pub(super) why: Option<String>,
}

/// The piece that a written message is of, and which rendered one it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) piece: usize,
    pub(super) made: Option<usize>,
}

impl<'a> List<'a> {
    pub(super) fn new(target: Target, outline: Outline<'a>, rendered: Vec<&'a RawValue>) -> Self {
        let readings: Vec<Reading> =
            outline.members.iter().map(|member| Reading::of_item(target, member.value)).collect();
        let keys: Vec<u64> = readings.iter().map(|reading| reading.key).collect();
        let made: Vec<Reading> = rendered.iter().map(|item| Reading::of_item(target, item)).collect();
        let others: Vec<u64> = made.iter().map(|reading| reading.key).collect();
        let aligned = align(&keys, &others);
        let mut pieces = Vec::new();
        for stretch in aligned.stretches {
            let items = outline.members.get(stretch.given.clone()).unwrap_or_default();
            let others = rendered.get(stretch.rendered.clone()).unwrap_or_default();
            let alike = items.len() == others.len()
                && items.iter().zip(others).all(|(item, other)| kind(item.value) == kind(other))
                && stretch.rendered.clone().all(|at| aligned.moved.get(at).is_none_or(Option::is_none));
            if alike {
                let pairs = stretch.given.zip(stretch.rendered);
                pieces.extend(pairs.map(|(given, made)| Piece {
                    stretch: Stretch { given: given..given + 1, rendered: made..made + 1, same: stretch.same },
                    why: None,
                }));
            } else {
                pieces.push(Piece { stretch, why: None });
            }
        }
        Self { outline, readings, rendered, made, moved: aligned.moved, respelled: HashSet::new(), pieces }
    }

    /// What a piece says as it was given, and as it was rendered: whole items, and what is in them.
    pub(super) fn said(&self, piece: &Piece) -> (Units, Units) {
        let of = |readings: &[Reading], range: &Range<usize>| {
            let readings = readings.get(range.clone()).unwrap_or_default().iter();
            readings.flat_map(|reading| reading.units.iter().copied().chain([Unit::Said(reading.key)])).collect()
        };
        if piece.stretch.same {
            return (Units::new(), Units::new());
        }
        (of(&self.readings, &piece.stretch.given), of(&self.made, &piece.stretch.rendered))
    }

    /// Whether something that was given there is nested too deep for a request to be judged.
    pub(super) fn is_deep(&self, at: usize) -> bool {
        let given = self.pieces.get(at).map(|piece| piece.stretch.given.clone()).unwrap_or_default();
        let items = self.outline.members.get(given).unwrap_or_default();
        items.iter().any(|member| json::is_deeper(member.value.get(), DEEPEST))
    }

    /// Whether an item that reads the same is spelled otherwise where it was rendered.
    pub(super) fn is_respelled(&self, piece: &Piece) -> bool {
        let given = self.outline.members.get(piece.stretch.given.start).map(|member| member.value.get());
        given != self.rendered.get(piece.stretch.rendered.start).map(|raw| raw.get())
    }

    /// The given item that was moved to this rendered place.
    fn moved_to(&self, made: usize) -> Option<&'a RawValue> {
        let given = self.moved.get(made).copied().flatten()?;
        self.outline.members.get(given).map(|member| member.value)
    }

    /// Spells a moved item as it was rendered. False if it was spelled so before.
    pub(super) fn respell_moved(&mut self, made: usize) -> bool {
        let given = self.moved_to(made).map(RawValue::get);
        let is_other = given.is_some() && given != self.rendered.get(made).map(|raw| raw.get());
        is_other && self.respelled.insert(made)
    }

    /// The text, and whose each item in it is.
    pub(super) fn written(&self) -> (String, Vec<Owner>) {
        let (mut parts, mut owners) = (Vec::new(), Vec::new());
        for (at, piece) in self.pieces.iter().enumerate() {
            if piece.why.is_none() {
                parts.extend(piece.stretch.given.clone().map(Part::Given));
                owners.extend(piece.stretch.given.clone().map(|_| Owner { piece: at, made: None }));
                continue;
            }
            let mut places = piece.stretch.given.clone();
            for made in piece.stretch.rendered.clone() {
                let given = self.moved_to(made).filter(|_| !self.respelled.contains(&made));
                let Some(raw) = given.or_else(|| self.rendered.get(made).copied()) else { continue };
                parts.push(match places.next() {
                    Some(place) => Part::Changed(place, raw.get()),
                    None => Part::New(None, raw.get()),
                });
                owners.push(Owner { piece: at, made: Some(made) });
            }
        }
        (self.outline.written(parts.into_iter()), owners)
    }
}

/// The role or type of an item.
fn kind(item: &RawValue) -> Option<String> {
    let mut fields = Fields::of(item)?;
    fields.string("role").or_else(|| fields.string("type"))
}
