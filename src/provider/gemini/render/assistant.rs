//! What the model said: its parts in their order, then the answers to its calls.

use std::borrow::Cow;

use super::native::{Given, is_signature};
use super::object;
use super::renderer::Renderer;
use super::request::{FunctionCall, Part, Speaker};
use super::responses::Asked;
use super::thinking::{Slot, Thought};
use crate::history::report::{Fact, Surrogates, Unsent, Unsigned};
use crate::model::{Body, Chunk};
use crate::provider::gemini::manner::{NAME, NO_SIGNATURE};
use crate::provider::gemini::models::wants_signatures;
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::Thinking;
use crate::provider::prompt::origin::is_openais;
use crate::provider::prompt::own::words;
use crate::provider::prompt::turns::{Call, Turn};
use crate::provider::text::is_blank;

impl<'a> Renderer<'a> {
    pub(crate) fn model(&mut self, mut turn: Turn<'a>) {
        let mut calls = std::mem::take(&mut turn.calls).into_iter().peekable();
        let (mut slots, mut asked, mut media) = (Vec::new(), Vec::new(), Vec::new());
        for (at, chunk) in turn.stored.message.chunks.iter().enumerate() {
            let place = match &chunk.body {
                Body::ToolCall { .. } => match calls.next_if(|call| call.chunk == at) {
                    Some(call) => {
                        let (part, id) = self.call(&turn, &call, chunk, asked.is_empty());
                        asked.push(Asked { call, id });
                        Ok(part)
                    }
                    None => continue,
                },
                Body::ToolResult { .. } => continue,
                Body::Thinking { text, signature, redacted } => {
                    let part = self.thought(&turn, at, chunk, text, signature.as_deref(), redacted.is_some());
                    Err(Thought { text, opaque: signature.is_some() || redacted.is_some(), part })
                }
                _ => match self.words(&turn, at, chunk) {
                    Some((part, true)) => Ok(part),
                    Some((part, false)) => {
                        self.note_moved(&turn, at);
                        let text = |text| Part::Text { text: Cow::Borrowed(text) };
                        let attachment = Attachment::of(&chunk.body);
                        media.extend(attachment.map(|attachment| text(attachment.by_assistant())));
                        media.push(part);
                        match attachment {
                            Some(attachment) => Ok(text(attachment.moved())),
                            None => continue,
                        }
                    }
                    None => continue,
                },
            };
            slots.push(Slot { chunk: at, place });
        }
        let parts = self.place_thinking(&turn, slots);
        self.say(Speaker::Model, parts);
        let mut answers = self.answer(asked);
        answers.append(&mut media);
        self.say(Speaker::User, answers);
    }

    /// What is neither a call nor thinking; and whether the model may say it.
    fn words(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<(Part<'a>, bool)> {
        let given = Given::of(chunk).filter(|_| self.is_own(turn));
        let fitting = given.filter(|given| match &chunk.body {
            Body::Text { text, .. } => given.is_text(text),
            Body::Image(_) => given.is_picture(),
            _ => false,
        });
        if let Some(given) = fitting {
            return Some((Part::Given(given.whole()), true));
        }
        if matches!(chunk.body, Body::Opaque { .. }) {
            return self.opaque(turn, at, chunk).map(|part| (part, true));
        }
        self.note_anew(turn, at, chunk);
        let part = self.said(turn, at, chunk)?;
        let is_text = matches!(part, Part::Text { .. });
        Some((part, is_text))
    }

    /// The service's own part goes back as it came; another's is written as text, if it has any.
    fn opaque(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Part<'a>> {
        let Body::Opaque { provider, kind, json } = &chunk.body else { return None };
        let is_own = self.manner.providers.contains(&provider.as_str()) && turn.is_by(self.manner.providers, None);
        let why = match Given::read(json).filter(|given| is_own && given.is_part(kind)) {
            Some(given) => match given.refusal() {
                None => return Some(Part::Given(given.whole())),
                Some(why) => why,
            },
            None if is_own => Unsent::BesideMessage,
            None => {
                if let Some(text) = words(kind, json).filter(|text| !is_blank(text)) {
                    self.note(Fact::ToldAsText { kind, provider }, turn.stored, at);
                    return Some(Part::Text { text: Cow::Owned(text) });
                }
                Unsent::Foreign(provider)
            }
        };
        self.note(Fact::Removed { kind, why }, turn.stored, at);
        None
    }

    /// The thought as the service takes it back: its own, with its signature.
    fn thought(
        &mut self,
        turn: &Turn<'a>,
        at: usize,
        chunk: &'a Chunk,
        text: &'a str,
        signature: Option<&'a str>,
        redacted: bool,
    ) -> Option<Part<'a>> {
        if self.options.thinking != Thinking::Native || !self.is_own(turn) {
            return None;
        }
        if let Some(given) = Given::of(chunk).filter(|given| given.is_thinking(text)) {
            return Some(Part::Given(given.whole()));
        }
        let signature = signature.filter(|signature| is_signature(signature) && !is_openais(signature))?;
        if redacted || is_blank(text) && !text.is_empty() {
            return None;
        }
        self.report.extend(self.whose(turn).note(turn.stored, at));
        Some(Part::Thought { text, thought: true, thought_signature: signature })
    }

    /// The call, and its id where the service gave it one. The first of every step has a signature, though only the current
    /// turn needs one (GM-17): so it does not depend on what comes later.
    fn call(&mut self, turn: &Turn<'a>, call: &Call<'a>, chunk: &'a Chunk, first: bool) -> (Part<'a>, Option<String>) {
        let given = Given::of(chunk).filter(|_| self.is_own(turn));
        if let Some(given) = given.filter(|given| given.is_call(&call.name, &call.arguments, first && self.signs())) {
            return (Part::Given(given.whole()), given.call_id());
        }
        self.note_anew(turn, call.chunk, chunk);
        let (args, mended) = object::arguments(&call.arguments);
        match mended {
            Some(object::Mended::Arguments(why)) => {
                self.note(Fact::ArgumentsReplaced { why, now: args.get() }, turn.stored, call.chunk);
            }
            Some(object::Mended::Surrogates) => {
                self.note(Fact::SurrogatesReplaced(Surrogates::Arguments), turn.stored, call.chunk);
            }
            None => {}
        }
        let own = call.signature.filter(|signature| self.is_own(turn) && is_signature(signature));
        if call.signature.is_some() && own.is_none() {
            let why = if self.is_own(turn) { Unsigned::NotOne } else { Unsigned::Foreign };
            self.note(Fact::CallSignatureRemoved(why), turn.stored, call.chunk);
        }
        let thought_signature = own.or((first && self.signs()).then_some(NO_SIGNATURE));
        if own.is_some() {
            self.report.extend(self.whose(turn).note(turn.stored, call.chunk));
        } else if thought_signature.is_some() {
            self.note(Fact::SignatureMade, turn.stored, call.chunk);
        }
        let function_call = FunctionCall { name: call.name.clone(), args };
        (Part::Call { function_call, thought_signature }, None)
    }

    /// Whether calls need signatures: only of models before Gemini 3 it is known that they do not.
    fn signs(&self) -> bool {
        self.manner.signs || self.options.model.as_deref().and_then(wants_signatures) != Some(false)
    }

    /// A chunk's own part, if it has one of this wire, is not what is sent.
    fn note_anew(&mut self, turn: &Turn<'_>, at: usize, chunk: &Chunk) {
        if chunk.native.as_ref().is_some_and(|native| native.wire == NAME) {
            self.note(Fact::Rebuilt { what: "part" }, turn.stored, at);
        }
    }
}
