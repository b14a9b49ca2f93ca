//! A conversation as Gemini's generateContent takes it, and as Vertex AI does.
//!
//! Roles alternate, but for what follows answers to calls: they stand in a content of their own, since newer models refuse
//! one with other parts (GM-24; gh:vellum-ai/vellum-assistant#39495), and a content of the user may follow it. Whatever is
//! said is decided by what precedes it alone, so that a prompt that goes on begins with the bytes of the one before.

mod media;
mod model;
mod native;
mod object;
mod responses;
mod thinking;
mod wire;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::error::Result;
use crate::history::StoredMessage;
use crate::history::{ReportLine, Rule};
use crate::model::{Body, Chunk, Role};
use crate::provider::attachment::Attachment;
use crate::provider::prompt::{nothing_to_send, written};
use crate::provider::text::is_blank;
use crate::provider::tool_id::{IdRule, NameRule};
use crate::provider::tools::declared;
use crate::provider::turns::{BEGINNING, BRIDGE, Turn, signed_turns};
use crate::provider::{PromptOptions, Target, dialect};
use media::Parts;
use native::Given;
pub(super) use object::plain;
use wire::{Content, Functions, Part, Request, Speaker, System};

/// How a server speaks this wire.
#[derive(Debug)]
pub(in crate::provider) struct Manner {
    /// The providers whose signatures are the server's own.
    pub(in crate::provider) providers: &'static [&'static str],
    /// Whether calls have signatures, or stand-ins, whatever the model's name tells.
    pub(in crate::provider) signs: bool,
}

/// As Google's AI Studio speaks it.
pub(in crate::provider) const AI_STUDIO: Manner = Manner { providers: &["gemini", "google"], signs: false };

impl Manner {
    pub(in crate::provider) fn of(target: Target) -> &'static Self {
        match target.dialect().map(|dialect| &dialect.manner) {
            Some(dialect::Manner::Gemini(manner)) => manner,
            _ => &AI_STUDIO,
        }
    }
}

/// Ids are not sent: calls and responses meet by their order (GM-08, GM-11).
const IDS: IdRule = IdRule { min: 1, max: 64, allows: |_| true };
/// GM-16.
const NAMES: NameRule = NameRule { max: 64, marks: &['_', '.', ':', '-'], begins_freely: false };

pub(super) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let manner = Manner::of(target);
    let mut report = Vec::new();
    let turns = signed_turns(messages, IDS, NAMES, &mut report);
    let mut renderer = Renderer { manner, options, report, system: Vec::new(), contents: Vec::new() };
    for turn in turns {
        match turn.role {
            Role::Assistant => renderer.model(turn),
            _ => renderer.user(&turn),
        }
    }
    renderer.finish(target)
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

struct Renderer<'a> {
    manner: &'static Manner,
    options: &'a PromptOptions,
    report: Vec<ReportLine>,
    system: Vec<Part<'a>>,
    contents: Vec<Content<'a>>,
}

impl<'a> Renderer<'a> {
    /// A message that is not the model's. What the system says at the beginning has a place of its own (GM-25); what it
    /// says later is said by the user there.
    fn user(&mut self, turn: &Turn<'a>) {
        let leads = turn.role == Role::System && self.contents.is_empty();
        let mut parts = Vec::new();
        for (at, chunk) in turn.said() {
            let Some(part) = self.said(turn, at, chunk) else { continue };
            match part {
                Part::Text { .. } if leads => self.system.push(part),
                _ if leads => {
                    self.note_moved(turn, at);
                    parts.push(part);
                }
                _ => {
                    if turn.role == Role::System {
                        let detail = "a later system message: it is said by the user in this prompt";
                        self.note(Rule::RoleChanged, turn.stored, at, detail);
                    }
                    parts.push(part);
                }
            }
        }
        self.say(Speaker::User, parts);
    }

    /// A chunk that is neither a call, nor a result, nor the model's thinking.
    fn said(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Part<'a>> {
        if turn.role == Role::User
            && let Some(given) = given(chunk)
        {
            return Some(given);
        }
        match &chunk.body {
            Body::Text { text, annotations } => {
                if annotations.is_some() {
                    self.note(Rule::LeftOut, turn.stored, at, "this wire has no place for annotations; the text stays");
                }
                self.text(turn, at, text)
            }
            Body::Refusal { text } => {
                self.note(Rule::Altered, turn.stored, at, "the refusal is text in this prompt");
                self.text(turn, at, text)
            }
            other => match Attachment::of(other) {
                Some(attachment) => {
                    let part = attachment.place(&Parts, turn.stored, at, &mut self.report);
                    Some(part.unwrap_or_else(|text| Part::Text { text }))
                }
                None => {
                    let detail = format!("{}: the target takes none in a {} message", other.kind(), turn.role);
                    self.note(Rule::LeftOut, turn.stored, at, detail);
                    None
                }
            },
        }
    }

    /// Text that says something (GM-06, VX-02).
    fn text(&mut self, turn: &Turn<'a>, at: usize, text: &'a str) -> Option<Part<'a>> {
        if is_blank(text) {
            self.note(Rule::LeftOut, turn.stored, at, "a blank text");
            return None;
        }
        Some(Part::Text { text: Cow::Borrowed(text) })
    }

    /// Adds to the content of the speaker, or begins one.
    fn say(&mut self, role: Speaker, mut parts: Vec<Part<'a>>) {
        if parts.is_empty() {
            return;
        }
        if self.contents.is_empty() && role == Speaker::Model {
            let detail = "the target wants the user to begin: a first content was made";
            self.report.push(ReportLine::new(Rule::TurnMade, detail));
            self.say(Speaker::User, vec![Part::Text { text: Cow::Borrowed(BEGINNING) }]);
        }
        match self.contents.last_mut().filter(|last| last.role == role && !last.answers) {
            Some(last) => last.parts.append(&mut parts),
            None => self.contents.push(Content { role, parts, answers: false }),
        }
    }

    fn finish(mut self, target: Target) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
        if self.contents.is_empty() {
            return Err(nothing_to_send(target));
        }
        // GM-12.
        if self.contents.last().is_some_and(|last| last.role == Speaker::Model) {
            let detail = format!("the target does not end on the model's words: {BRIDGE:?} was added");
            self.report.push(ReportLine::new(Rule::BridgeAdded, detail));
            self.say(Speaker::User, vec![Part::Text { text: Cow::Borrowed(BRIDGE) }]);
        }
        let system_instruction = Some(System { parts: self.system }).filter(|system| !system.parts.is_empty());
        let tools = declared(&self.options.tools, NAMES, BTreeSet::new(), &mut self.report)?;
        let function_declarations: Vec<_> = tools.into_iter().map(Into::into).collect();
        let tools = (!function_declarations.is_empty()).then_some([Functions { function_declarations }]);
        let request = written(&Request { system_instruction, contents: self.contents, tools })?;
        Ok((request, self.report))
    }

    /// Whether the service itself made the message, as far as it is known.
    fn is_own(&self, turn: &Turn<'_>) -> bool {
        turn.is_by(self.manner.providers, self.options.model.as_deref())
    }

    /// Whether it is stated that the service itself made the message: a signature of unknown origin is a stranger's, which
    /// is refused (GM-18).
    fn is_stated(&self, turn: &Turn<'_>) -> bool {
        turn.stored.message.metadata.provider.is_some() && self.is_own(turn)
    }

    fn note(&mut self, rule: Rule, stored: &StoredMessage, chunk: usize, detail: impl Into<String>) {
        self.report.push(ReportLine::chunk(rule, stored, chunk, detail));
    }

    fn note_moved(&mut self, turn: &Turn<'_>, at: usize) {
        let detail = format!("{} messages hold none: it stands in a content of the user behind", turn.role);
        self.note(Rule::MediaMoved, turn.stored, at, detail);
    }
}
