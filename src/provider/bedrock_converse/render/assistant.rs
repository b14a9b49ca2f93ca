//! What the model said: its blocks in their order, then the results of its calls.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ptr;

use super::native::Given;
use super::renderer::Renderer;
use super::request::{Block, Reasoning, ToolUse};
use crate::history::report::{Arguments, Fact, Moved, Surrogates, Thought as Why};
use crate::model::{Body, Chunk};
use crate::provider::bedrock_converse::manner::NAME;
use crate::provider::bedrock_converse::models::is_claude;
use crate::provider::prompt::arguments::{Mended, embedded};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::Thinking;
use crate::provider::prompt::origin::is_openais;
use crate::provider::prompt::turns::{Call, Reply, Speaker, Turn};

/// A chunk of the model's message: a block, or thinking that has none.
struct Slot<'a> {
    chunk: usize,
    block: Result<Block<'a>, Thought<'a>>,
}

struct Thought<'a> {
    text: &'a str,
    opaque: bool,
}

impl<'a> Renderer<'a> {
    pub(crate) fn assistant(&mut self, mut turn: Turn<'a>) {
        let mut calls = std::mem::take(&mut turn.calls).into_iter().peekable();
        let (mut slots, mut asked, mut media) = (Vec::new(), Vec::new(), Vec::new());
        // The results of tools that the provider ran, which stand in the same message.
        let mut hosted: HashMap<usize, Block<'a>> = HashMap::new();
        for (at, chunk) in turn.stored.message.chunks.iter().enumerate() {
            let block = match &chunk.body {
                Body::ToolCall { .. } => match calls.next_if(|call| call.chunk == at) {
                    Some(call) => {
                        let block = self.call(&turn, &call, chunk);
                        match self.hosted_result(&turn, &call) {
                            Some((position, result)) => _ = hosted.insert(position, result),
                            None => asked.push(call),
                        }
                        Ok(block)
                    }
                    None => continue,
                },
                Body::ToolResult { .. } => match hosted.remove(&at) {
                    Some(block) => Ok(block),
                    None => continue,
                },
                Body::Thinking { text, signature, redacted } => {
                    let opaque = signature.is_some() || redacted.is_some();
                    self.thought(&turn, at, text, signature.as_deref(), redacted.as_deref())
                        .ok_or(Thought { text, opaque })
                }
                _ => match self.said(&turn, at, chunk, "assistant") {
                    Some(block @ (Block::Image(_) | Block::Document(_) | Block::Video(_))) => {
                        self.note(Fact::MediaMoved(Moved::Role(turn.role)), turn.stored, at);
                        let text = |text| Block::Text(Cow::Borrowed(text));
                        let attachment = Attachment::of(&chunk.body);
                        media.extend(attachment.map(|attachment| text(attachment.by_assistant())));
                        media.push(block);
                        match attachment {
                            Some(attachment) => Ok(text(attachment.moved())),
                            None => continue,
                        }
                    }
                    Some(block) => Ok(block),
                    None => continue,
                },
            };
            slots.push(Slot { chunk: at, block });
        }
        let blocks = self.place_thinking(&turn, slots);
        self.say(Speaker::Assistant, blocks);
        let mut answers = self.results(asked);
        answers.append(&mut media);
        self.say(Speaker::User, answers);
    }

    fn call(&mut self, turn: &Turn<'a>, call: &Call<'a>, chunk: &'a Chunk) -> Block<'a> {
        self.called.insert(call.name.clone().into_owned());
        let input = embedded(&call.arguments);
        let given = Given::of(chunk).filter(|_| self.is_own(turn));
        if let Some(given) = given.filter(|given| given.is_call(&call.id, &call.name, input.json.get())) {
            return given.block(None);
        }
        self.note_anew(turn, call.chunk, chunk);
        match input.mended {
            None => {}
            Some(Mended::Surrogates) => {
                self.note(Fact::SurrogatesReplaced(Surrogates::Arguments), turn.stored, call.chunk);
            }
            Some(Mended::Depth) => {
                let fact = Fact::ArgumentsReplaced { why: Arguments::TooDeep, now: input.json.get() };
                self.note(fact, turn.stored, call.chunk);
            }
        }
        Block::ToolUse(ToolUse { tool_use_id: call.id.clone(), name: call.name.clone(), input: input.json })
    }

    /// The result of a tool that the provider ran, as it came, and its position in the message.
    fn hosted_result(&self, turn: &Turn<'a>, call: &Call<'a>) -> Option<(usize, Block<'a>)> {
        let Reply::Result { stored, chunk, .. } = &call.answer else { return None };
        let is_hosted = matches!(
            turn.stored.message.chunks.get(call.chunk).map(|chunk| &chunk.body),
            Some(Body::ToolCall { server: true, .. })
        );
        let given = Given::of(stored.message.chunks.get(*chunk)?).filter(|_| self.is_own(turn))?;
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
        let whose = self.whose(turn);
        if self.options.thinking != Thinking::Native || !whose.is_own() {
            return None;
        }
        let chunk = turn.stored.message.chunks.get(at)?;
        let unsigned = self.options.model.as_deref().and_then(is_claude) == Some(false);
        if let Some(given) = Given::of(chunk).filter(|given| given.is_thought(text, unsigned)) {
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
        self.report.extend(whose.note(turn.stored, at));
        Some(Block::ReasoningContent(reasoning))
    }

    /// The blocks of the message. Thinking that has none is text in tags, or left out.
    fn place_thinking(&mut self, turn: &Turn<'a>, slots: Vec<Slot<'a>>) -> Vec<Block<'a>> {
        let is_all = slots.iter().all(|slot| slot.block.is_err());
        let tags = self.options.thinking.tags(is_all);
        let mut blocks = Vec::new();
        for Slot { chunk, block } in slots {
            match block {
                Ok(block) => blocks.push(block),
                Err(Thought { text, .. }) if tags && !text.is_empty() => {
                    self.note(self.options.thinking.tagging(), turn.stored, chunk);
                    blocks.push(Block::Text(Cow::Owned(Thinking::tagged(text))));
                }
                Err(Thought { text, opaque }) => {
                    let why = match self.options.thinking {
                        Thinking::Omit => Why::AsAsked,
                        _ if text.is_empty() && !opaque => Why::Empty,
                        Thinking::Tagged => Why::NoText,
                        _ if opaque && !self.is_own(turn) => Why::Foreign,
                        _ if opaque && turn.stored.message.metadata.provider.is_none() => Why::Encrypted,
                        _ if opaque => Why::Unsigned,
                        _ => Why::NotForModel,
                    };
                    self.note(Fact::ThinkingRemoved { why, text }, turn.stored, chunk);
                }
            }
        }
        blocks
    }
}
