//! A conversation as OpenAI Chat Completions takes it, and as the dialects of that wire do.
//!
//! What a turn says, and what its calls are answered, is here; `order` puts messages where the server takes them; `thinking`
//! finds the place of thinking; `native` is what goes back as it came; `request` is what is sent. Images, audio and files are
//! content parts, of those that the server takes.

mod native;
mod order;
mod request;
mod thinking;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::value::RawValue;

use super::manner::{ImagesTaken, Manner, NAME, Texts};
use crate::error::Result;
use crate::history::report::{Cited, Fact, Moved, Unfit, Unsent};
use crate::history::{MessageState, ReportLine, Rule, StoredMessage};
use crate::model::{Audio, Body, File, Image, Native, Output, Role};
use crate::provider::prompt::media::attachment::{Attach, Attachment, Made, Payload, Picture, file_name};
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::origin::Whose;
use crate::provider::prompt::output::{
    FAILED_WITHOUT_OUTPUT, NO_OUTPUT, OUTPUT_FOLLOWS, Piece, failure, heading, pieces,
};
use crate::provider::prompt::render::{nothing_to_send, to_json};
use crate::provider::prompt::tool_id::NameRule;
use crate::provider::prompt::tools::declared;
use crate::provider::prompt::turns::{Call, Reply, Turn, turns};
use crate::provider::target::Target;
use crate::provider::text::is_blank;
use request::{
    AnyCall, Content, ExtraFields, Field, File as FilePart, ImageUrl, InputAudio, Message, Part, Request, SEPARATOR,
    Tool,
};

/// OC-14.
pub(crate) const NAMES: NameRule = NameRule::words(64);
/// OC-12.
const CALLS: usize = 128;

pub(crate) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let manner = Manner::of(target);
    let mut report = Vec::new();
    let ids = |stored: &StoredMessage| if goes_back(stored, manner, options) { manner.ids.long() } else { manner.ids };
    let turns = turns(messages, ids, NAMES, &mut report);
    let echoes = target.dialect().is_none();
    let (messages, text_fields) = (Vec::new(), RefCell::default());
    let mut renderer =
        Renderer { target, manner, echoes, options, report, messages, text_fields, customs: HashSet::new() };
    for turn in turns {
        renderer.turn(turn);
    }
    if !renderer.end() {
        return Err(nothing_to_send(target));
    }
    let Renderer { messages, mut report, customs, .. } = renderer;
    if !customs.is_empty() {
        let place = |line: &ReportLine| Some((line.message_index?, line.chunk_index?));
        let is_custom = |line: &ReportLine| place(line).is_some_and(|place| customs.contains(&place));
        report.retain(|line| line.rule != Rule::ArgumentsRepaired || !is_custom(line));
    }
    let called = if manner.declares { called(&messages) } else { BTreeSet::new() };
    let tools = declared(&options.tools, NAMES, called, &mut report)?;
    let tools = tools.into_iter().map(|function| Tool::Function { function }).collect();
    Ok((to_json(&Request { messages, tools })?, report))
}

/// What is said so far.
struct Renderer<'a> {
    target: Target,
    manner: &'static Manner,
    /// Whether what only OpenAI's own server is known to take comes back as it came.
    echoes: bool,
    options: &'a PromptOptions,
    report: Vec<ReportLine>,
    messages: Vec<Message<'a>>,
    /// Which fields of the assistant's the target takes text in, of those that were asked for.
    text_fields: RefCell<HashMap<String, bool>>,
    /// The calls of custom tools, by message and chunk index: their input is not repaired.
    customs: HashSet<(u64, u32)>,
}

/// What a message says beside calls, sorted by where the wire has a place for it.
#[derive(Debug, Default)]
struct Said<'a> {
    /// Text, and media where the role may have them.
    parts: Vec<Part<'a>>,
    /// Media that only a user message may have.
    media: Vec<Part<'a>>,
    refusals: Vec<&'a str>,
    thinking: Vec<Thought<'a>>,
    /// Fields of the server's own.
    extra: Vec<(Cow<'a, str>, Field<'a>)>,
    /// Their names.
    names: HashSet<&'a str>,
}

/// A thinking chunk of an assistant message.
#[derive(Debug)]
struct Thought<'a> {
    /// Its position in the message.
    chunk: usize,
    text: &'a str,
    /// Whether it has a signature, or redacted data, which belong to another wire.
    is_opaque: bool,
    /// How many parts of the message stand before it.
    before: usize,
    /// Where this wire had it, without its text.
    native: Option<&'a Native>,
}

impl<'a> Renderer<'a> {
    fn turn(&mut self, turn: Turn<'a>) {
        let (stored, role, before) = (turn.stored, turn.role, self.messages.len());
        let said = self.said(&turn);
        let media = match role {
            Role::Assistant => self.assistant(turn, said),
            Role::System => {
                self.system(&turn, said.parts);
                said.media
            }
            Role::User | Role::Tool => {
                self.user(stored, said.parts);
                said.media
            }
        };
        if role != Role::Tool {
            self.name(stored, before);
        }
        self.user(stored, media);
    }

    /// The message, its calls and their answers. Gives the media that have to follow.
    fn assistant(&mut self, turn: Turn<'a>, said: Said<'a>) -> Vec<Part<'a>> {
        let Said { mut parts, mut media, refusals, thinking, mut extra, names: _ } = said;
        let says_more = !refusals.is_empty() || !media.is_empty();
        let reasoning = self.thinking(&turn, thinking, &mut parts, &mut extra, says_more);
        let content = self.content(parts);
        let refusal = (!refusals.is_empty()).then(|| refusals.join(SEPARATOR));
        let stored = turn.stored;
        let mut turn = turn;
        let mut calls = std::mem::take(&mut turn.calls).into_iter();
        let mut batch: Vec<Call<'a>> = calls.by_ref().take(CALLS).collect();
        if content.is_some() || refusal.is_some() || !batch.is_empty() {
            let tool_calls = self.calls(&turn, &batch);
            self.say(stored, content, reasoning, refusal, tool_calls, ExtraFields(extra));
        } else if !extra.is_empty() {
            self.note_alone(stored);
        }
        while !batch.is_empty() {
            for call in batch {
                self.answer(call, &mut media);
            }
            batch = calls.by_ref().take(CALLS).collect();
            if !batch.is_empty() {
                // More calls than one message may hold: the next message goes on with them.
                let reasoning = self.manner.reasoning_content.map(str::to_owned);
                let tool_calls = self.calls(&turn, &batch);
                self.say(stored, None, reasoning, None, tool_calls, ExtraFields::default());
            }
        }
        media
    }

    fn said(&mut self, turn: &Turn<'a>) -> Said<'a> {
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
                    let is_free = !said.names.contains("annotations");
                    let given = annotations
                        .as_ref()
                        .filter(|given| given.as_str().contains('{') && is_free && self.takes_annotations(turn));
                    if let Some(given) = given {
                        let raw = RawValue::from_string(given.as_str().to_owned()).unwrap_or_default();
                        said.extra.push((Cow::Borrowed("annotations"), Field::Json(raw)));
                        said.names.insert("annotations");
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
    fn is_too_blank(&self, text: &str) -> bool {
        self.manner.texts == Texts::NotBlank && is_blank(text)
    }

    /// The tool message. Its media have to follow in a user message.
    fn answer(&mut self, call: Call<'a>, media: &mut Vec<Part<'a>>) {
        let texts = match call.answer {
            Reply::Made(text) => vec![Cow::Borrowed(text)],
            Reply::Result { stored, chunk, output, is_error } => {
                self.result(stored, chunk, output, is_error, &call.id, media)
            }
        };
        let parts: Vec<_> = texts.into_iter().map(|text| Part::Text { text }).collect();
        let content = self.content(parts).unwrap_or(Content::Text(Cow::Borrowed("")));
        self.messages.push(Message::Tool { tool_call_id: call.id, content });
    }

    fn result(
        &mut self,
        stored: &'a StoredMessage,
        chunk: usize,
        output: &'a Output,
        is_error: bool,
        call_id: &str,
        media: &mut Vec<Part<'a>>,
    ) -> Vec<Cow<'a, str>> {
        let found_media = media.len();
        let mut texts = self.output(stored, chunk, output, call_id, media);
        let has_text = texts.iter().any(|text| !text.is_empty());
        if is_error && !has_text {
            return vec![failure(FAILED_WITHOUT_OUTPUT, stored, chunk, &mut self.report)];
        }
        // Reconcile's own answers say what they are.
        if is_error && stored.state != MessageState::Synthetic {
            self.note(Fact::ErrorFlagRemoved, stored, chunk);
        }
        if media.len() > found_media && texts.is_empty() {
            texts.push(Cow::Borrowed(OUTPUT_FOLLOWS));
        } else if !has_text && self.manner.texts != Texts::Any {
            self.note(Fact::OutputWorded { text: NO_OUTPUT }, stored, chunk);
            texts = vec![Cow::Borrowed(NO_OUTPUT)];
        }
        texts
    }

    /// The texts of a tool's output; its media are put after the batch.
    fn output(
        &mut self,
        stored: &'a StoredMessage,
        chunk: usize,
        output: &'a Output,
        call_id: &str,
        media: &mut Vec<Part<'a>>,
    ) -> Vec<Cow<'a, str>> {
        let mut texts = Vec::new();
        for piece in pieces(output, &Parts(self.manner), stored, chunk, &mut self.report) {
            match piece {
                Piece::Text(text) if !text.is_empty() && self.is_too_blank(&text) => {
                    self.note(Fact::TextBlank, stored, chunk);
                }
                Piece::Text(text) => texts.push(text),
                Piece::Part(part) => {
                    self.note(Fact::MediaMoved(Moved::Result), stored, chunk);
                    media.push(Part::Text { text: Cow::Owned(heading(call_id)) });
                    media.push(part);
                }
            }
        }
        texts
    }

    /// The content of a message that is not the user's.
    fn content(&self, parts: Vec<Part<'a>>) -> Option<Content<'a>> {
        if self.manner.arrays { Content::of(parts) } else { Content::joined(parts) }
    }

    fn note(&mut self, fact: Fact<'_>, stored: &StoredMessage, chunk: usize) {
        self.report.push(ReportLine::chunk(fact, stored, chunk));
    }
}

/// Whether the ids of a message's calls go back to the model that made them, as far as anybody can tell.
fn goes_back(stored: &StoredMessage, manner: &Manner, options: &PromptOptions) -> bool {
    let whose = || Whose::of(&stored.message.metadata, manner.providers, options.model.as_deref());
    manner.own_ids && options.model.is_some() && stored.message.metadata.model.is_some() && whose() == Whose::Own
}

/// The tools that were called.
fn called<'a>(messages: &[Message<'a>]) -> BTreeSet<Cow<'a, str>> {
    let calls = messages.iter().flat_map(|message| match message {
        Message::Assistant { tool_calls, .. } => tool_calls.as_slice(),
        _ => &[],
    });
    let name = |call: &AnyCall<'a>| match call {
        AnyCall::Made(call) => call.function.name.clone(),
        AnyCall::Raw(call) => call.name.clone(),
    };
    calls.map(name).collect()
}

/// The audio formats that the wire takes, by media type. Source: API reference, `input_audio.format`.
const AUDIO_FORMATS: &[(&str, &str)] =
    &[("audio/wav", "wav"), ("audio/x-wav", "wav"), ("audio/wave", "wav"), ("audio/mpeg", "mp3"), ("audio/mp3", "mp3")];

/// How attachments become parts.
pub(crate) struct Parts(pub(crate) &'static Manner);

impl<'a> Attach<'a> for Parts {
    type Part = Part<'a>;

    fn image(&self, image: &'a Image) -> Made<Part<'a>> {
        if self.0.images == ImagesTaken::Never {
            return Err(Unfit::NotTaken);
        }
        let picture = Picture::of(image)?;
        if let Picture::Address(url) = &picture
            && self.0.images == ImagesTaken::Data
        {
            return Err(Unfit::AddressNotTaken((*url).to_owned()));
        }
        let (url, mended) = picture.into_url();
        Ok((Part::ImageUrl { image_url: ImageUrl { url, detail: None } }, mended))
    }

    fn audio(&self, audio: &'a Audio) -> Made<Part<'a>> {
        if !self.0.audio {
            return Err(Unfit::NotTaken);
        }
        let found = Payload::of_audio(audio)?;
        let format = AUDIO_FORMATS.iter().find(|(name, _)| *name == found.media_type);
        let (_, format) = format.ok_or_else(|| Unfit::Type(found.media_type.to_owned(), "wav or mp3"))?;
        Ok((Part::InputAudio { input_audio: InputAudio { data: found.base64, format } }, found.mended))
    }

    fn file(&self, file: &'a File) -> Made<Part<'a>> {
        if !self.0.files {
            return Err(Unfit::NotTaken);
        }
        let found = Payload::of_file(file)?;
        let filename = Cow::Borrowed(file_name(file, "file"));
        Ok((Part::File { file: FilePart { filename, file_data: found.to_url() } }, found.mended))
    }
}
