//! A conversation as OpenAI Responses takes it, statelessly: all of it in `input`, nothing by reference.
//!
//! System messages stay where they were said, as items of the role system. Only a first one that came as `instructions`
//! is that again.

mod assistant;
mod media;
mod native;
mod thinking;
mod wire;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use serde_json::value::RawValue;

use super::PROVIDER;
use crate::error::{Error, Result};
use crate::history::StoredMessage;
use crate::history::{ReportLine, Rule};
use crate::model::{Body, Chunk, Role};
use crate::provider::attachment::{Attachment, Piece, pieces};
use crate::provider::prompt::{nothing_to_send, written};
use crate::provider::tool_id::{IdRule, NameRule};
use crate::provider::tools::declared;
use crate::provider::turns::{Answer, FAILED_WITHOUT_OUTPUT, Turn, turns};
use crate::provider::{PromptOptions, Target};
use media::Parts;
use native::Given;
use wire::{Content, Entry, Item, Output, Part, Request};

/// OR-13.
const IDS: IdRule = IdRule { min: 1, max: 64, allows: |character| !character.is_control() };
/// OR-16.
const NAMES: NameRule = NameRule::words(128);
/// Characters in one output (OR-26).
const OUTPUT: usize = 10_485_760;

pub(super) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let mut report = Vec::new();
    let mut turns = turns(messages, IDS, NAMES, &mut report).into_iter().peekable();
    let instructions = turns.peek().and_then(instructions);
    if instructions.is_some() {
        turns.next();
    }
    let mut renderer = Renderer { options, report, input: Vec::new(), ids: HashSet::new() };
    for turn in turns {
        match turn.role {
            Role::Assistant => renderer.assistant(turn)?,
            _ => renderer.given(&turn),
        }
    }
    if renderer.input.is_empty() {
        return Err(nothing_to_send(target));
    }
    let tools = declared(&options.tools, NAMES, BTreeSet::new(), &mut renderer.report)?;
    let tools = tools.into_iter().map(Into::into).collect();
    let request = written(&Request { instructions, input: renderer.input, tools })?;
    Ok((request, renderer.report))
}

/// What a message says that came as the request's `instructions`.
fn instructions<'a>(turn: &Turn<'a>) -> Option<&'a str> {
    let [chunk] = turn.stored.message.chunks.as_slice() else { return None };
    let Body::Text { text, annotations: None } = &chunk.body else { return None };
    let given = Given::of(chunk).filter(|given| turn.role == Role::System && given.is_instructions(text));
    given.map(|_| text.as_str()).filter(|text| !text.is_empty())
}

struct Renderer<'a> {
    options: &'a PromptOptions,
    report: Vec<ReportLine>,
    input: Vec<Entry<'a>>,
    /// The server's ids of items that were given back (OR-06).
    ids: HashSet<String>,
}

impl<'a> Renderer<'a> {
    /// A message that is not the model's.
    fn given(&mut self, turn: &Turn<'a>) {
        let (mut content, mut media) = (Vec::new(), Vec::new());
        for (at, chunk) in turn.said() {
            let part = match self.part(turn, at, chunk) {
                Some(part) => part,
                None => continue,
            };
            let is_text = matches!(part, Content::Part(Part::InputText { .. }));
            if is_text || turn.role == Role::User {
                content.push(part);
            } else {
                self.note_moved(turn, at);
                media.push(part);
            }
        }
        let role = if turn.role == Role::System { "system" } else { "user" };
        self.message(role, content);
        self.message("user", media);
    }

    fn part(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Content<'a>> {
        let stored = turn.stored;
        if let Some(part) = given(chunk, input_kinds(&chunk.body)) {
            return Some(part);
        }
        match &chunk.body {
            Body::Text { text, annotations } => {
                if annotations.is_some() {
                    self.note(
                        Rule::LeftOut,
                        stored,
                        at,
                        "only the model's texts have annotations here; the text stays",
                    );
                }
                self.text(turn, at, text).map(Content::Part)
            }
            Body::Refusal { text } => {
                self.note(Rule::Altered, stored, at, "the refusal is text in this prompt");
                self.text(turn, at, text).map(Content::Part)
            }
            Body::Opaque { provider, json, .. } if provider == PROVIDER && turn.role == Role::User => {
                let given = Given::read(json).filter(|given| given.is_input(&["input_image", "input_file"]));
                if given.is_none() {
                    self.note_none(turn, at, chunk);
                }
                given.map(|given| Content::Given(given.whole()))
            }
            body => match Attachment::of(body) {
                Some(attachment) => {
                    let part = attachment.place(&Parts, stored, at, &mut self.report);
                    Some(Content::Part(part.unwrap_or_else(|text| Part::InputText { text })))
                }
                None => {
                    self.note_none(turn, at, chunk);
                    None
                }
            },
        }
    }

    fn text(&mut self, turn: &Turn<'a>, at: usize, text: &'a str) -> Option<Part<'a>> {
        if text.is_empty() {
            self.note(Rule::LeftOut, turn.stored, at, "an empty text");
            return None;
        }
        Some(Part::InputText { text: Cow::Borrowed(text) })
    }

    fn message(&mut self, role: &'static str, content: Vec<Content<'a>>) {
        if !content.is_empty() {
            self.input.push(Entry::Item(Item::Message { role, content }));
        }
    }

    /// What a call is answered (OR-26).
    fn output(&mut self, answer: &Answer<'a>) -> Result<Output<'a>> {
        let (stored, chunk, output, is_error) = match *answer {
            Answer::Made(text) => return Ok(Output::Text(Cow::Borrowed(text))),
            Answer::Result { stored, chunk, output, is_error } => (stored, chunk, output, is_error),
        };
        let pieces = pieces(output, &Parts, stored, chunk, &mut self.report);
        let mut parts: Vec<Part<'a>> = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) if text.is_empty() => {}
                Piece::Text(text) => parts.push(Part::InputText { text }),
                Piece::Part(part) => parts.push(part),
            }
        }
        let has_text = parts.iter().any(|part| matches!(part, Part::InputText { .. }));
        // Reconcile's own answers say what they are.
        let is_made = stored.state == crate::MessageState::Synthetic;
        if is_error && !has_text {
            self.note(Rule::Altered, stored, chunk, "a failure without words was put into words");
            parts.insert(0, Part::InputText { text: Cow::Borrowed(FAILED_WITHOUT_OUTPUT) });
        } else if is_error && !is_made {
            self.note(Rule::LeftOut, stored, chunk, "this wire has no place for is_error; the output stays");
        }
        let output = match parts.pop() {
            None => Output::Text(Cow::Borrowed("")),
            Some(Part::InputText { text }) if parts.is_empty() => Output::Text(text),
            Some(last) => {
                parts.push(last);
                Output::Parts(parts)
            }
        };
        match &output {
            Output::Text(text) if text.len() > OUTPUT && text.chars().count() > OUTPUT => {
                let detail = format!("a tool's output has more than {OUTPUT} characters, at message {}", stored.index);
                Err(Error::TooLarge(detail))
            }
            _ => Ok(output),
        }
    }

    fn note(&mut self, rule: Rule, stored: &StoredMessage, chunk: usize, detail: impl Into<String>) {
        self.report.push(ReportLine::chunk(rule, stored, chunk, detail));
    }

    fn note_moved(&mut self, turn: &Turn<'_>, at: usize) {
        let detail = format!("{} messages hold none: it stands in a user message behind", turn.role);
        self.note(Rule::MediaMoved, turn.stored, at, detail);
    }

    fn note_none(&mut self, turn: &Turn<'_>, at: usize, chunk: &Chunk) {
        let kind = chunk.body.kind();
        self.note(Rule::LeftOut, turn.stored, at, format!("{kind}: the target takes none in a {} message", turn.role));
    }
}

/// The types of the parts that an attachment may have come as.
const fn input_kinds(body: &Body) -> &'static [&'static str] {
    match body {
        Body::Image(_) => &["input_image"],
        Body::File(_) => &["input_file"],
        _ => &[],
    }
}

/// The part that a chunk came as.
fn given<'a>(chunk: &'a Chunk, kinds: &[&str]) -> Option<Content<'a>> {
    Given::of(chunk).filter(|given| given.is_input(kinds)).map(|given| Content::Given(given.whole()))
}
