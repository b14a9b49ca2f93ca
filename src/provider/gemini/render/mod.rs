//! A conversation as Gemini's generateContent takes it, and as Vertex AI does.
//!
//! What each side says is here. The answers to calls stand in a content of their own, since newer models refuse one with other
//! parts (GM-24; gh:vellum-ai/vellum-assistant#39495). `native` gives parts back as they came; `object` is JSON as the service
//! reads it; `media` are images, sound and files; `request` is what is sent.
//!
//! What the model said: its parts in their order, then all responses to its calls in the content after it, in their order,
//! and nothing else there (GM-08, GM-11, GM-24).

mod media;
pub(crate) mod native;
pub(crate) mod object;
mod request;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::manner::{Manner, NO_SIGNATURE};
use super::models::{refuses_model_last, wants_signatures};
use crate::error::Result;
use crate::history::report::{Cited, Fact, Moved, Surrogates, Thought as Why, Unsent, Unsigned};
use crate::history::{MessageState, ReportLine, StoredMessage};
use crate::model::{Body, Chunk, Output, PartBody, Role};
use crate::provider::prompt::alternating::{Block as _, Dialogue, Slot, Thought};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::{PromptOptions, Thinking};
use crate::provider::prompt::origin::is_openais;
use crate::provider::prompt::output::{FAILED_WITHOUT_OUTPUT, OUTPUT_FOLLOWS, Piece, failure, pieces};
use crate::provider::prompt::render::{nothing_to_send, to_json};
use crate::provider::prompt::tool_id::{IdRule, NameRule};
use crate::provider::prompt::turns::{Call, Reply, Speaker, Turn, signed_turns};
use crate::provider::target::Target;
use crate::provider::text::is_blank;
use media::Parts;
use native::{NativePart, is_signature};
use request::{FunctionCall, FunctionResponse, Functions, Part, Request, Response, System, Texts};

/// Ids are not sent: calls and responses meet by their order (GM-08, GM-11).
const IDS: IdRule = IdRule { min: 1, max: 64, allows: |_| true };
/// GM-16.
pub(crate) const NAMES: NameRule = NameRule { max: 64, marks: &['_', '.', ':', '-'], begins_freely: false };

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

impl<'a> Renderer<'a> {
    pub(super) fn assistant(&mut self, mut turn: Turn<'a>) {
        let mut calls = std::mem::take(&mut turn.calls).into_iter().peekable();
        let (mut slots, mut asked, mut media): (Vec<Slot<'a, _>>, _, _) = (Vec::new(), Vec::new(), Vec::new());
        for (at, chunk) in turn.stored.message.chunks.iter().enumerate() {
            let slot = match &chunk.body {
                Body::ToolCall { .. } => {
                    let Some(call) = calls.next_if(|call| call.chunk == at) else { continue };
                    let (part, id) = self.call(&turn, &call, chunk, asked.is_empty());
                    asked.push((call, id));
                    Ok(part)
                }
                Body::ToolResult { .. } => continue,
                Body::Thinking { text, signature, redacted } => {
                    let block = self.thought(&turn, at, chunk, text, signature.as_deref(), redacted.is_some());
                    Err(Thought { text, is_opaque: signature.is_some() || redacted.is_some(), block })
                }
                body => match (self.words(&turn, at, chunk), Attachment::of(body)) {
                    (Some(part @ (Part::Inline { .. } | Part::File { .. })), Some(attachment)) => {
                        Ok(self.dialogue.move_media(attachment, part, &turn, at, &mut media))
                    }
                    (Some(part), _) => Ok(part),
                    (None, _) => continue,
                },
            };
            slots.push((at, slot));
        }
        // Thoughts alone say nothing to the service (GM-26): with its signature a thought is sent, unless the message is
        // nothing else; then it is sent as text.
        let otherwise = |_, is_all| if is_all { Why::NoText } else { Why::Unsigned };
        let parts = self.dialogue.place_thinking(&turn, slots, otherwise);
        self.dialogue.say(Speaker::Assistant, parts);
        let mut following = self.answer(asked);
        following.append(&mut media);
        self.dialogue.say(Speaker::User, following);
    }

    /// What is neither a call nor thinking.
    fn words(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Part<'a>> {
        let given = NativePart::of(chunk).filter(|_| self.dialogue.is_own(turn));
        let fitting = given.filter(|given| match &chunk.body {
            Body::Text { text, .. } => given.is_text(text),
            Body::Image(_) => given.is_picture(),
            _ => false,
        });
        if let Some(given) = fitting {
            return Some(Part::Raw(given.whole()));
        }
        if matches!(chunk.body, Body::Opaque { .. }) {
            return self.opaque(turn, at, chunk);
        }
        self.dialogue.note_rebuilt("part", turn, at, chunk);
        self.part(turn, at, chunk)
    }

    /// The service's own part goes back as it came; another's is written as text, if it has any.
    fn opaque(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Part<'a>> {
        let Body::Opaque { provider, kind, json } = &chunk.body else { return None };
        if !self.manner.providers.contains(&provider.as_str()) || !turn.is_by(self.manner.providers, None) {
            return self.dialogue.words_of(&chunk.body, turn.stored, at);
        }
        let why = match NativePart::read(json).filter(|given| given.is_part(kind)) {
            Some(given) => match given.refusal() {
                None => return Some(Part::Raw(given.whole())),
                Some(why) => why,
            },
            None => Unsent::BesideMessage,
        };
        self.dialogue.note(Fact::Removed { kind, why }, turn.stored, at);
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
        if self.dialogue.options().thinking != Thinking::Native || !self.dialogue.is_own(turn) {
            return None;
        }
        if let Some(given) = NativePart::of(chunk).filter(|given| given.is_thinking(text)) {
            return Some(Part::Raw(given.whole()));
        }
        let signature = signature.filter(|signature| is_signature(signature) && !is_openais(signature))?;
        if redacted || is_blank(text) && !text.is_empty() {
            return None;
        }
        self.dialogue.note_origin(turn, at);
        Some(Part::Thought { text, thought: true, thought_signature: signature })
    }

    /// The call, and its id where the service gave it one. The first of every step has a signature, though only the current
    /// turn needs one (GM-17): so it does not depend on what comes later.
    fn call(&mut self, turn: &Turn<'a>, call: &Call<'a>, chunk: &'a Chunk, first: bool) -> (Part<'a>, Option<String>) {
        let given = NativePart::of(chunk).filter(|_| self.dialogue.is_own(turn));
        if let Some(given) = given.filter(|given| given.is_call(&call.name, &call.arguments, first && self.signs())) {
            return (Part::Raw(given.whole()), given.call_id());
        }
        self.dialogue.note_rebuilt("part", turn, call.chunk, chunk);
        let (args, mended) = object::arguments(&call.arguments);
        match mended {
            Some(object::Mended::Arguments(why)) => {
                self.dialogue.note(Fact::ArgumentsReplaced { why, now: args.get() }, turn.stored, call.chunk);
            }
            Some(object::Mended::Surrogates) => {
                self.dialogue.note(Fact::SurrogatesReplaced(Surrogates::Arguments), turn.stored, call.chunk);
            }
            None => {}
        }
        let own = call.signature.filter(|signature| self.dialogue.is_own(turn) && is_signature(signature));
        if call.signature.is_some() && own.is_none() {
            let why = if self.dialogue.is_own(turn) { Unsigned::NotOne } else { Unsigned::Foreign };
            self.dialogue.note(Fact::CallSignatureRemoved(why), turn.stored, call.chunk);
        }
        let thought_signature = own.or((first && self.signs()).then_some(NO_SIGNATURE));
        if own.is_some() {
            self.dialogue.note_origin(turn, call.chunk);
        } else if thought_signature.is_some() {
            self.dialogue.note(Fact::SignatureMade, turn.stored, call.chunk);
        }
        let function_call = FunctionCall { name: call.name.clone(), args };
        (Part::Call { function_call, thought_signature }, None)
    }

    /// Whether calls need signatures: only of models before Gemini 3 it is known that they do not.
    fn signs(&self) -> bool {
        self.manner.signs || self.dialogue.model().and_then(wants_signatures) != Some(false)
    }

    /// The answers, and what has to follow them.
    pub(crate) fn answer(&mut self, asked: Vec<(Call<'a>, Option<String>)>) -> Vec<Part<'a>> {
        let mut following = Vec::new();
        let mut parts = Vec::new();
        for (at, (Call { name, answer, .. }, id)) in asked.into_iter().enumerate() {
            let (response, media) = self.response(&answer);
            if !media.is_empty() {
                following.push(Part::text(format!("Output of {name}, call {} of the turn:", at + 1)));
                following.extend(media);
            }
            let beside = beside(&answer);
            parts.push(Part::Response { function_response: FunctionResponse { id, name, response, beside } });
        }
        self.dialogue.say_apart(parts);
        following
    }

    /// The response, and what it cannot hold.
    fn response(&mut self, answer: &Reply<'a>) -> (Response<'a>, Vec<Part<'a>>) {
        let (stored, chunk, output, is_error) = match *answer {
            Reply::Made(text) => return (Response::Error(Texts::One(Cow::Borrowed(text))), Vec::new()),
            Reply::Result { stored, chunk, output, is_error } => (stored, chunk, output, is_error),
        };
        if let Some(object) = whole(output).filter(|_| !is_error).and_then(object::plain) {
            return (Response::Object(object), Vec::new());
        }
        let (mut texts, mut media) = (Vec::new(), Vec::new());
        for piece in pieces(output, &Parts, stored, chunk, self.dialogue.report()) {
            match piece {
                Piece::Text(text) => texts.push(text),
                Piece::Part(part) => {
                    self.dialogue.note(Fact::MediaMoved(Moved::Result), stored, chunk);
                    media.push(part);
                }
            }
        }
        if is_error && texts.iter().all(|text| text.is_empty()) && stored.state != MessageState::Synthetic {
            texts = vec![failure(FAILED_WITHOUT_OUTPUT, stored, chunk, self.dialogue.report())];
        }
        let texts = match <[Cow<'a, str>; 1]>::try_from(texts) {
            Ok([text]) => Texts::One(text),
            Err(texts) if texts.is_empty() => {
                Texts::One(Cow::Borrowed(if media.is_empty() { "" } else { OUTPUT_FOLLOWS }))
            }
            Err(texts) => Texts::Several(texts),
        };
        (if is_error { Response::Error(texts) } else { Response::Result(texts) }, media)
    }
}

/// What stood beside the response of a result.
fn beside(answer: &Reply<'_>) -> BTreeMap<&'static str, Box<RawValue>> {
    let Reply::Result { stored, chunk, .. } = answer else { return BTreeMap::new() };
    let given = stored.message.chunks.get(*chunk).and_then(NativePart::of);
    given.map(|given| given.beside_response()).unwrap_or_default()
}

/// An output that is one text, or one JSON value.
fn whole(output: &Output) -> Option<&str> {
    match output {
        Output::Text(text) => Some(text),
        Output::Parts(parts) => match parts.as_slice() {
            [part] => match &part.body {
                PartBody::Text { text } => Some(text),
                PartBody::Json { json } => Some(json.as_str()),
                _ => None,
            },
            _ => None,
        },
    }
}
