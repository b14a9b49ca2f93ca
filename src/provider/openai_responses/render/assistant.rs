//! What the model said: its items in their order, then the outputs of its calls. Its thinking is items of its own where the
//! provider takes them back, else text, or nothing.

use std::borrow::Cow;
use std::collections::HashSet;

use super::native::NativeItem;
use super::request::{Content, Entry, Item as Written, Part, Summary};
use super::{Parted, Renderer, made_for, source};
use crate::error::Result;
use crate::history::report::{Cited, Fact, IdGone, Thought as Why, Unsent};
use crate::history::{MessageState, ReportLine};
use crate::model::{Body, Chunk};
use crate::provider::openai_responses::manner::{NAME, PROVIDER};
use crate::provider::openai_responses::read::request::{is_given, is_part};
use crate::provider::prompt::foreign::as_text;
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::Thinking;
use crate::provider::prompt::turns::{Call, Reply, Turn, call_id};

/// A chunk, made ready.
#[derive(Debug)]
struct Slot<'a> {
    /// Its position in the message.
    pub(crate) chunk: usize,
    /// The server's item that it is of.
    pub(crate) item: Option<&'a str>,
    pub(crate) place: Place<'a>,
}

/// What a chunk becomes.
#[derive(Debug)]
enum Place<'a> {
    /// A part of a message.
    Part(Content<'a>),
    /// A message of its own, as the provider wrote it.
    Message(NativeItem<'a>),
    /// Any other item of the provider's item.
    Item(Item<'a>),
    Call {
        call: Call<'a>,
        /// The input of a custom tool: text, not JSON.
        input: Option<&'a str>,
        given: Option<NativeItem<'a>>,
    },
    Thought(Thought<'a>),
}

/// An item of the provider's item.
#[derive(Debug)]
pub(super) struct Item<'a> {
    pub(crate) given: NativeItem<'a>,
    /// Whether its id, which ties it to the reasoning before it, goes along.
    pub(crate) with_id: bool,
}

/// Thinking, and the item that may stand for it.
#[derive(Debug)]
struct Thought<'a> {
    pub(crate) text: &'a str,
    pub(crate) opaque: bool,
    /// Whether another provider or model made it.
    pub(crate) foreign: bool,
    pub(crate) item: Option<Reasoning<'a>>,
}

#[derive(Debug)]
enum Reasoning<'a> {
    Native(NativeItem<'a>),
    Made { text: &'a str, encrypted_content: &'a str },
}

/// What the rest of a message becomes.
enum Said<'a> {
    Place(Place<'a>),
    /// It has to follow in a user message.
    Media(Attachment<'a>, Content<'a>),
}

/// A call, whose answer follows the message.
enum Asked<'a> {
    Function { call: Call<'a>, custom: bool },
    Other { chunk: usize, given: NativeItem<'a> },
}

impl<'a> Renderer<'a> {
    pub(super) fn assistant(&mut self, mut turn: Turn<'a>) -> Result<()> {
        let (mut slots, media) = self.slots(&mut turn);
        let whole = self.place_thinking(&turn, &mut slots);
        let keeps_ids = if whole { self.take_ids(&slots) } else { vec![false; slots.len()] };
        let (mut content, mut asked, mut of_item) = (Parted::default(), Vec::new(), None);
        for (slot, keeps_id) in slots.into_iter().zip(keeps_ids) {
            let item = |given: &NativeItem<'_>| if keeps_id { given.whole() } else { given.without_id() };
            let entry = match slot.place {
                Place::Part(part) => {
                    // Parts of two messages are not one message.
                    if slot.item.is_some() && of_item.is_some() && slot.item != of_item {
                        self.message("assistant", &turn, std::mem::take(&mut content));
                    }
                    of_item = slot.item;
                    content.push(slot.chunk, part);
                    continue;
                }
                Place::Message(given) => Entry::Raw(item(&given)),
                Place::Item(item) => {
                    let given = &item.given;
                    if is_given(given.kind(), given.text("execution") == "client") && !self.is_answer(slot.chunk) {
                        self.message("assistant", &turn, std::mem::take(&mut content));
                        self.answers(&turn, std::mem::take(&mut asked))?;
                    }
                    let json = item.json();
                    asked.push(Asked::Other { chunk: slot.chunk, given: item.given });
                    Entry::Raw(json)
                }
                Place::Thought(Thought { item: Some(Reasoning::Native(given)), text, .. }) => {
                    if given.goes_by_id() {
                        if !keeps_id {
                            self.note(Fact::ThinkingRemoved { why: Why::ByServer, text }, turn.stored, slot.chunk);
                            continue;
                        }
                        self.note(Fact::KeptByServer, turn.stored, slot.chunk);
                    }
                    Entry::Raw(item(&given))
                }
                Place::Thought(Thought { item: Some(Reasoning::Made { text, encrypted_content }), .. }) => {
                    let summary = if text.is_empty() { Vec::new() } else { vec![Summary::SummaryText { text }] };
                    Entry::Item(Written::Reasoning { summary, encrypted_content })
                }
                Place::Thought(_) => continue,
                Place::Call { call, input, given } => {
                    let (call_id, name) = (call.id.clone(), call.name.clone());
                    let entry = match (&given, input) {
                        (Some(given), _) => Entry::Raw(item(given)),
                        (None, Some(input)) => Entry::Item(Written::CustomToolCall { call_id, name, input }),
                        (None, None) => {
                            Entry::Item(Written::FunctionCall { call_id, name, arguments: call.arguments.clone() })
                        }
                    };
                    asked.push(Asked::Function { call, custom: input.is_some() });
                    entry
                }
            };
            self.message("assistant", &turn, std::mem::take(&mut content));
            self.input.push((entry, source(turn.stored, slot.chunk)));
        }
        self.message("assistant", &turn, content);
        self.answers(&turn, asked)?;
        self.message("user", &turn, media);
        Ok(())
    }

    /// The outputs of calls. An item that the caller gave follows those of the calls before it, as it does when it is read.
    fn answers(&mut self, turn: &Turn<'a>, asked: Vec<Asked<'a>>) -> Result<()> {
        for asked in asked {
            match asked {
                Asked::Function { call: Call { id: call_id, answer, chunk, .. }, custom } => {
                    let output = self.output(&answer)?;
                    let entry = Entry::Item(match custom {
                        true => Written::CustomToolCallOutput { call_id, output },
                        false => Written::FunctionCallOutput { call_id, output },
                    });
                    let source = match answer {
                        Reply::Result { stored, chunk, .. } if stored.state != MessageState::Synthetic => {
                            source(stored, chunk)
                        }
                        Reply::Result { .. } | Reply::Made(_) => made_for(turn.stored, chunk),
                    };
                    self.input.push((entry, source));
                }
                Asked::Other { chunk, given } => self.answer(turn, chunk, &given),
            }
        }
        Ok(())
    }

    /// The chunks in their order; and media, which the model cannot have said.
    fn slots(&mut self, turn: &mut Turn<'a>) -> (Vec<Slot<'a>>, Parted<'a>) {
        let mut calls = std::mem::take(&mut turn.calls).into_iter().peekable();
        let whose = turn.whose(self.manner.providers, self.options.model.as_deref());
        let is_providers = turn.is_by(self.manner.providers, None);
        let (mut slots, mut media) = (Vec::new(), Parted::default());
        let chunks = &turn.stored.message.chunks;
        // Up to here the chunks are said.
        let mut said = 0;
        for (at, chunk) in chunks.iter().enumerate() {
            if at < said {
                continue;
            }
            let item = chunk.id.as_deref().filter(|_| is_providers);
            let given = NativeItem::of(chunk)
                .filter(|_| is_providers)
                .map(|given| given.taken_by(self.manner, self.options.model.as_deref()));
            let given = match given.map(|given| (given.message_of(chunks.get(at..).unwrap_or_default()), given)) {
                Some((parts, given)) if parts > 0 => {
                    said = at + parts;
                    slots.push(Slot { chunk: at, item, place: Place::Message(given) });
                    continue;
                }
                given => given.map(|(_, given)| given),
            };
            let place = match &chunk.body {
                Body::ToolCall { arguments, .. } => match calls.next_if(|call| call.chunk == at) {
                    Some(call) => {
                        let input = NativeItem::of(chunk)
                            .filter(|given| given.is_custom(arguments))
                            .map(|_| arguments.as_str());
                        let given = given.filter(|given| given.is_call(&call, input));
                        if input.is_some() {
                            self.keep_input(turn, at);
                        }
                        if given.is_none() {
                            self.note_anew(turn, at, chunk);
                        }
                        Place::Call { call, input, given }
                    }
                    None => continue,
                },
                Body::ToolResult { .. } => continue,
                Body::Thinking { text, signature, redacted } => {
                    let opaque = signature.is_some() || redacted.is_some();
                    let given = given.filter(|given| whose.is_own() && given.is_reasoning(text));
                    let came_here = given.is_some();
                    let item = given.map(Reasoning::Native).or_else(|| {
                        let encrypted_content = match (signature, redacted) {
                            (Some(data), None) | (None, Some(data)) if whose.is_own() && !data.is_empty() => data,
                            _ => return None,
                        };
                        Some(Reasoning::Made { text, encrypted_content })
                    });
                    if item.is_some() && !came_here && self.options.thinking == Thinking::Native {
                        self.report.extend(whose.note(turn.stored, at));
                    }
                    let item = item.filter(|_| self.options.thinking == Thinking::Native);
                    Place::Thought(Thought { text, opaque, foreign: !whose.is_own(), item })
                }
                _ => match self.said(turn, at, chunk, given) {
                    Some(Said::Place(place)) => place,
                    Some(Said::Media(attachment, part)) => {
                        self.note_moved(turn, at);
                        media.push(at, Part::InputText { text: Cow::Borrowed(attachment.by_assistant()) }.into());
                        media.push(at, part);
                        Place::Part(Part::OutputText { text: Cow::Borrowed(attachment.moved()) }.into())
                    }
                    None => continue,
                },
            };
            slots.push(Slot { chunk: at, item, place });
        }
        (slots, media)
    }

    /// A chunk that is neither a call nor thinking.
    fn said(
        &mut self,
        turn: &Turn<'a>,
        at: usize,
        chunk: &'a Chunk,
        given: Option<NativeItem<'a>>,
    ) -> Option<Said<'a>> {
        let (name, text) = match &chunk.body {
            Body::Text { text, .. } => ("text", text),
            Body::Refusal { text } => ("refusal", text),
            Body::Opaque { .. } => return self.opaque(turn, at, chunk).map(Said::Place),
            body => {
                let Some(attachment) = Attachment::of(body) else {
                    self.note_none(turn, at, chunk);
                    return None;
                };
                return Some(match self.part(turn, at, chunk)? {
                    Content::Part(Part::InputText { text }) => {
                        Said::Place(Place::Part(Part::OutputText { text }.into()))
                    }
                    part => Said::Media(attachment, part),
                });
            }
        };
        let place = match given {
            Some(given) if given.is_part(name, text) => Place::Part(Content::Raw(given.whole())),
            _ if text.is_empty() => {
                self.note(Fact::TextEmpty, turn.stored, at);
                return None;
            }
            _ => {
                self.note_anew(turn, at, chunk);
                if matches!(chunk.body, Body::Text { annotations: Some(_), .. }) {
                    self.note(Fact::AnnotationsRemoved(Cited::OwnOnly), turn.stored, at);
                }
                let part = match name {
                    "refusal" => Part::Refusal { refusal: text },
                    _ => Part::OutputText { text: Cow::Borrowed(text) },
                };
                Place::Part(part.into())
            }
        };
        Some(Said::Place(place))
    }

    /// The provider's own item or part goes back as it came; another's is written as text, if it has any.
    fn opaque(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Place<'a>> {
        let Body::Opaque { provider, kind, json } = &chunk.body else { return None };
        if provider == PROVIDER && turn.is_by(self.manner.providers, None) {
            let given = NativeItem::read(json);
            return match given.filter(|given| is_part(kind) && given.is_part_for("assistant")) {
                Some(part) => Some(Place::Part(Content::Raw(part.whole()))),
                None => self.own_item(turn, at, chunk).map(Place::Item),
            };
        }
        let text = as_text(&chunk.body, turn.stored, at, &mut self.report)?;
        Some(Place::Part(Part::OutputText { text: Cow::Owned(text) }.into()))
    }

    /// The input of a custom tool is no JSON, and stays what it is.
    fn keep_input(&mut self, turn: &Turn<'_>, chunk: usize) {
        self.customs.insert((turn.stored.index, turn.stored.chunk_index(chunk)));
    }

    /// A chunk's own block, if it has one of this wire, is not what is sent.
    fn note_anew(&mut self, turn: &Turn<'_>, at: usize, chunk: &Chunk) {
        if chunk.native.as_ref().is_some_and(|native| native.wire == NAME) {
            self.note(Fact::Rebuilt { what: "item" }, turn.stored, at);
        }
    }
}

impl<'a> Renderer<'a> {
    /// Keeps the reasoning that an item of the same message follows (OR-08), in the order in which they are sent. Says whether
    /// all of it is kept: only then do the server's ids stand with what they belong to (OR-09).
    fn place_thinking(&mut self, turn: &Turn<'a>, slots: &mut Vec<Slot<'a>>) -> bool {
        self.put_reasoning_first(turn, slots);
        let moved = if self.manner.calls_last { put_calls_last(slots) } else { HashSet::new() };
        if !keep_followed(slots) {
            self.loosen(turn, slots);
            keep_followed(slots);
        }
        let whole = slots.iter().all(|slot| !matches!(slot.place, Place::Thought(Thought { item: None, .. })));
        self.place_left(turn, slots);
        for slot in slots.iter().filter(|slot| moved.contains(&slot.chunk)) {
            self.note(Fact::OutputsJoined, turn.stored, slot.chunk);
        }
        whole
    }

    /// Reasoning at the end of a message with calls, which nothing of the message follows, is what led to the calls: an answer
    /// begins with its reasoning.
    fn put_reasoning_first(&mut self, turn: &Turn<'_>, slots: &mut [Slot<'a>]) {
        let is_thought = |slot: &Slot<'_>| matches!(slot.place, Place::Thought(_));
        let is_whole = |slot: &&Slot<'_>| match &slot.place {
            Place::Thought(Thought { item: Some(Reasoning::Native(given)), .. }) => given.has("encrypted_content"),
            _ => false,
        };
        let count = slots.iter().rev().take_while(is_whole).count();
        let before = slots.iter().rev().skip(count);
        if before.clone().any(is_thought) {
            return;
        }
        let mut calls =
            before.filter_map(|slot| if let Place::Call { call, .. } = &slot.place { Some(call) } else { None });
        let Some(id) = calls.next_back().map(|call| call_id(turn.stored, call.chunk).to_owned()) else { return };
        slots.rotate_right(count);
        for slot in slots.iter().take(count) {
            let line = ReportLine::chunk(Fact::OutputsJoined, turn.stored, slot.chunk);
            self.report.push(line.with_tool_call_id(&id));
        }
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
            let Place::Item(item) = &mut slot.place else { return true };
            let stays = item.given.id().is_none() || item.given.may_lose_id();
            if stays && item.with_id && item.given.id().is_some() {
                let fact = Fact::IdRemoved { kind: item.given.kind(), why: IdGone::WithReasoning };
                self.note(fact, turn.stored, slot.chunk);
            }
            item.with_id = false;
            if !stays {
                let fact = Fact::Removed { kind: item.given.kind(), why: Unsent::WithoutReasoning };
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
    fn take_ids(&mut self, slots: &[Slot<'a>]) -> Vec<bool> {
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
                Place::Thought(Thought { item: Some(Reasoning::Native(given)), .. }) => {
                    reasoned |= given.id().is_some();
                    given
                }
                Place::Thought(_) => return false,
                Place::Message(given) | Place::Call { given: Some(given), .. } => given,
                Place::Part(_) | Place::Item(_) | Place::Call { given: None, .. } => continue,
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

/// What comes after a call is said before it. Gives the chunks that this moves.
fn put_calls_last(slots: &mut [Slot<'_>]) -> HashSet<usize> {
    let is_call = |slot: &Slot<'_>| matches!(slot.place, Place::Call { .. });
    let after = slots.iter().skip_while(|slot| !is_call(slot));
    let moved = after.filter(|slot| !is_call(slot)).map(|slot| slot.chunk).collect();
    slots.sort_by_key(is_call);
    moved
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
            Place::Item(item) => followed = item.given.is_by_model(),
            _ => followed = true,
        }
    }
    all
}
