//! What is said so far, on its way into a request; and what is said by others than the model.

use std::borrow::Cow;
use std::collections::HashSet;

use super::attach::Parts;
use super::native::Given;
use super::pairs::Pairs;
use super::request::{Content, Entry, Item, Output, Part};
use crate::error::{Error, Result};
use crate::history::StoredMessage;
use crate::history::report::{Cited, Fact, Moved, Unsent};
use crate::history::{ReportLine, Rule};
use crate::model::{Body, Chunk, Role};
use crate::provider::openai_responses::manner::{Manner, NAME, PROVIDER};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::output::{FAILED_WITHOUT_OUTPUT, Piece, failure, pieces};
use crate::provider::prompt::turns::{Reply, Turn};

/// Characters in one output (OR-26).
const OUTPUT: usize = 10_485_760;

pub(super) struct Renderer<'a> {
    pub(super) manner: &'static Manner,
    pub(super) options: &'a PromptOptions,
    pub(super) report: Vec<ReportLine>,
    pub(super) input: Vec<Entry<'a>>,
    /// The server's ids of items that were given back (OR-06).
    pub(super) ids: HashSet<String>,
    /// The calls of custom tools, by message and chunk index: their input is not repaired.
    pub(super) customs: HashSet<(u64, u32)>,
    /// Calls of tools that are no functions, and their answers.
    pub(super) pairs: Pairs,
    /// The messages of the turns.
    pub(super) stored: Vec<&'a StoredMessage>,
    /// The position of the turn that is being said.
    pub(super) at: usize,
}

impl<'a> Renderer<'a> {
    /// A message that is not the model's.
    pub(super) fn given(&mut self, turn: &Turn<'a>) {
        let (mut content, mut media) = (Vec::new(), Vec::new());
        let role = if turn.role == Role::System { "system" } else { "user" };
        for (at, chunk) in turn.said() {
            if self.is_given_item(turn, at, chunk) {
                self.message(role, std::mem::take(&mut content));
                self.given_item(turn, at, chunk);
                continue;
            }
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
        self.message(role, content);
        self.message("user", media);
    }

    pub(super) fn part(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Content<'a>> {
        let stored = turn.stored;
        if let Some(part) = given(chunk, input_kinds(&chunk.body)) {
            return Some(part);
        }
        match &chunk.body {
            Body::Text { text, annotations } => {
                if annotations.is_some() {
                    self.note(Fact::AnnotationsRemoved(Cited::AssistantOnly), stored, at);
                }
                self.text(turn, at, text).map(Content::Part)
            }
            Body::Refusal { text } => {
                self.note(Fact::RefusalAsText, stored, at);
                self.text(turn, at, text).map(Content::Part)
            }
            Body::Opaque { provider, json, .. } if provider == PROVIDER && turn.role == Role::User => {
                let given = Given::read(json).filter(|given| given.is_part_for("user"));
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

    pub(super) fn text(&mut self, turn: &Turn<'a>, at: usize, text: &'a str) -> Option<Part<'a>> {
        if text.is_empty() {
            self.note(Fact::TextEmpty, turn.stored, at);
            return None;
        }
        Some(Part::InputText { text: Cow::Borrowed(text) })
    }

    pub(super) fn message(&mut self, role: &'static str, content: Vec<Content<'a>>) {
        if !content.is_empty() {
            self.input.push(Entry::Item(Item::Message { role, content }));
        }
    }

    /// What a call is answered (OR-26).
    pub(super) fn output(&mut self, answer: &Reply<'a>) -> Result<Output<'a>> {
        let (stored, chunk, output, is_error) = match *answer {
            Reply::Made(text) => return Ok(Output::Text(Cow::Borrowed(text))),
            Reply::Result { stored, chunk, output, is_error } => (stored, chunk, output, is_error),
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
            let text = failure(FAILED_WITHOUT_OUTPUT, stored, chunk, &mut self.report);
            parts.insert(0, Part::InputText { text });
        } else if is_error && !is_made {
            self.note(Fact::ErrorFlagRemoved, stored, chunk);
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

    /// What was done, without repairs of what is no JSON and stays what it is.
    pub(super) fn into_report(self) -> Vec<ReportLine> {
        let Self { mut report, customs, .. } = self;
        if !customs.is_empty() {
            let place = |line: &ReportLine| line.message_index.zip(line.chunk_index);
            let is_custom = |line: &ReportLine| place(line).is_some_and(|place| customs.contains(&place));
            report.retain(|line| line.rule != Rule::ArgumentsRepaired || !is_custom(line));
        }
        report
    }

    pub(super) fn note(&mut self, fact: Fact<'_>, stored: &StoredMessage, chunk: usize) {
        self.report.push(ReportLine::chunk(fact, stored, chunk));
    }

    pub(super) fn note_moved(&mut self, turn: &Turn<'_>, at: usize) {
        self.note(Fact::MediaMoved(Moved::Role(turn.role)), turn.stored, at);
    }

    pub(super) fn note_none(&mut self, turn: &Turn<'_>, at: usize, chunk: &Chunk) {
        let (kind, why) = Unsent::of(&chunk.body, turn.role, NAME, &[PROVIDER]);
        self.note(Fact::Removed { kind, why }, turn.stored, at);
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
