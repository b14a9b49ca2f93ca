//! What the user and the system say.

use std::borrow::Cow;

use super::attach::Blocks;
use super::native::Given;
use super::renderer::Renderer;
use super::request::Block;
use crate::history::StoredMessage;
use crate::history::report::{Cited, Fact, Moved, Taken, Unsent};
use crate::model::{Body, Chunk, Role};
use crate::provider::anthropic::manner::NAME;
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::turns::{Origin, Speaker, Turn};
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
                    self.note(Fact::MediaMoved(Moved::Role(Role::System)), turn.stored, at);
                    blocks.push(block);
                }
                _ => {
                    if turn.role == Role::System {
                        self.note(Fact::SaidByUser(Taken::LaterSystem), turn.stored, at);
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
                    self.note(Fact::AnnotationsRemoved(Cited::AssistantOnly), stored, at);
                }
                self.text(text, stored, at)
            }
            Body::Refusal { text } => self.refusal(text, stored, at),
            Body::Opaque { provider, kind, json } if self.manner.providers.contains(&provider.as_str()) => {
                let given = Given::read(json);
                let own = given.as_ref().and_then(|given| given.in_user_message(self.manner));
                let block = given.zip(own).map(|(given, own)| given.block(own, Some(origin)));
                if block.is_none() {
                    self.note(Fact::Removed { kind, why: Unsent::NotInRole(turn.role, NAME) }, stored, at);
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
            self.note(Fact::blank(text), stored, at);
            return None;
        }
        self.last_text = Some(Origin { stored, chunk: at });
        Some(Block::Text { text: Cow::Borrowed(text) })
    }

    pub(crate) fn refusal(&mut self, text: &'a str, stored: &'a StoredMessage, at: usize) -> Option<Block<'a>> {
        let block = self.text(text, stored, at)?;
        self.note(Fact::RefusalAsText, stored, at);
        Some(block)
    }

    pub(crate) fn unfit(&mut self, body: &Body, turn: &Turn<'_>, at: usize) {
        let (kind, why) = Unsent::of(body, turn.role, NAME, self.manner.providers);
        self.note(Fact::Removed { kind, why }, turn.stored, at);
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
