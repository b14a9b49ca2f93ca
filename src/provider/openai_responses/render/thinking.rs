//! What becomes of thinking: items of its own where the provider takes them back, else text, or nothing.

use std::borrow::Cow;
use std::collections::HashSet;

use super::assistant::{Place, Reasoning, Slot, Thought};
use super::renderer::Renderer;
use super::request::Part;
use crate::history::report::{Fact, IdGone, Thought as Why, Unsent};
use crate::provider::prompt::options::Thinking;
use crate::provider::prompt::turns::Turn;

impl<'a> Renderer<'a> {
    /// Keeps the reasoning that an item of the same message follows (OR-08). Says whether all of it is kept: only then do
    /// the server's ids stand with what they belong to (OR-09).
    pub(crate) fn place_thinking(&mut self, turn: &Turn<'a>, slots: &mut Vec<Slot<'a>>) -> bool {
        if !keep_followed(slots) {
            self.loosen(turn, slots);
            keep_followed(slots);
        }
        let whole = slots.iter().all(|slot| !matches!(slot.place, Place::Thought(Thought { item: None, .. })));
        self.place_left(turn, slots);
        whole
    }

    /// Thinking that is not kept: in tags, or left out.
    fn place_left(&mut self, turn: &Turn<'a>, slots: &mut Vec<Slot<'a>>) {
        let is_all = slots.iter().all(|slot| matches!(slot.place, Place::Thought(_)));
        let tags = self.options.thinking.tags(is_all);
        slots.retain_mut(|slot| {
            let Place::Thought(Thought { text, opaque, foreign, item: None }) = &slot.place else { return true };
            if tags && !text.is_empty() {
                self.note(self.options.thinking.tagging(), turn.stored, slot.chunk);
                slot.place = Place::Part(Part::OutputText { text: Cow::Owned(Thinking::tagged(text)) }.into());
                return true;
            }
            let otherwise = if *opaque { Why::NothingFollows } else { Why::Unsigned };
            let why = self.options.thinking.why_left_out(text, *opaque, *foreign, otherwise);
            self.note(Fact::ThinkingRemoved { why, text }, turn.stored, slot.chunk);
            false
        });
    }

    /// Takes the ids from items whose reasoning is not kept, and leaves out those that are nothing without.
    fn loosen(&mut self, turn: &Turn<'a>, slots: &mut Vec<Slot<'a>>) {
        slots.retain_mut(|slot| {
            let Place::Own(own) = &mut slot.place else { return true };
            let stays = own.given.id().is_none() || own.given.may_lose_id();
            if stays && own.with_id && own.given.id().is_some() {
                let fact = Fact::IdRemoved { kind: own.given.kind(), why: IdGone::WithReasoning };
                self.note(fact, turn.stored, slot.chunk);
            }
            own.with_id = false;
            if !stays {
                let fact = Fact::Removed { kind: own.given.kind(), why: Unsent::WithoutReasoning };
                self.note(fact, turn.stored, slot.chunk);
                self.drop_answer(slot.chunk);
            }
            stays
        });
        // An answer in the same message goes with its call.
        let left: HashSet<usize> = slots.iter().map(|slot| slot.chunk).collect();
        slots.retain(|slot| {
            let call = self.pairs.calls.get(&(self.at, slot.chunk));
            call.is_none_or(|(turn, chunk)| *turn != self.at || left.contains(chunk))
        });
    }

    /// Which items of a message keep the server's ids. Each step decides for itself: its reasoning, and what follows that
    /// before the next reasoning. What comes before the first reasoning belongs to the first step.
    pub(crate) fn take_ids(&mut self, slots: &[Slot<'a>]) -> Vec<bool> {
        let is_thought = |slot: &Slot<'_>| matches!(slot.place, Place::Thought(_));
        let mut has_thought = false;
        let steps = slots.chunk_by(|before, after| {
            has_thought |= is_thought(before);
            !has_thought || is_thought(before) || !is_thought(after)
        });
        steps.flat_map(|step| vec![self.take_ids_of(step); step.len()]).collect()
    }

    /// Takes the server's ids of a step's items, if its reasoning has one, what is said after it has one too (OR-08), and
    /// none of them was used before (OR-06).
    fn take_ids_of(&mut self, slots: &[Slot<'a>]) -> bool {
        let (mut reasoned, mut ids) = (false, Vec::new());
        let has_id = |slot: &Slot<'_>| match &slot.place {
            Place::Message(given) => given.id().is_some(),
            Place::Part(_) => false,
            _ => true,
        };
        let parted = |pair: &[Slot<'_>]| match pair {
            [before, after] => matches!(before.place, Place::Thought(_)) && !has_id(after),
            _ => false,
        };
        if self.manner.openais_items && slots.windows(2).any(parted) {
            return false;
        }
        for slot in slots {
            let given = match &slot.place {
                Place::Thought(Thought { item: Some(Reasoning::Given(given)), .. }) => {
                    reasoned |= given.id().is_some();
                    given
                }
                Place::Thought(_) => return false,
                Place::Message(given) | Place::Call { given: Some(given), .. } => given,
                Place::Part(_) | Place::Own(_) | Place::Call { given: None, .. } => continue,
            };
            ids.extend(given.id().map(str::to_owned));
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        let free = reasoned && ids.len() == count && ids.iter().all(|id| !self.ids.contains(id));
        if free {
            self.ids.extend(ids);
        }
        free
    }
}

/// Drops the items of thinking that nothing follows. Says whether all thinking is kept.
fn keep_followed(slots: &mut [Slot<'_>]) -> bool {
    let (mut followed, mut all) = (false, true);
    for slot in slots.iter_mut().rev() {
        match &mut slot.place {
            Place::Thought(thought) => {
                if !followed {
                    thought.item = None;
                }
                all &= thought.item.is_some();
            }
            Place::Own(own) => followed = own.given.is_by_model(),
            _ => followed = true,
        }
    }
    all
}
