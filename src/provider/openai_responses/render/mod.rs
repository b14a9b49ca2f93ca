//! A conversation as OpenAI Responses takes it, statelessly: all of it in `input`, nothing by reference.
//!
//! What others than the model say is here, and what calls are answered. System messages stay where they were said, as items of
//! the role system; only a first one that came as `instructions` is that again. `assistant` is what the model said, `items` are
//! the provider's own, `native` gives back what it wrote, `request` is what is sent. Images, audio and files are parts.

mod assistant;
mod items;
mod native;
mod request;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use serde_json::value::RawValue;

use super::manner::{Manner, NAME, PROVIDER};
use crate::error::{Error, Result};
#[cfg(feature = "server")]
use crate::history::Conversation;
use crate::history::report::{Cited, Fact, Mended, Moved, Unfit, Unsent};
use crate::history::{MessageState, ReportLine, Rule, StoredMessage};
use crate::model::{Audio, Body, Chunk, File, Image, Role};
use crate::provider::prompt::media::attachment::{Attach, Attachment, Made, Payload, Picture, file_name};
use crate::provider::prompt::media::bytes::is_web_address;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::output::{FAILED_WITHOUT_OUTPUT, Piece, failure, pieces};
#[cfg(feature = "server")]
use crate::provider::prompt::render::render_with;
use crate::provider::prompt::render::{nothing_to_send, to_json};
use crate::provider::prompt::tool_id::{IdRule, NameRule};
use crate::provider::prompt::tools::declared;
use crate::provider::prompt::turns::{CONTINUE, Reply, Turn, turns};
use crate::provider::target::Target;
use native::{NativeItem, Pairs};
use request::{Content, Entry, Item, Output, Part, Request};

/// OR-13.
const IDS: IdRule = IdRule { min: 1, max: 64, allows: |character| !character.is_control() };
/// OR-16.
pub(crate) const NAMES: NameRule = NameRule::words(128);
/// Characters in one output (OR-26).
const OUTPUT: usize = 10_485_760;

pub(crate) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let (instructions, mut renderer) = said(target, messages, options, true)?;
    let tools = declared(&options.tools, NAMES, BTreeSet::new(), &mut renderer.report)?;
    let tools = tools.into_iter().map(Into::into).collect();
    let input = std::mem::take(&mut renderer.input).into_iter().map(|(entry, _)| entry).collect();
    let request = to_json(&Request { instructions, input, tools })?;
    Ok((request, renderer.into_report()))
}

/// Where an item of the input comes from: messages and chunks by their indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A chunk, or several from this one on.
    Chunk { message: u64, chunk: u32 },
    /// Nothing: it answers a call that has no answer.
    MadeFor { message: u64, chunk: u32 },
    /// Nothing of the conversation.
    Nobody,
}

/// An item of the input as JSON, and its source.
#[cfg(feature = "server")]
type SentItem = (Box<RawValue>, Source);

/// The items that a prompt has, and its report. Instructions are an item, too.
#[cfg(feature = "server")]
pub(crate) fn items(conversation: &Conversation, options: &PromptOptions) -> Result<(Vec<SentItem>, Vec<ReportLine>)> {
    let target = Target::OPENAI_RESPONSES;
    render_with(target, conversation, options, |messages| {
        let (_, mut renderer) = said(target, messages, options, false)?;
        let input = std::mem::take(&mut renderer.input).into_iter();
        let items = input.map(|(entry, source)| Ok((to_json(&entry)?, source))).collect::<Result<_>>()?;
        Ok((items, renderer.into_report()))
    })
}

/// What is said. `apart`: the instructions are no item.
fn said<'a>(
    target: Target,
    messages: &'a [StoredMessage],
    options: &'a PromptOptions,
    apart: bool,
) -> Result<(Option<&'a str>, Renderer<'a>)> {
    let manner = Manner::of(target);
    let mut report = Vec::new();
    let turns = turns(messages, |_| IDS, NAMES, &mut report);
    let instructions = turns.first().filter(|_| apart).and_then(instructions);
    let (pairs, stored) = (Pairs::find(&turns, manner.providers), turns.iter().map(|turn| turn.stored).collect());
    let mut renderer = Renderer {
        manner,
        options,
        report,
        input: Vec::new(),
        ids: HashSet::new(),
        customs: HashSet::new(),
        pairs,
        stored,
        at: 0,
    };
    let mut is_said = false;
    for (at, turn) in turns.into_iter().enumerate().skip(usize::from(instructions.is_some())) {
        renderer.at = at;
        // What was called is answered.
        is_said = turn.role == Role::Assistant && turn.calls.is_empty();
        match turn.role {
            Role::Assistant => renderer.assistant(turn)?,
            _ => renderer.given(&turn),
        }
    }
    if renderer.input.is_empty() {
        return Err(nothing_to_send(target));
    }
    if is_said && options.continue_last {
        renderer.ask_to_continue(target);
    }
    Ok((instructions, renderer))
}

/// The parts of a message, and the chunk that it begins with.
#[derive(Default)]
struct Parted<'a> {
    content: Vec<Content<'a>>,
    begins: Option<usize>,
}

impl<'a> Parted<'a> {
    fn push(&mut self, chunk: usize, part: Content<'a>) {
        self.begins.get_or_insert(chunk);
        self.content.push(part);
    }
}

/// The source of a chunk at a position.
fn source(stored: &StoredMessage, at: usize) -> Source {
    if stored.state == MessageState::Synthetic {
        return Source::Nobody;
    }
    Source::Chunk { message: stored.index, chunk: stored.chunk_index(at) }
}

/// The source of what answers the call at a position.
fn made_for(stored: &StoredMessage, at: usize) -> Source {
    Source::MadeFor { message: stored.index, chunk: stored.chunk_index(at) }
}

/// What is said so far.
struct Renderer<'a> {
    manner: &'static Manner,
    options: &'a PromptOptions,
    report: Vec<ReportLine>,
    input: Vec<(Entry<'a>, Source)>,
    /// The server's ids of items that were given back (OR-06).
    ids: HashSet<String>,
    /// The calls of custom tools, by message and chunk index: their input is not repaired.
    customs: HashSet<(u64, u32)>,
    /// Calls of tools that are no functions, and their answers.
    pairs: Pairs,
    /// The messages of the turns.
    stored: Vec<&'a StoredMessage>,
    /// The position of the turn that is being said.
    at: usize,
}

impl<'a> Renderer<'a> {
    /// A message that is not the model's.
    fn given(&mut self, turn: &Turn<'a>) {
        let (mut content, mut media) = (Parted::default(), Parted::default());
        let role = if turn.role == Role::System { "system" } else { "user" };
        for (at, chunk) in turn.said() {
            if self.is_given_item(turn, at, chunk) {
                self.message(role, turn, std::mem::take(&mut content));
                self.given_item(turn, at, chunk);
                continue;
            }
            let part = match self.part(turn, at, chunk) {
                Some(part) => part,
                None => continue,
            };
            let is_text = matches!(part, Content::Part(Part::InputText { .. }));
            if is_text || turn.role == Role::User {
                content.push(at, part);
            } else {
                self.note_moved(turn, at);
                media.push(at, part);
            }
        }
        self.message(role, turn, content);
        self.message("user", turn, media);
    }

    fn part(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Content<'a>> {
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
                let given = NativeItem::read(json).filter(|given| given.is_part_for("user"));
                if given.is_none() {
                    self.note_none(turn, at, chunk);
                }
                given.map(|given| Content::Raw(given.whole()))
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
            self.note(Fact::TextEmpty, turn.stored, at);
            return None;
        }
        Some(Part::InputText { text: Cow::Borrowed(text) })
    }

    /// This wire has no way to go on with what the model said.
    fn ask_to_continue(&mut self, target: Target) {
        let place = format!("{}[{}]", target.wire().messages, self.input.len());
        self.report.push(ReportLine::new(Fact::NotContinued).at(place.clone()));
        self.report.push(ReportLine::new(Fact::BridgeAdded { text: CONTINUE }).at(place));
        let content = vec![Part::InputText { text: Cow::Borrowed(CONTINUE) }.into()];
        self.input.push((Entry::Item(Item::Message { role: "user", content }), Source::Nobody));
    }

    fn message(&mut self, role: &'static str, turn: &Turn<'a>, Parted { content, begins }: Parted<'a>) {
        if let Some(at) = begins {
            self.input.push((Entry::Item(Item::Message { role, content }), source(turn.stored, at)));
        }
    }

    /// What a call is answered (OR-26).
    fn output(&mut self, answer: &Reply<'a>) -> Result<Output<'a>> {
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
        let is_made = stored.state == MessageState::Synthetic;
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
    fn into_report(self) -> Vec<ReportLine> {
        let Self { mut report, customs, .. } = self;
        if !customs.is_empty() {
            let place = |line: &ReportLine| line.message_index.zip(line.chunk_index);
            let is_custom = |line: &ReportLine| place(line).is_some_and(|place| customs.contains(&place));
            report.retain(|line| line.rule != Rule::ArgumentsRepaired || !is_custom(line));
        }
        report
    }

    fn note(&mut self, fact: Fact<'_>, stored: &StoredMessage, chunk: usize) {
        self.report.push(ReportLine::chunk(fact, stored, chunk));
    }

    fn note_moved(&mut self, turn: &Turn<'_>, at: usize) {
        self.note(Fact::MediaMoved(Moved::Role(turn.role)), turn.stored, at);
    }

    fn note_none(&mut self, turn: &Turn<'_>, at: usize, chunk: &Chunk) {
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
    NativeItem::of(chunk).filter(|given| given.is_input(kinds)).map(|given| Content::Raw(given.whole()))
}

/// What a message says that came as the request's `instructions`.
fn instructions<'a>(turn: &Turn<'a>) -> Option<&'a str> {
    let [chunk] = turn.stored.message.chunks.as_slice() else { return None };
    let Body::Text { text, annotations: None } = &chunk.body else { return None };
    let given = NativeItem::of(chunk).filter(|given| turn.role == Role::System && given.is_instructions(text));
    given.map(|_| text.as_str()).filter(|text| !text.is_empty())
}

/// How attachments become parts.
pub(crate) struct Parts;

impl<'a> Attach<'a> for Parts {
    type Part = Part<'a>;

    /// OR-23.
    fn image(&self, image: &'a Image) -> Made<Part<'a>> {
        let (image_url, mended) = Picture::of(image)?.into_url();
        Ok((Part::InputImage { image_url }, mended))
    }

    /// There is no part for audio (OR-17).
    fn audio(&self, _: &'a Audio) -> Made<Part<'a>> {
        Err(Unfit::NotTaken)
    }

    /// OR-24.
    fn file(&self, file: &'a File) -> Made<Part<'a>> {
        match (Payload::of_file(file), file.url.as_deref().filter(|url| is_web_address(url))) {
            (Ok(found), _) => {
                let (filename, file_data) = (Some(file_name(file, "file")), Some(found.to_url()));
                Ok((Part::InputFile { filename, file_data, file_url: None }, found.mended))
            }
            (Err(_), Some(url)) => {
                let mended = file.name.is_some().then_some(Mended::AddressHasNoName);
                Ok((Part::InputFile { filename: None, file_data: None, file_url: Some(url) }, mended))
            }
            (Err(why), None) => Err(why),
        }
    }
}
