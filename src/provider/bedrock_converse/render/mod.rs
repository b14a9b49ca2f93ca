//! A conversation as Converse takes it.
//!
//! What the user and the system say is here, with the limits of the request; `assistant` is what the model said, and the
//! results of its calls; `native` gives blocks back as they came; `media` are images and documents; `request` is what is sent.

mod assistant;
mod media;
mod native;
mod request;

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::error::Result;
use crate::history::report::{Cited, Fact};
use crate::history::{ReportLine, StoredMessage};
use crate::model::{Body, Chunk, Role};
use crate::provider::bedrock_converse::manner::PROVIDERS;
use crate::provider::bedrock_converse::models::is_claude;
use crate::provider::prompt::alternating::{Block as _, Dialogue};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::{PromptOptions, Thinking};
use crate::provider::prompt::render::{nothing_to_send, to_json};
use crate::provider::prompt::tool_id::{IdRule, NameRule};
use crate::provider::prompt::turns::{Origin, Speaker, Turn, turns};
use crate::provider::target::Target;
use media::{Blocks, Names, keep_to_limits};
use native::NativeBlock;
use request::{Block, Request, ToolConfig};

/// BC-12, as Claude takes it.
const IDS: IdRule = IdRule { min: 1, max: 64, allows: is_id_character };
/// BC-12, as others do. Recorded: Kimi's ids are `functions.get_weather:0`.
const WIDER_IDS: IdRule =
    IdRule { min: 1, max: 64, allows: |character| is_id_character(character) || matches!(character, '.' | ':') };
/// BC-13.
const NAMES: NameRule = NameRule::words(64);
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
