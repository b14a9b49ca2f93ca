//! What the model said: its items in their order, then the outputs of its calls.

use std::borrow::Cow;

use super::native::Given;
use super::renderer::Renderer;
use super::request::{Content, Entry, Item, Part, Summary};
use crate::error::Result;
use crate::history::Rule;
use crate::model::{Body, Chunk};
use crate::provider::openai_responses::manner::{NAME, PROVIDER};
use crate::provider::prompt::options::Thinking;
use crate::provider::prompt::turns::{Call, Turn};

/// A chunk, made ready.
#[derive(Debug)]
pub(crate) struct Slot<'a> {
    /// Its position in the message.
    pub(crate) chunk: usize,
    pub(crate) place: Place<'a>,
}

/// What a chunk becomes.
#[derive(Debug)]
pub(crate) enum Place<'a> {
    /// A part of a message.
    Part(Content<'a>),
    /// An item of its own, as the provider wrote it: a message, or what a hosted tool did.
    Own {
        given: Given<'a>,
        hosted: bool,
    },
    Call {
        call: Call<'a>,
        /// The input of a custom tool: text, not JSON.
        input: Option<&'a str>,
        given: Option<Given<'a>>,
    },
    Thought(Thought<'a>),
}

/// Thinking, and the item that may stand for it.
#[derive(Debug)]
pub(crate) struct Thought<'a> {
    pub(crate) text: &'a str,
    pub(crate) opaque: bool,
    pub(crate) item: Option<Reasoning<'a>>,
}

#[derive(Debug)]
pub(crate) enum Reasoning<'a> {
    Given(Given<'a>),
    Made { text: &'a str, encrypted_content: &'a str },
}

/// What the rest of a message becomes.
enum Said<'a> {
    Place(Place<'a>),
    /// It has to follow in a user message.
    Media(Content<'a>),
}

impl<'a> Renderer<'a> {
    pub(crate) fn assistant(&mut self, mut turn: Turn<'a>) -> Result<()> {
        let (mut slots, media) = self.slots(&mut turn);
        let whole = self.place_thinking(&turn, &mut slots);
        let keeps_ids = whole && self.take_ids(&slots);
        let item = |given: &Given<'_>| if keeps_ids { given.whole() } else { given.without_id() };
        let (mut content, mut calls) = (Vec::new(), Vec::new());
        for slot in slots {
            let entry = match slot.place {
                Place::Part(part) => {
                    content.push(part);
                    continue;
                }
                Place::Own { given, hosted } => Entry::Given(if hosted { given.whole() } else { item(&given) }),
                Place::Thought(Thought { item: Some(Reasoning::Given(given)), .. }) => Entry::Given(item(&given)),
                Place::Thought(Thought { item: Some(Reasoning::Made { text, encrypted_content }), .. }) => {
                    let summary = if text.is_empty() { Vec::new() } else { vec![Summary::SummaryText { text }] };
                    Entry::Item(Item::Reasoning { summary, encrypted_content })
                }
                Place::Thought(_) => continue,
                Place::Call { call, input, given } => {
                    let (call_id, name) = (call.id.clone(), call.name.clone());
                    let entry = match (&given, input) {
                        (Some(given), _) => Entry::Given(item(given)),
                        (None, Some(input)) => Entry::Item(Item::CustomToolCall { call_id, name, input }),
                        (None, None) => {
                            Entry::Item(Item::FunctionCall { call_id, name, arguments: call.arguments.clone() })
                        }
                    };
                    calls.push((call, input.is_some()));
                    entry
                }
            };
            self.message("assistant", std::mem::take(&mut content));
            self.input.push(entry);
        }
        self.message("assistant", content);
        for (Call { id: call_id, answer, .. }, custom) in calls {
            let output = self.output(&answer)?;
            self.input.push(Entry::Item(match custom {
                true => Item::CustomToolCallOutput { call_id, output },
                false => Item::FunctionCallOutput { call_id, output },
            }));
        }
        self.message("user", media);
        Ok(())
    }

    /// The chunks in their order; and media, which the model cannot have said.
    fn slots(&mut self, turn: &mut Turn<'a>) -> (Vec<Slot<'a>>, Vec<Content<'a>>) {
        let mut calls = std::mem::take(&mut turn.calls).into_iter().peekable();
        let own = turn.is_by(&[PROVIDER], self.options.model.as_deref());
        let (mut slots, mut media) = (Vec::new(), Vec::new());
        for (at, chunk) in turn.stored.message.chunks.iter().enumerate() {
            let given = Given::of(chunk).filter(|_| own);
            let place = match &chunk.body {
                Body::ToolCall { arguments, .. } => match calls.next_if(|call| call.chunk == at) {
                    Some(call) => {
                        let input =
                            Given::of(chunk).filter(|given| given.is_custom(arguments)).map(|_| arguments.as_str());
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
                    let item = given.filter(Given::is_reasoning).map(Reasoning::Given);
                    // A signature of unknown origin is a stranger's: the provider refuses what it cannot read (OR-31).
                    let is_stated = own && turn.stored.message.metadata.provider.is_some();
                    let item = item.or_else(|| {
                        let encrypted_content = match (signature, redacted) {
                            (Some(data), None) | (None, Some(data)) if is_stated && !data.is_empty() => data,
                            _ => return None,
                        };
                        Some(Reasoning::Made { text, encrypted_content })
                    });
                    let item = item.filter(|_| self.options.thinking == Thinking::Native);
                    Place::Thought(Thought { text, opaque, item })
                }
                _ => match self.said(turn, at, chunk, given) {
                    Some(Said::Place(place)) => place,
                    Some(Said::Media(part)) => {
                        self.note_moved(turn, at);
                        media.push(part);
                        continue;
                    }
                    None => continue,
                },
            };
            slots.push(Slot { chunk: at, place });
        }
        (slots, media)
    }

    /// A chunk that is neither a call nor thinking.
    fn said(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk, given: Option<Given<'a>>) -> Option<Said<'a>> {
        let (name, text) = match &chunk.body {
            Body::Text { text, .. } => ("text", text),
            Body::Refusal { text } => ("refusal", text),
            Body::Opaque { provider, json, .. } => {
                let own = provider == PROVIDER && turn.is_by(&[PROVIDER], self.options.model.as_deref());
                let given = Given::read(json).filter(|given| own && given.is_hosted());
                return match given.filter(|given| self.ids.insert(given.id().unwrap_or_default().to_owned())) {
                    Some(given) => Some(Said::Place(Place::Own { given, hosted: true })),
                    None => {
                        self.note_none(turn, at, chunk);
                        None
                    }
                };
            }
            Body::Image(_) | Body::Audio(_) | Body::File(_) => {
                return Some(match self.part(turn, at, chunk)? {
                    Content::Part(Part::InputText { text }) => {
                        Said::Place(Place::Part(Part::OutputText { text }.into()))
                    }
                    part => Said::Media(part),
                });
            }
            _ => {
                self.note_none(turn, at, chunk);
                return None;
            }
        };
        let place = match given {
            Some(given) if given.is_message(name, text) => Place::Own { given, hosted: false },
            Some(given) if given.is_part(name, text) => Place::Part(Content::Given(given.whole())),
            _ if text.is_empty() => {
                self.note(Rule::LeftOut, turn.stored, at, "an empty text");
                return None;
            }
            _ => {
                self.note_anew(turn, at, chunk);
                if matches!(chunk.body, Body::Text { annotations: Some(_), .. }) {
                    self.note(
                        Rule::LeftOut,
                        turn.stored,
                        at,
                        "annotations are taken as they came only; the text stays",
                    );
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

    /// The input of a custom tool is no JSON, and stays what it is.
    fn keep_input(&mut self, turn: &Turn<'_>, chunk: usize) {
        self.customs.insert((turn.stored.index, turn.stored.chunk_index(chunk)));
    }

    /// A chunk's own block, if it has one of this wire, is not what is sent.
    fn note_anew(&mut self, turn: &Turn<'_>, at: usize, chunk: &Chunk) {
        if chunk.native.as_ref().is_some_and(|native| native.wire == NAME) {
            self.note(Rule::Altered, turn.stored, at, "the item that it came as does not fit here; it is told anew");
        }
    }
}
