//! What is said so far, on its way into a request.

use std::borrow::Cow;

use super::attach::Parts;
use super::native::Given;
use super::request::{Content, Part, Speaker};
use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::history::report::{Cited, Fact, Moved, Unsent};
use crate::model::{Body, Chunk, Role};
use crate::provider::gemini::manner::{Manner, NAME};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::origin::Whose;
use crate::provider::prompt::turns::{BEGINNING, Turn};
use crate::provider::text::is_blank;

pub(super) struct Renderer<'a> {
    pub(super) manner: &'static Manner,
    pub(super) options: &'a PromptOptions,
    pub(super) report: Vec<ReportLine>,
    pub(super) system: Vec<Part<'a>>,
    pub(super) contents: Vec<Content<'a>>,
}

impl<'a> Renderer<'a> {
    /// A chunk that is neither a call, nor a result, nor the model's thinking.
    pub(super) fn said(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Part<'a>> {
        if turn.role == Role::User
            && let Some(given) = given(chunk)
        {
            return Some(given);
        }
        match &chunk.body {
            Body::Text { text, annotations } => {
                if annotations.is_some() {
                    self.note(Fact::AnnotationsRemoved(Cited::NoPlace), turn.stored, at);
                }
                self.text(turn, at, text)
            }
            Body::Refusal { text } => {
                self.note(Fact::RefusalAsText, turn.stored, at);
                self.text(turn, at, text)
            }
            other => match Attachment::of(other) {
                Some(attachment) => {
                    let part = attachment.place(&Parts, turn.stored, at, &mut self.report);
                    Some(part.unwrap_or_else(|text| Part::Text { text }))
                }
                None => {
                    let (kind, why) = Unsent::of(other, turn.role, NAME, self.manner.providers);
                    self.note(Fact::Removed { kind, why }, turn.stored, at);
                    None
                }
            },
        }
    }

    /// Text that says something (GM-06, VX-02).
    pub(super) fn text(&mut self, turn: &Turn<'a>, at: usize, text: &'a str) -> Option<Part<'a>> {
        if is_blank(text) {
            self.note(Fact::blank(text), turn.stored, at);
            return None;
        }
        Some(Part::Text { text: Cow::Borrowed(text) })
    }

    /// Adds to the content of the speaker, or begins one.
    pub(super) fn say(&mut self, role: Speaker, mut parts: Vec<Part<'a>>) {
        if parts.is_empty() {
            return;
        }
        if self.contents.is_empty() && role == Speaker::Model {
            let added = Fact::TurnAdded { role: Role::User, text: BEGINNING };
            self.report.push(ReportLine::new(added).at("contents[0]"));
            self.say(Speaker::User, vec![Part::Text { text: Cow::Borrowed(BEGINNING) }]);
        }
        match self.contents.last_mut().filter(|last| last.role == role && !last.answers) {
            Some(last) => last.parts.append(&mut parts),
            None => self.contents.push(Content { role, parts, answers: false }),
        }
    }

    /// Whether the service itself made the message, as far as it is known.
    pub(super) fn is_own(&self, turn: &Turn<'_>) -> bool {
        turn.is_by(self.manner.providers, self.options.model.as_deref())
    }

    pub(super) fn whose(&self, turn: &Turn<'_>) -> Whose {
        turn.whose(self.manner.providers, self.options.model.as_deref())
    }

    pub(super) fn note(&mut self, fact: Fact<'_>, stored: &StoredMessage, chunk: usize) {
        self.report.push(ReportLine::chunk(fact, stored, chunk));
    }

    pub(super) fn note_moved(&mut self, turn: &Turn<'_>, at: usize) {
        self.note(Fact::MediaMoved(Moved::Role(turn.role)), turn.stored, at);
    }
}

/// The part of the user's that a chunk came as.
fn given<'a>(chunk: &'a Chunk) -> Option<Part<'a>> {
    let text = match &chunk.body {
        Body::Text { text, .. } => Some(text.as_str()),
        Body::Image(_) | Body::Audio(_) | Body::File(_) => None,
        _ => return None,
    };
    Given::of(chunk).filter(|given| given.is_input(text)).map(|given| Part::Given(given.whole()))
}
