//! What a message says beside calls, sorted by where the wire has a place for it.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::attach::Parts;
use super::renderer::Renderer;
use super::request::{Field, Part};
use super::thinking::{Thought, Thoughts};
use crate::history::report::{Cited, Fact, Moved, Unsent};
use crate::model::{Body, Role};
use crate::provider::openai_chat::manner::{NAME, Texts};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::origin::Whose;
use crate::provider::prompt::turns::Turn;
use crate::provider::text::is_blank;

#[derive(Debug, Default)]
pub(crate) struct Said<'a> {
    /// Text, and media where the role may have them.
    pub(crate) parts: Vec<Part<'a>>,
    /// Media that only a user message may have.
    pub(crate) media: Vec<Part<'a>>,
    pub(crate) refusals: Vec<&'a str>,
    pub(crate) thinking: Thoughts<'a>,
    /// Fields of the server's own.
    pub(crate) own: Vec<(Cow<'a, str>, Field<'a>)>,
}

impl<'a> Renderer<'a> {
    pub(crate) fn said(&mut self, turn: &Turn<'a>) -> Said<'a> {
        let mut said = Said::default();
        let stored = turn.stored;
        for (at, chunk) in turn.said() {
            match &chunk.body {
                Body::Text { text, .. } | Body::Refusal { text } if text.is_empty() => {
                    self.note(Fact::TextEmpty, stored, at);
                }
                Body::Text { text, .. } | Body::Refusal { text } if self.is_too_blank(text) => {
                    self.note(Fact::TextBlank, stored, at);
                }
                Body::Text { text, annotations } => {
                    let is_free = said.own.iter().all(|(name, _)| name != "annotations");
                    let own = annotations
                        .as_ref()
                        .filter(|own| own.as_str().contains('{') && is_free && self.takes_annotations(turn));
                    if let Some(own) = own {
                        let raw = RawValue::from_string(own.as_str().to_owned()).unwrap_or_default();
                        said.own.push((Cow::Borrowed("annotations"), Field::Json(raw)));
                    } else if annotations.is_some() {
                        self.note(Fact::AnnotationsRemoved(Cited::NoPlace), stored, at);
                    }
                    said.parts.push(Part::Text { text: Cow::Borrowed(text) });
                }
                Body::Refusal { text } if turn.role == Role::Assistant && self.manner.refusal => {
                    said.refusals.push(text);
                }
                Body::Refusal { text } => {
                    self.note(Fact::RefusalAsText, stored, at);
                    said.parts.push(Part::Text { text: Cow::Borrowed(text) });
                }
                Body::Thinking { text, signature, redacted } if turn.role == Role::Assistant => {
                    let is_opaque = signature.is_some() || redacted.is_some();
                    let native = chunk.native.as_ref().filter(|native| native.wire == NAME);
                    said.thinking.push(Thought { chunk: at, text, is_opaque, before: said.parts.len(), native });
                }
                Body::Opaque { .. } => self.opaque(turn, at, chunk, &mut said),
                other => {
                    if let Some(part) = self.held(turn, chunk) {
                        said.parts.push(part);
                        continue;
                    }
                    if let Some(attachment) = Attachment::of(other) {
                        self.attach(attachment, turn, at, &mut said);
                        continue;
                    }
                    let target = self.target.to_string();
                    let (kind, why) = Unsent::of(other, turn.role, &target, self.manner.providers);
                    self.note(Fact::Removed { kind, why }, stored, at);
                }
            }
        }
        said
    }

    /// Whether the message's annotations go back: the server made them, and all of them are here.
    fn takes_annotations(&self, turn: &Turn<'a>) -> bool {
        let texts = turn.said().filter(|(_, chunk)| matches!(chunk.body, Body::Text { .. })).count();
        turn.role == Role::Assistant
            && texts == 1
            && turn.whose(self.manner.providers, None) == Whose::Own
            && self.refused("assistant", "annotations", "[]").is_none()
    }

    fn attach(&mut self, attachment: Attachment<'a>, turn: &Turn<'a>, at: usize, said: &mut Said<'a>) {
        match attachment.place(&Parts(self.manner), turn.stored, at, &mut self.report) {
            Err(text) => said.parts.push(Part::Text { text }),
            Ok(mut part) if turn.role == Role::User => {
                self.look(&mut part, turn.stored.message.chunks.get(at));
                said.parts.push(part);
            }
            Ok(part) => {
                self.note(Fact::MediaMoved(Moved::Role(turn.role)), turn.stored, at);
                if turn.role == Role::Assistant {
                    let text = |text| Part::Text { text: Cow::Borrowed(text) };
                    said.parts.push(text(attachment.moved()));
                    said.media.push(text(attachment.by_assistant()));
                }
                said.media.push(part);
            }
        }
    }

    /// Whether a text that is not empty is too little of one for the target.
    pub(crate) fn is_too_blank(&self, text: &str) -> bool {
        self.manner.texts == Texts::NotBlank && is_blank(text)
    }
}
