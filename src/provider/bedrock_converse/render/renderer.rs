//! What is said so far, on its way into a request: roles alternate.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::attach::Blocks;
use super::names::Names;
use super::native::Given;
use super::request::{Block, Message};
use crate::history::report::{Cited, Fact, Moved, Taken, Unsent};
use crate::history::{ReportLine, StoredMessage};
use crate::model::{Body, Chunk, Role};
use crate::provider::bedrock_converse::manner::{NAME, PROVIDERS};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::{PromptOptions, Thinking};
use crate::provider::prompt::origin::Whose;
use crate::provider::prompt::turns::{BEGINNING, Origin, Speaker, Turn};
use crate::provider::text::is_blank;

/// Said by nobody, beside a document that has no words (BC-18).
const WORDLESS: &str = "The document is attached.";

pub(super) struct Renderer<'a> {
    pub(super) options: &'a PromptOptions,
    pub(super) report: Vec<ReportLine>,
    pub(super) system: Vec<Block<'a>>,
    pub(super) messages: Vec<Message<'a>>,
    /// The tools that were called.
    pub(super) called: BTreeSet<String>,
    pub(super) names: Names,
}

impl<'a> Renderer<'a> {
    /// A message that is not the model's. What the system says at the beginning has a place of its own; what it says later is
    /// said by the user there.
    pub(super) fn user(&mut self, turn: &Turn<'a>) {
        let leads = turn.role == Role::System && self.messages.is_empty();
        let mut blocks = Vec::new();
        for (at, chunk) in turn.said() {
            let given = Given::of(chunk).filter(|given| leads && given.is("cachePoint"));
            let block = match given {
                Some(given) => Some(given.block(None)),
                None => self.said(turn, at, chunk, "user"),
            };
            match block {
                None => {}
                Some(block @ Block::Text(_)) if leads => self.system.push(block),
                Some(block @ Block::Own(_)) if leads && is_systems(chunk) => self.system.push(block),
                Some(block) if leads => {
                    self.note(Fact::MediaMoved(Moved::Role(turn.role)), turn.stored, at);
                    blocks.push(block);
                }
                Some(block) => {
                    if turn.role == Role::System {
                        self.note(Fact::SaidByUser(Taken::LaterSystem), turn.stored, at);
                    }
                    blocks.push(block);
                }
            }
        }
        self.say(Speaker::User, blocks);
    }

    /// A chunk that is neither a call, nor a result, nor thinking, in a message of this role.
    pub(super) fn said(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk, role: &str) -> Option<Block<'a>> {
        let own = role == "user" || self.is_own(turn);
        if let Some(block) = Given::of(chunk).filter(|_| own).and_then(|given| self.given(given, chunk, turn, at, role))
        {
            return Some(block);
        }
        match &chunk.body {
            Body::Text { text, annotations } => {
                self.note_anew(turn, at, chunk);
                if annotations.is_some() {
                    self.note(Fact::AnnotationsRemoved(Cited::OwnOnly), turn.stored, at);
                }
                self.text(turn, at, text)
            }
            Body::Refusal { text } => {
                let block = self.text(turn, at, text)?;
                self.note(Fact::RefusalAsText, turn.stored, at);
                Some(block)
            }
            Body::Opaque { provider, json, .. } if own && PROVIDERS.contains(&provider.as_str()) => {
                // Thinking that came in a block of the provider's stays or goes as the options ask.
                let is_asked = self.options.thinking == Thinking::Native;
                let given = Given::read(json).filter(|given| {
                    !given.is("toolUse") && !given.is("toolResult") && (is_asked || !given.is("reasoningContent"))
                });
                let block = given.and_then(|given| self.given(given, chunk, turn, at, role));
                if block.is_none() {
                    self.note_none(turn, at, chunk);
                }
                block
            }
            body => match Attachment::of(body) {
                Some(attachment) => {
                    self.note_anew(turn, at, chunk);
                    Some(self.place(attachment, turn.stored, at))
                }
                None => {
                    self.note_none(turn, at, chunk);
                    None
                }
            },
        }
    }

    /// The block that a chunk came as, if a message of this role may hold it.
    fn given(&mut self, given: Given<'a>, chunk: &Chunk, turn: &Turn<'a>, at: usize, role: &str) -> Option<Block<'a>> {
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

    /// Text that says something (BC-08).
    pub(super) fn text(&mut self, turn: &Turn<'a>, at: usize, text: &'a str) -> Option<Block<'a>> {
        if is_blank(text) {
            self.note(Fact::blank(text), turn.stored, at);
            return None;
        }
        Some(Block::Text(Cow::Borrowed(text)))
    }

    /// The block, or the words that stand in its place.
    fn place(&mut self, attachment: Attachment<'a>, stored: &'a StoredMessage, at: usize) -> Block<'a> {
        let placed = attachment.place(&Blocks { origin: Origin { stored, chunk: at } }, stored, at, &mut self.report);
        match placed {
            Ok(block) => self.named(block, stored, at),
            Err(text) => Block::Text(text),
        }
    }

    /// The block, a document with a name that it may have.
    pub(super) fn named(&mut self, mut block: Block<'a>, stored: &StoredMessage, at: usize) -> Block<'a> {
        if let Block::Document(document) = &mut block {
            let name = self.names.next(&document.name);
            if !document.name.is_empty() && document.name != name {
                self.note(Fact::DocumentRenamed { to: &name }, stored, at);
            }
            document.name = name;
        }
        block
    }

    /// Adds to the message of the speaker, or begins one.
    pub(super) fn say(&mut self, role: Speaker, mut blocks: Vec<Block<'a>>) {
        if blocks.is_empty() {
            return;
        }
        if self.messages.is_empty() && role == Speaker::Assistant {
            let added = Fact::TurnAdded { role: Role::User, text: BEGINNING };
            self.report.push(ReportLine::new(added).at("messages[0]"));
            self.say(Speaker::User, vec![Block::Text(Cow::Borrowed(BEGINNING))]);
        }
        let document = blocks.iter().position(|block| block.document().is_some());
        if let Some(at) = document.filter(|_| !blocks.iter().any(|block| matches!(block, Block::Text(_)))) {
            let origin = blocks.get(at).and_then(Block::document);
            if let Some(Origin { stored, chunk }) = origin {
                self.note(Fact::DocumentWorded { text: WORDLESS }, stored, chunk);
            }
            blocks.insert(at, Block::Text(Cow::Borrowed(WORDLESS)));
        }
        match self.messages.last_mut().filter(|last| last.role == role) {
            Some(last) => last.content.append(&mut blocks),
            None => self.messages.push(Message { role, content: blocks }),
        }
    }

    /// Whether the provider itself made the message, as far as it is known.
    pub(super) fn is_own(&self, turn: &Turn<'_>) -> bool {
        self.whose(turn).is_own()
    }

    pub(super) fn whose(&self, turn: &Turn<'_>) -> Whose {
        turn.whose(PROVIDERS, self.options.model.as_deref())
    }

    pub(super) fn note(&mut self, fact: Fact<'_>, stored: &StoredMessage, chunk: usize) {
        self.report.push(ReportLine::chunk(fact, stored, chunk));
    }

    pub(super) fn note_none(&mut self, turn: &Turn<'_>, at: usize, chunk: &Chunk) {
        let (kind, why) = Unsent::of(&chunk.body, turn.role, NAME, PROVIDERS);
        self.note(Fact::Removed { kind, why }, turn.stored, at);
    }

    /// A chunk's own block, if it has one of this wire, is not what is sent.
    pub(super) fn note_anew(&mut self, turn: &Turn<'_>, at: usize, chunk: &Chunk) {
        if chunk.native.as_ref().is_some_and(|native| native.wire == NAME) {
            self.note(Fact::Rebuilt { what: "block" }, turn.stored, at);
        }
    }
}

/// Whether a block that came with the system's words stays there: text, or what is none of a message's kinds of content.
fn is_systems(chunk: &Chunk) -> bool {
    matches!(chunk.body, Body::Text { .. } | Body::Opaque { .. })
}
