//! A conversation as OpenAI Chat Completions takes it, and as the dialects of that wire do.

mod media;
mod thinking;
mod wire;

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::group::StoredMessage;
use crate::model::{Body, Output, Role};
use crate::provider::attachment::{Attachment, OUTPUT_FOLLOWS, Piece, pieces};
use crate::provider::tool_id::{IdRule, NameRule};
use crate::provider::turns::{Answer, Call, FAILED_WITHOUT_OUTPUT, Turn, turns};
use crate::provider::{PromptOptions, Target, dialect};
use crate::reconcile::{ReportLine, Rule};
use media::attach;
use wire::{Content, Function, Message, Part, Request, SEPARATOR, ToolCall};

/// How a server speaks this wire.
#[derive(Debug)]
pub(in crate::provider) struct Manner {
    /// The provider whose thinking is the server's own.
    pub(in crate::provider) provider: &'static str,
    /// Whether the content of system, assistant and tool messages may be an array.
    pub(in crate::provider) arrays: bool,
    /// Whether images, audio and files are taken.
    pub(in crate::provider) media: bool,
    /// Whether messages with calls carry `reasoning_content`, if only an empty one.
    pub(in crate::provider) reasoning_content: bool,
    /// Whether a refusal has a field of its own.
    pub(in crate::provider) refusal: bool,
}

/// As OpenAI speaks it.
const OPENAI: Manner =
    Manner { provider: "openai", arrays: true, media: true, reasoning_content: false, refusal: true };

/// OC-13.
const IDS: IdRule = IdRule { max: 40, allows: |character| !character.is_control() };
/// OC-14.
const NAMES: NameRule = NameRule::words(64);
/// OC-12.
const CALLS: usize = 128;

pub(super) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let manner = match target.dialect().map(|dialect| &dialect.manner) {
        Some(dialect::Manner::OpenAiChat(manner)) => manner,
        _ => &OPENAI,
    };
    let mut report = Vec::new();
    let turns = turns(messages, IDS, NAMES, &mut report);
    let mut renderer = Renderer { manner, options, report, messages: Vec::new() };
    for turn in turns {
        renderer.turn(turn);
    }
    if renderer.messages.is_empty() {
        return Err(Error::NothingToSend(format!("no message of the conversation has content that {target} takes")));
    }
    let request = Request { messages: renderer.messages };
    let request = serde_json::value::to_raw_value(&request);
    let request = request.map_err(|error| Error::InvalidInput(format!("the prompt cannot be written: {error}")))?;
    Ok((request, renderer.report))
}

struct Renderer<'a> {
    manner: &'static Manner,
    options: &'a PromptOptions,
    report: Vec<ReportLine>,
    messages: Vec<Message<'a>>,
}

/// What a message says, sorted by where the wire has a place for it.
#[derive(Default)]
struct Said<'a> {
    /// Text, and media where the role may have them.
    parts: Vec<Part<'a>>,
    /// Media that only a user message may have.
    media: Vec<Part<'a>>,
    refusals: Vec<&'a str>,
    thinking: thinking::Thoughts<'a>,
}

impl<'a> Renderer<'a> {
    fn turn(&mut self, turn: Turn<'a>) {
        let said = self.said(&turn);
        let media = match turn.role {
            Role::Assistant => self.assistant(turn, said),
            Role::System => {
                if let Some(content) = self.content(said.parts) {
                    self.messages.push(Message::System { content });
                }
                said.media
            }
            Role::User | Role::Tool => {
                if let Some(content) = Content::of(said.parts) {
                    self.messages.push(Message::User { content });
                }
                said.media
            }
        };
        if let Some(content) = Content::of(media) {
            self.messages.push(Message::User { content });
        }
    }

    /// The content of a message that is not the user's.
    fn content(&self, parts: Vec<Part<'a>>) -> Option<Content<'a>> {
        if self.manner.arrays || parts.is_empty() {
            return Content::of(parts);
        }
        let texts = parts.into_iter().filter_map(|part| match part {
            Part::Text { text } => Some(text),
            _ => None,
        });
        Some(Content::joined(texts.collect()))
    }

    /// The message, its calls and their answers. Gives the media that have to follow.
    fn assistant(&mut self, turn: Turn<'a>, said: Said<'a>) -> Vec<Part<'a>> {
        let Said { mut parts, mut media, refusals, thinking } = said;
        let reasoning = self.thinking(&turn, thinking, &mut parts, !refusals.is_empty() || !media.is_empty());
        let content = self.content(parts);
        let refusal = (!refusals.is_empty()).then(|| refusals.join(SEPARATOR));
        let mut calls = turn.calls.into_iter();
        let mut batch: Vec<Call<'a>> = calls.by_ref().take(CALLS).collect();
        if content.is_some() || refusal.is_some() || !batch.is_empty() {
            self.say(content, refusal, reasoning, &batch);
        }
        while !batch.is_empty() {
            for call in batch {
                self.answer(call, &mut media);
            }
            batch = calls.by_ref().take(CALLS).collect();
            if !batch.is_empty() {
                // More calls than one message may hold: the next message goes on with them.
                self.say(None, None, self.manner.reasoning_content.then(String::new), &batch);
            }
        }
        media
    }

    fn say(
        &mut self,
        content: Option<Content<'a>>,
        refusal: Option<String>,
        reasoning_content: Option<String>,
        calls: &[Call<'a>],
    ) {
        let tool_calls = calls.iter().map(|call| ToolCall {
            id: call.id.clone(),
            r#type: "function",
            function: Function { name: call.name.clone(), arguments: call.arguments.clone() },
        });
        let tool_calls = tool_calls.collect();
        self.messages.push(Message::Assistant { content, reasoning_content, refusal, tool_calls });
    }

    fn answer(&mut self, call: Call<'a>, media: &mut Vec<Part<'a>>) {
        let content = match call.answer {
            Answer::Made(text) => Content::Text(Cow::Borrowed(text)),
            Answer::Result { stored, chunk, output, is_error } => {
                let found_media = media.len();
                let mut texts = self.output(stored, chunk, output, &call.id, media);
                let has_text = texts.iter().any(|text| !text.is_empty());
                // Reconcile's own answers say what they are.
                let is_made = stored.state == crate::MessageState::Synthetic;
                match (is_error, has_text) {
                    (true, false) => {
                        self.note(Rule::Altered, stored, chunk, "a failure without words was put into words");
                        texts = vec![Cow::Borrowed(FAILED_WITHOUT_OUTPUT)];
                    }
                    (true, true) if !is_made => {
                        self.note(
                            Rule::LeftOut,
                            stored,
                            chunk,
                            "this wire has no place for is_error; the output stays",
                        );
                    }
                    _ => {}
                }
                if texts.is_empty() {
                    let follows = media.len() > found_media;
                    texts = vec![Cow::Borrowed(if follows { OUTPUT_FOLLOWS } else { "" })];
                }
                if self.manner.arrays && texts.len() > 1 {
                    Content::Parts(texts.into_iter().map(|text| Part::Text { text }).collect())
                } else {
                    Content::joined(texts)
                }
            }
        };
        self.messages.push(Message::Tool { tool_call_id: call.id, content });
    }

    /// The texts of a tool's output; its media are put behind the batch.
    fn output(
        &mut self,
        stored: &'a StoredMessage,
        chunk: usize,
        output: &'a Output,
        call_id: &str,
        media: &mut Vec<Part<'a>>,
    ) -> Vec<Cow<'a, str>> {
        let mut texts = Vec::new();
        for piece in pieces(output, &attach(self.manner.media), stored, chunk, &mut self.report) {
            match piece {
                Piece::Text(text) => texts.push(text),
                Piece::Part(part) => {
                    self.note(Rule::MediaMoved, stored, chunk, "it stands in a user message behind the tool messages");
                    media.push(Part::Text { text: Cow::Owned(format!("Output of the tool call {call_id}:")) });
                    media.push(part);
                }
            }
        }
        texts
    }

    fn said(&mut self, turn: &Turn<'a>) -> Said<'a> {
        let mut said = Said::default();
        let attach = attach(self.manner.media);
        let stored = turn.stored;
        for (at, chunk) in turn.said() {
            let found = match &chunk.body {
                Body::Text { text, .. } | Body::Refusal { text } if text.is_empty() => {
                    self.note(Rule::LeftOut, stored, at, "an empty text");
                    continue;
                }
                Body::Text { text, annotations } => {
                    if annotations.is_some() {
                        self.note(Rule::LeftOut, stored, at, "this wire has no place for annotations; the text stays");
                    }
                    said.parts.push(Part::Text { text: Cow::Borrowed(text) });
                    continue;
                }
                Body::Refusal { text } if turn.role == Role::Assistant && self.manner.refusal => {
                    said.refusals.push(text);
                    continue;
                }
                Body::Refusal { text } => {
                    self.note(Rule::Altered, stored, at, "the refusal is text in this prompt");
                    said.parts.push(Part::Text { text: Cow::Borrowed(text) });
                    continue;
                }
                Body::Thinking { text, signature, redacted } if turn.role == Role::Assistant => {
                    let is_text = !text.is_empty() && signature.is_none() && redacted.is_none();
                    said.thinking.push(thinking::Thought { chunk: at, text, is_text, before: said.parts.len() });
                    continue;
                }
                Body::Image(image) => (attach.image)(image),
                Body::Audio(audio) => (attach.audio)(audio),
                Body::File(file) => (attach.file)(file),
                other => {
                    let detail = format!("{} {} chunk: {} takes none", article(other.kind()), other.kind(), turn.role);
                    self.note(Rule::LeftOut, stored, at, detail);
                    continue;
                }
            };
            self.place_media(found, turn, at, &mut said);
        }
        said
    }

    fn place_media(&mut self, found: Attachment<'a, Part<'a>>, turn: &Turn<'a>, at: usize, said: &mut Said<'a>) {
        match found.settle(turn.stored, at, &mut self.report) {
            Err(text) => said.parts.push(Part::Text { text }),
            Ok(part) if turn.role == Role::User => said.parts.push(part),
            Ok(part) => {
                let detail = format!("{} messages hold none: it stands in a user message behind", turn.role);
                self.note(Rule::MediaMoved, turn.stored, at, detail);
                said.media.push(part);
            }
        }
    }

    fn note(&mut self, rule: Rule, stored: &StoredMessage, chunk: usize, detail: impl Into<String>) {
        self.report.push(ReportLine::chunk(rule, stored, chunk, detail));
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
