//! A conversation as Anthropic Messages takes it, and as Bedrock does.
//!
//! What the user and the system say is here, with how the request ends; `assistant` is what the model said, of which `plan`
//! decides what becomes, and the results of its calls; `hosted` are tools that the provider ran; `native` gives blocks back as
//! they came; `media` are images and documents; `request` is what is sent.

mod assistant;
mod hosted;
mod media;
pub(crate) mod native;
mod plan;
mod request;

use std::borrow::Cow;
use std::collections::HashSet;
use std::mem;

use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Error, Result};
use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::history::report::{Cited, Fact, Unsent};
use crate::model::{Body, Chunk, Role};
use crate::provider::anthropic::manner::{Manner, NAME};
use crate::provider::anthropic::models::refuses_prefill;
use crate::provider::prompt::alternating::{Block as _, Dialogue, Message};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::render::{nothing_to_send, to_json};
use crate::provider::prompt::tool_id::IdRule;
use crate::provider::prompt::turns::{Origin, Speaker, Turn, turns};
use crate::provider::target::Target;
use crate::provider::text::without_end;
use media::{Blocks, keep_to_limits};
use native::NativeBlock;
use plan::Asked;
use request::{Block, Raw, RawKind, Request};

/// AN-16; the length is Bedrock's (BR-01), so that a history may move.
const IDS: IdRule = IdRule { min: 1, max: 64, allows: is_id_character };
/// Bytes of a request (AN-42).
const BYTES: usize = 32 * 1024 * 1024;
/// Messages of a request (AN-01).
const MESSAGES: usize = 100_000;

fn is_id_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

pub(crate) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let manner = Manner::of(target);
    let mut report = Vec::new();
    let turns = turns(messages, |_| IDS, manner.names, &mut report);
    let mut renderer = Renderer {
        manner,
        dialogue: Dialogue::new(target, manner.providers, options, report),
        server_calls: HashSet::new(),
        unanswered: HashSet::new(),
        asked: Vec::new(),
        last_text: None,
    };
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
    dialogue: Dialogue<'a, Block<'a>>,
    /// The ids of the calls that the provider ran itself.
    server_calls: HashSet<String>,
    /// Which of them, in blocks of the provider's own, have no result in what is planned so far.
    unanswered: HashSet<String>,
    /// The calls in the last message that the provider runs itself, in blocks of its own.
    asked: Vec<Asked<'a>>,
    /// Whose text was said last.
    last_text: Option<Origin<'a>>,
}

impl<'a> Renderer<'a> {
    /// A message of the user, or of the system: few models take its role later than at the beginning (AN-04).
    fn user(&mut self, turn: &Turn<'a>) {
        let mut blocks = Vec::new();
        for (at, chunk) in turn.said() {
            let Some(block) = self.block(turn, at, chunk) else { continue };
            let is_text = block.is_text();
            blocks.extend(self.dialogue.take_system(turn, at, block, is_text));
        }
        self.say(Speaker::User, blocks);
    }

    fn block(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Block<'a>> {
        let stored = turn.stored;
        if let Some(given) = self.given_file(chunk, Origin { stored, chunk: at }) {
            return Some(given);
        }
        match &chunk.body {
            Body::Text { text, annotations } => {
                if annotations.is_some() {
                    self.dialogue.note(Fact::AnnotationsRemoved(Cited::AssistantOnly), stored, at);
                }
                self.text(text, stored, at)
            }
            Body::Refusal { text } => self.refusal(text, stored, at),
            Body::Opaque { provider, kind, json } if self.manner.providers.contains(&provider.as_str()) => {
                let given = NativeBlock::read(json);
                let block = given.and_then(|given| given.user_block(self.manner, Origin { stored, chunk: at }));
                if block.is_none() {
                    self.dialogue.note(Fact::Removed { kind, why: Unsent::NotInRole(turn.role, NAME) }, stored, at);
                }
                block
            }
            other => match Attachment::of(other) {
                Some(attachment) => Some(self.place(attachment, stored, at)),
                None => {
                    self.dialogue.note_unsent(turn, at, other);
                    None
                }
            },
        }
    }

    /// The block that a file came as, if it still says the same, and a user message may hold it.
    fn given_file(&self, chunk: &'a Chunk, origin: Origin<'a>) -> Option<Block<'a>> {
        let Body::File(file) = &chunk.body else { return None };
        let given = NativeBlock::of(chunk.native.as_ref()).filter(|given| given.file().as_ref() == Some(file))?;
        given.user_block(self.manner, origin)
    }

    fn text(&mut self, text: &'a str, stored: &'a StoredMessage, at: usize) -> Option<Block<'a>> {
        let block = self.dialogue.text(text, stored, at)?;
        self.last_text = Some(Origin { stored, chunk: at });
        Some(block)
    }

    fn refusal(&mut self, text: &'a str, stored: &'a StoredMessage, at: usize) -> Option<Block<'a>> {
        let block = self.dialogue.refusal(text, stored, at)?;
        self.last_text = Some(Origin { stored, chunk: at });
        Some(block)
    }

    /// The block, or the words that stand in its place.
    fn place(&mut self, attachment: Attachment<'a>, stored: &'a StoredMessage, at: usize) -> Block<'a> {
        let origin = Origin { stored, chunk: at };
        let blocks = Blocks { manner: self.manner, origin };
        attachment.place(&blocks, stored, at, self.dialogue.report()).unwrap_or_else(|text| {
            self.last_text = Some(origin);
            Block::text(text)
        })
    }

    fn say(&mut self, speaker: Speaker, blocks: Vec<Block<'a>>) {
        if let (Speaker::User, Some(first)) = (speaker, blocks.first()) {
            self.close(first.is_tool_result());
        }
        self.dialogue.say(speaker, blocks);
    }

    /// Whether the provider paused the turn, to go on with it when it is sent back: it ends with a call that the provider runs.
    fn is_paused(&mut self) -> bool {
        let last = self.dialogue.last_said().and_then(|said| said.last());
        matches!(last, Some(Block::Raw(raw)) if raw.kind == RawKind::ServerCall)
    }

    /// The turn ends: calls that the provider ran, and did not end, get a result that they failed, unless they wait for the
    /// results of tools.
    fn close(&mut self, waits: bool) {
        if self.dialogue.last_said().is_none() {
            return;
        }
        for Asked { id, made_result, origin } in mem::take(&mut self.asked) {
            if !self.unanswered.remove(&id) || waits {
                continue;
            }
            if let (Some(said), Some(json)) =
                (self.dialogue.last_said(), made_result.and_then(|result| to_raw_value(&result).ok()))
            {
                said.push(Block::Raw(Raw { json, kind: RawKind::ServerResult, origin: None }));
                self.dialogue.note(Fact::CallClosed, origin.stored, origin.chunk);
            }
        }
    }

    /// Whether a message of the assistant may begin with thinking here: it is the first of its side, or the provider's own
    /// tools gave their results last.
    fn may_think(&self) -> bool {
        let allows = |last: &Message<Block<'_>>| {
            last.role == Speaker::User || last.content.last().is_some_and(Block::is_server_result)
        };
        self.dialogue.last().is_none_or(allows)
    }

    fn finish(mut self, target: Target) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
        if self.dialogue.last().is_none() {
            return Err(nothing_to_send(target));
        }
        let (messages, report) = self.dialogue.messages();
        keep_to_limits(messages, report);
        self.end();
        let tools = self.dialogue.tools(self.manner.names, self.manner.declares)?;
        let (system, messages, report) = self.dialogue.into_parts();
        if messages.len() > MESSAGES {
            return Err(Error::TooLarge(format!("{} messages, {target} takes {MESSAGES}", messages.len())));
        }
        let request = to_json(&Request { system, messages, tools })?;
        if request.get().len() > BYTES {
            return Err(Error::TooLarge(format!("{} bytes, {target} takes {BYTES}", request.get().len())));
        }
        Ok((request, report))
    }

    /// The assistant's words are continued where the model is known to do so, and answered elsewhere. A paused turn is sent
    /// back as it is: the provider goes on with it.
    fn end(&mut self) {
        if self.is_paused() {
            return;
        }
        let takes_prefill = self.dialogue.model().and_then(refuses_prefill) == Some(false);
        let Some(Block::Text { text }) =
            self.dialogue.last_said().filter(|_| takes_prefill).and_then(|said| said.last_mut())
        else {
            return self.dialogue.bridge();
        };
        let trimmed = without_end(text);
        if trimmed.len() < text.len() {
            *text = Cow::Owned(trimmed.to_owned());
            if let Some(Origin { stored, chunk }) = self.last_text {
                self.dialogue.note(Fact::EndTrimmed, stored, chunk);
            }
        }
    }
}
