//! A conversation as Converse takes it.
//!
//! What each side says is here, with the limits of the request; `native` gives blocks back as they came; `media` are images and
//! documents; `request` is what is sent.
//!
//! What the model said: its blocks in their order, then the results of its calls, all of them at the front of the user
//! message directly after it (BC-09, BC-27).

mod media;
mod native;
mod request;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ptr;

use serde_json::value::RawValue;

use super::manner::{NAME, PROVIDERS};
use super::models::{is_claude, takes_documents_in_results};
use crate::error::Result;
use crate::history::report::{Cited, Fact, Moved, Thought as Why};
use crate::history::{MessageState, ReportLine, StoredMessage};
use crate::model::{Body, Chunk, Role};
use crate::provider::prompt::alternating::{Block as _, Dialogue, Slot, Thought};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::{PromptOptions, Thinking};
use crate::provider::prompt::origin::is_openais;
use crate::provider::prompt::output::{
    FAILED_WITHOUT_OUTPUT, NO_OUTPUT, OUTPUT_FOLLOWS, Piece, failure, heading, pieces,
};
use crate::provider::prompt::render::{nothing_to_send, to_json};
use crate::provider::prompt::tool_id::{IdRule, NameRule};
use crate::provider::prompt::turns::{Call, Origin, Reply, Speaker, Turn, turns};
use crate::provider::target::Target;
use crate::provider::text::is_blank;
use media::{Blocks, Names, keep_to_limits};
use native::NativeBlock;
use request::{Block, Reasoning, Request, ToolConfig, ToolResult, ToolUse};

/// BC-12, as Claude takes it.
const IDS: IdRule = IdRule { min: 1, max: 64, allows: is_id_character };
/// BC-12, as others do. Recorded: Kimi's ids are `functions.get_weather:0`.
const WIDER_IDS: IdRule =
    IdRule { min: 1, max: 64, allows: |character| is_id_character(character) || matches!(character, '.' | ':') };
/// BC-13.
pub(crate) const NAMES: NameRule = NameRule::words(64);
/// Said by nobody, beside a document that has no words (BC-18).
const WORDLESS: &str = "The document is attached.";

fn is_id_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

pub(crate) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let mut report = Vec::new();
    let is_others = options.model.as_deref().and_then(is_claude) == Some(false);
    let turns = turns(messages, |_| if is_others { WIDER_IDS } else { IDS }, NAMES, &mut report);
    let dialogue = Dialogue::new(target, PROVIDERS, options, report);
    let mut renderer = Renderer { dialogue, names: Names::default() };
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
    dialogue: Dialogue<'a, Block<'a>>,
    /// Of its documents.
    names: Names,
}

impl<'a> Renderer<'a> {
    /// A message that is not the model's.
    fn user(&mut self, turn: &Turn<'a>) {
        let is_first = self.dialogue.is_first(turn);
        let mut blocks = Vec::new();
        for (at, chunk) in turn.said() {
            let given = NativeBlock::of(chunk).filter(|given| is_first && given.is("cachePoint"));
            let block = match given {
                Some(given) => Some(given.block(None)),
                None => self.block(turn, at, chunk, "user"),
            };
            let Some(block) = block else { continue };
            // What came with the system's words stays there: text, or what is none of a message's kinds of content.
            let is_given =
                matches!(block, Block::Raw(_)) && matches!(chunk.body, Body::Text { .. } | Body::Opaque { .. });
            let is_systems = is_given || block.is_text();
            blocks.extend(self.dialogue.take_system(turn, at, block, is_systems));
        }
        self.say(Speaker::User, blocks);
    }

    /// A chunk that is neither a call, nor a result, nor thinking, in a message of this role.
    fn block(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk, role: &str) -> Option<Block<'a>> {
        let own = role == "user" || self.dialogue.is_own(turn);
        if let Some(block) =
            NativeBlock::of(chunk).filter(|_| own).and_then(|given| self.given(given, chunk, turn, at, role))
        {
            return Some(block);
        }
        match &chunk.body {
            Body::Text { text, annotations } => {
                self.dialogue.note_rebuilt("block", turn, at, chunk);
                if annotations.is_some() {
                    self.dialogue.note(Fact::AnnotationsRemoved(Cited::OwnOnly), turn.stored, at);
                }
                self.dialogue.text(text, turn.stored, at)
            }
            Body::Refusal { text } => self.dialogue.refusal(text, turn.stored, at),
            Body::Opaque { provider, json, .. } if own && PROVIDERS.contains(&provider.as_str()) => {
                // Thinking that came in a block of the provider's stays or goes as the options ask.
                let is_asked = self.dialogue.options().thinking == Thinking::Native;
                let given = NativeBlock::read(json).filter(|given| {
                    !given.is("toolUse") && !given.is("toolResult") && (is_asked || !given.is("reasoningContent"))
                });
                let block = given.and_then(|given| self.given(given, chunk, turn, at, role));
                if block.is_none() {
                    self.dialogue.note_unsent(turn, at, &chunk.body);
                }
                block
            }
            body => match Attachment::of(body) {
                Some(attachment) => {
                    self.dialogue.note_rebuilt("block", turn, at, chunk);
                    Some(self.place(attachment, turn.stored, at))
                }
                None => {
                    self.dialogue.note_unsent(turn, at, body);
                    None
                }
            },
        }
    }

    /// The block that a chunk came as, if a message of this role may hold it.
    fn given(
        &mut self,
        given: NativeBlock<'a>,
        chunk: &Chunk,
        turn: &Turn<'a>,
        at: usize,
        role: &str,
    ) -> Option<Block<'a>> {
        let fits = match &chunk.body {
            Body::Text { text, .. } => given.is_text(text, role),
            _ => given.fits(role),
        };
        if !fits || given.is("text") && !matches!(chunk.body, Body::Text { .. }) {
            return None;
        }
        let origin = given.is("document").then_some(Origin { stored: turn.stored, chunk: at });
        if origin.is_some() && !given.document_name().is_some_and(|name| self.names.take(name)) {
            return None;
        }
        Some(given.block(origin))
    }

    /// The block, or the words that stand in its place.
    fn place(&mut self, attachment: Attachment<'a>, stored: &'a StoredMessage, at: usize) -> Block<'a> {
        let blocks = Blocks { origin: Origin { stored, chunk: at } };
        match attachment.place(&blocks, stored, at, self.dialogue.report()) {
            Ok(block) => self.named(block, stored, at),
            Err(text) => Block::Text(text),
        }
    }

    /// The block, a document with a name that it may have.
    fn named(&mut self, mut block: Block<'a>, stored: &StoredMessage, at: usize) -> Block<'a> {
        if let Block::Document(document) = &mut block {
            let name = self.names.next(&document.name);
            if !document.name.is_empty() && document.name != name {
                self.dialogue.note(Fact::DocumentRenamed { to: &name }, stored, at);
            }
            document.name = name;
        }
        block
    }

    fn say(&mut self, role: Speaker, mut blocks: Vec<Block<'a>>) {
        let document = blocks.iter().position(|block| block.document().is_some());
        if let Some(at) = document.filter(|_| !blocks.iter().any(Block::is_text)) {
            if let Some(Origin { stored, chunk }) = blocks.get(at).and_then(Block::document) {
                self.dialogue.note(Fact::DocumentWorded { text: WORDLESS }, stored, chunk);
            }
            blocks.insert(at, Block::Text(Cow::Borrowed(WORDLESS)));
        }
        self.dialogue.say(role, blocks);
    }

    fn finish(mut self, target: Target) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
        if self.dialogue.last().is_none() {
            return Err(nothing_to_send(target));
        }
        let (messages, report) = self.dialogue.messages();
        keep_to_limits(messages, report);
        // BC-07, BC-14.
        self.dialogue.bridge();
        let tools = self.dialogue.tools(NAMES, true)?;
        let tool_config = (!tools.is_empty()).then_some(ToolConfig { tools });
        let (system, messages, report) = self.dialogue.into_parts();
        Ok((to_json(&Request { system, messages, tool_config })?, report))
    }
}

impl<'a> Renderer<'a> {
    pub(super) fn assistant(&mut self, mut turn: Turn<'a>) {
        let mut calls = std::mem::take(&mut turn.calls).into_iter().peekable();
        let (mut slots, mut asked, mut media): (Vec<Slot<'a, _>>, _, _) = (Vec::new(), Vec::new(), Vec::new());
        // The results of tools that the provider ran, which stand in the same message.
        let mut hosted: HashMap<usize, Block<'a>> = HashMap::new();
        for (at, chunk) in turn.stored.message.chunks.iter().enumerate() {
            let slot = match &chunk.body {
                Body::ToolCall { .. } => {
                    let Some(call) = calls.next_if(|call| call.chunk == at) else { continue };
                    let block = self.call(&turn, &call, chunk);
                    match self.hosted_result(&turn, &call) {
                        Some((position, result)) => _ = hosted.insert(position, result),
                        None => asked.push(call),
                    }
                    Ok(block)
                }
                Body::ToolResult { .. } => match hosted.remove(&at) {
                    Some(block) => Ok(block),
                    None => continue,
                },
                Body::Thinking { text, signature, redacted } => {
                    let is_opaque = signature.is_some() || redacted.is_some();
                    self.thought(&turn, at, text, signature.as_deref(), redacted.as_deref()).ok_or(Thought {
                        text,
                        is_opaque,
                        block: None,
                    })
                }
                body => match self.block(&turn, at, chunk, "assistant") {
                    Some(block @ (Block::Image(_) | Block::Document(_) | Block::Video(_))) => {
                        let Some(attachment) = Attachment::of(body) else { continue };
                        Ok(self.dialogue.move_media(attachment, block, &turn, at, &mut media))
                    }
                    Some(block) => Ok(block),
                    None => continue,
                },
            };
            slots.push((at, slot));
        }
        let blocks = self.dialogue.place_thinking(&turn, slots, |is_opaque, _| match is_opaque {
            true if turn.stored.message.metadata.provider.is_none() => Why::Encrypted,
            true => Why::Unsigned,
            false => Why::NotForModel,
        });
        self.say(Speaker::Assistant, blocks);
        let mut after = Vec::new();
        let mut answers: Vec<_> = asked.into_iter().map(|call| self.result(call, &mut after)).collect();
        answers.append(&mut after);
        answers.append(&mut media);
        self.say(Speaker::User, answers);
    }

    fn call(&mut self, turn: &Turn<'a>, call: &Call<'a>, chunk: &'a Chunk) -> Block<'a> {
        let input = self.dialogue.input(call);
        let given = NativeBlock::of(chunk).filter(|_| self.dialogue.is_own(turn));
        if let Some(given) = given.filter(|given| given.is_call(&call.id, &call.name, input.json.get())) {
            return given.block(None);
        }
        self.dialogue.note_rebuilt("block", turn, call.chunk, chunk);
        self.dialogue.note_mended(&input, turn.stored, call.chunk);
        Block::ToolUse(ToolUse { tool_use_id: call.id.clone(), name: call.name.clone(), input: input.json })
    }

    /// The result of a tool that the provider ran, as it came, and its position in the message.
    fn hosted_result(&self, turn: &Turn<'a>, call: &Call<'a>) -> Option<(usize, Block<'a>)> {
        let Reply::Result { stored, chunk, .. } = &call.answer else { return None };
        let is_hosted = matches!(
            turn.stored.message.chunks.get(call.chunk).map(|chunk| &chunk.body),
            Some(Body::ToolCall { server: true, .. })
        );
        let given = NativeBlock::of(stored.message.chunks.get(*chunk)?).filter(|_| self.dialogue.is_own(turn))?;
        let is_here = is_hosted && ptr::eq(*stored, turn.stored) && *chunk > call.chunk;
        (is_here && given.is_result(&call.id, "assistant")).then(|| (*chunk, given.block(None)))
    }

    /// The thought as the model takes it back: its own, with its signature where it signs.
    fn thought(
        &mut self,
        turn: &Turn<'a>,
        at: usize,
        text: &'a str,
        signature: Option<&'a str>,
        redacted: Option<&'a str>,
    ) -> Option<Block<'a>> {
        if self.dialogue.options().thinking != Thinking::Native || !self.dialogue.is_own(turn) {
            return None;
        }
        let chunk = turn.stored.message.chunks.get(at)?;
        let unsigned = self.dialogue.model().and_then(is_claude) == Some(false);
        if let Some(given) = NativeBlock::of(chunk).filter(|given| given.is_thought(text, unsigned)) {
            return Some(given.block(None));
        }
        // What came from another wire does not fit its signature, and what OpenAI encrypted is its own.
        if chunk.native.as_ref().is_some_and(|native| native.wire != NAME) || signature.is_some_and(is_openais) {
            return None;
        }
        let reasoning = match (signature, redacted) {
            (Some(signature), None) if !signature.is_empty() && !text.is_empty() => {
                Reasoning::ReasoningText { text, signature }
            }
            (None, Some(data)) if !data.is_empty() && text.is_empty() => Reasoning::RedactedContent(data),
            _ => return None,
        };
        self.dialogue.note_origin(turn, at);
        Some(Block::ReasoningContent(reasoning))
    }

    fn result(&mut self, call: Call<'a>, after: &mut Vec<Block<'a>>) -> Block<'a> {
        let (stored, chunk, output, is_error) = match call.answer {
            Reply::Made(text) => {
                let content = vec![Block::Text(Cow::Borrowed(text))];
                return Block::ToolResult(ToolResult { tool_use_id: call.id, content, status: Some("error") });
            }
            Reply::Result { stored, chunk, output, is_error } => (stored, chunk, output, is_error),
        };
        let given = stored.message.chunks.get(chunk).and_then(NativeBlock::of);
        if let Some(given) = given.filter(|given| given.is_result(&call.id, "user")) {
            return given.block(None);
        }
        let before = after.len();
        let documents = self.dialogue.model().and_then(takes_documents_in_results) == Some(true);
        let mut content = Vec::new();
        let attach = Blocks { origin: Origin { stored, chunk } };
        for piece in pieces(output, &attach, stored, chunk, self.dialogue.report()) {
            match piece {
                Piece::Text(text) if is_blank(&text) => {
                    if !text.is_empty() {
                        self.dialogue.note(Fact::TextBlank, stored, chunk);
                    }
                }
                Piece::Text(text) => content.push(Block::Text(text)),
                Piece::Part(block @ Block::Image(_)) => content.push(block),
                Piece::Part(block @ Block::Document(_)) if documents => {
                    let block = self.named(block, stored, chunk);
                    content.push(block);
                }
                // Not every model takes them in a result.
                Piece::Part(block) => {
                    self.dialogue.note(Fact::MediaMoved(Moved::Result), stored, chunk);
                    let block = self.named(block, stored, chunk);
                    after.extend([Block::text(heading(&call.id)), block]);
                }
            }
        }
        let has_text = content.iter().any(Block::is_text);
        if is_error && !has_text {
            let text = failure(FAILED_WITHOUT_OUTPUT, stored, chunk, self.dialogue.report());
            content.insert(0, Block::Text(text));
        } else if content.is_empty() {
            let text = if after.len() > before { OUTPUT_FOLLOWS } else { NO_OUTPUT };
            self.dialogue.note(Fact::OutputWorded { text }, stored, chunk);
            content.push(Block::Text(Cow::Borrowed(text)));
        }
        let is_made = stored.state == MessageState::Synthetic;
        let status = match stored.message.chunks.get(chunk).map(|chunk| &chunk.body) {
            _ if is_error || is_made => Some("error"),
            Some(Body::ToolResult { is_error: Some(false), .. }) => Some("success"),
            _ => None,
        };
        Block::ToolResult(ToolResult { tool_use_id: call.id, content, status })
    }
}
