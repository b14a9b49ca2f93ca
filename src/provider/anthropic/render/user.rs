//! What the user and the system say.

use std::borrow::Cow;

use super::attach::Blocks;
use super::native::Given;
use super::renderer::Renderer;
use super::request::{Block, Origin, Speaker};
use crate::history::Rule;
use crate::history::StoredMessage;
use crate::model::{Body, Chunk, Role};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::turns::Turn;
use crate::provider::text::is_blank;

impl<'a> Renderer<'a> {
    /// A message of the user, or of the system: what it says at the beginning has a place of its own, what it says later is
    /// said by the user there (AN-04: few models take the role).
    pub(crate) fn user(&mut self, turn: &Turn<'a>) {
        let leads = turn.role == Role::System && self.messages.is_empty();
        let mut blocks = Vec::new();
        for (at, chunk) in turn.said() {
            let Some(block) = self.said(turn, at, chunk) else { continue };
            match block {
                Block::Text { .. } if leads => self.system.push(block),
                _ if leads => {
                    let detail = "system messages hold text only: it stands in a user message behind";
                    self.note(Rule::MediaMoved, turn.stored, at, detail);
                    blocks.push(block);
                }
                _ => {
                    if turn.role == Role::System {
                        let detail = "a later system message: it is said by the user in this prompt";
                        self.note(Rule::RoleChanged, turn.stored, at, detail);
                    }
                    blocks.push(block);
                }
            }
        }
        self.say(Speaker::User, blocks);
    }

    fn said(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Block<'a>> {
        let stored = turn.stored;
        let origin = Origin { stored, chunk: at };
        match &chunk.body {
            Body::Text { text, annotations } => {
                if annotations.is_some() {
                    let detail = "the target takes annotations of its own text only; the text stays";
                    self.note(Rule::LeftOut, stored, at, detail);
                }
                self.text(text, stored, at)
            }
            Body::Refusal { text } => self.refusal(text, stored, at),
            Body::Opaque { provider, json, .. } if self.manner.providers.contains(&provider.as_str()) => {
                let given = Given::read(json);
                let kind = given.as_ref().and_then(|given| given.in_user_message(self.manner));
                let block = given.zip(kind).map(|(given, kind)| given.block(kind, Some(origin)));
                if block.is_none() {
                    self.note(Rule::LeftOut, stored, at, "a block that the target does not take in this place");
                }
                block
            }
            other => match Attachment::of(other) {
                Some(attachment) => Some(self.place(attachment, stored, at)),
                None => {
                    self.unfit(other, turn, at);
                    None
                }
            },
        }
    }

    /// Text that says something.
    pub(crate) fn text(&mut self, text: &'a str, stored: &'a StoredMessage, at: usize) -> Option<Block<'a>> {
        if is_blank(text) {
            self.note(Rule::LeftOut, stored, at, "a blank text");
            return None;
        }
        self.last_text = Some(Origin { stored, chunk: at });
        Some(Block::Text { text: Cow::Borrowed(text) })
    }

    pub(crate) fn refusal(&mut self, text: &'a str, stored: &'a StoredMessage, at: usize) -> Option<Block<'a>> {
        let block = self.text(text, stored, at)?;
        self.note(Rule::Altered, stored, at, "the refusal is text in this prompt");
        Some(block)
    }

    pub(crate) fn unfit(&mut self, body: &Body, turn: &Turn<'_>, at: usize) {
        let detail = format!("a chunk of the kind {}: {} messages of the target hold none", body.kind(), turn.role);
        self.note(Rule::LeftOut, turn.stored, at, detail);
    }

    /// The block, or the words that stand in its place.
    pub(crate) fn place(&mut self, attachment: Attachment<'a>, stored: &'a StoredMessage, at: usize) -> Block<'a> {
        let origin = Origin { stored, chunk: at };
        let placed = attachment.place(&Blocks { manner: self.manner, origin }, stored, at, &mut self.report);
        placed.unwrap_or_else(|text| {
            self.last_text = Some(origin);
            Block::Text { text }
        })
    }
}
