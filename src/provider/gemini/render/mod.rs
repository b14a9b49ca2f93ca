//! A conversation as Gemini's generateContent takes it, and as Vertex AI does.
//!
//! What the user and the system say is here; `assistant` is what the model said, and the answers to its calls, which stand in
//! a content of their own, since newer models refuse one with other parts (GM-24; gh:vellum-ai/vellum-assistant#39495);
//! `native` gives parts back as they came; `object` is JSON as the service reads it; `media` are images, sound and files;
//! `request` is what is sent.

mod assistant;
mod media;
mod native;
pub(crate) mod object;
mod request;

use serde_json::value::RawValue;

use crate::error::Result;
use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::history::report::{Cited, Fact};
use crate::model::{Body, Chunk, Role};
use crate::provider::gemini::manner::Manner;
use crate::provider::gemini::models::refuses_model_last;
use crate::provider::prompt::alternating::{Block as _, Dialogue};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::render::{nothing_to_send, to_json};
use crate::provider::prompt::tool_id::{IdRule, NameRule};
use crate::provider::prompt::turns::{Speaker, Turn, signed_turns};
use crate::provider::target::Target;
use media::Parts;
use native::NativePart;
use request::{Functions, Part, Request, System};

/// Ids are not sent: calls and responses meet by their order (GM-08, GM-11).
const IDS: IdRule = IdRule { min: 1, max: 64, allows: |_| true };
/// GM-16.
const NAMES: NameRule = NameRule { max: 64, marks: &['_', '.', ':', '-'], begins_freely: false };

pub(crate) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let manner = Manner::of(target);
    let mut report = Vec::new();
    let turns = signed_turns(messages, |_| IDS, NAMES, &mut report);
    let mut renderer = Renderer { manner, dialogue: Dialogue::new(target, manner.providers, options, report) };
    for turn in turns {
        match turn.role {
            Role::Assistant => renderer.assistant(turn),
            Role::System | Role::User | Role::Tool => renderer.user(&turn),
        }
    }
    renderer.finish(target)
}

/// What is said so far.
struct Renderer<'a> {
    manner: &'static Manner,
    dialogue: Dialogue<'a, Part<'a>>,
}

impl<'a> Renderer<'a> {
    /// A message that is not the model's (GM-25).
    fn user(&mut self, turn: &Turn<'a>) {
        let mut parts = Vec::new();
        for (at, chunk) in turn.said() {
            let Some(part) = self.part(turn, at, chunk) else { continue };
            let is_text = part.is_text();
            parts.extend(self.dialogue.take_system(turn, at, part, is_text));
        }
        self.dialogue.say(Speaker::User, parts);
    }

    /// A chunk that is neither a call, nor a result, nor the model's thinking.
    fn part(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Part<'a>> {
        if turn.role == Role::User
            && let Some(given) = given(chunk)
        {
            return Some(given);
        }
        match &chunk.body {
            // GM-06, VX-02.
            Body::Text { text, annotations } => {
                if annotations.is_some() {
                    self.dialogue.note(Fact::AnnotationsRemoved(Cited::NoPlace), turn.stored, at);
                }
                self.dialogue.text(text, turn.stored, at)
            }
            Body::Refusal { text } => {
                self.dialogue.note(Fact::RefusalAsText, turn.stored, at);
                self.dialogue.text(text, turn.stored, at)
            }
            other => match Attachment::of(other) {
                Some(attachment) => {
                    let part = attachment.place(&Parts, turn.stored, at, self.dialogue.report());
                    Some(part.unwrap_or_else(Part::text))
                }
                None => {
                    self.dialogue.note_unsent(turn, at, other);
                    None
                }
            },
        }
    }

    fn finish(mut self, target: Target) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
        if self.dialogue.last().is_none() {
            return Err(nothing_to_send(target));
        }
        if !self.is_continued() {
            self.dialogue.bridge();
        }
        let function_declarations = self.dialogue.tools(NAMES, false)?;
        let tools = (!function_declarations.is_empty()).then_some([Functions { function_declarations }]);
        let (parts, contents, report) = self.dialogue.into_parts();
        let system_instruction = (!parts.is_empty()).then_some(System { parts });
        let contents = contents.into_iter().map(Into::into).collect();
        Ok((to_json(&Request { system_instruction, contents, tools })?, report))
    }

    /// Whether the model goes on with what it said, as asked for (GM-12).
    fn is_continued(&mut self) -> bool {
        let takes = self.dialogue.model().and_then(refuses_model_last) == Some(false);
        takes && self.dialogue.options().continue_last && self.dialogue.last_said().is_some()
    }
}

/// The part of the user's that a chunk came as.
fn given<'a>(chunk: &'a Chunk) -> Option<Part<'a>> {
    let text = match &chunk.body {
        Body::Text { text, .. } => Some(text.as_str()),
        Body::Image(_) | Body::Audio(_) | Body::File(_) => None,
        _ => return None,
    };
    NativePart::of(chunk).filter(|given| given.is_input(text)).map(|given| Part::Raw(given.whole()))
}
