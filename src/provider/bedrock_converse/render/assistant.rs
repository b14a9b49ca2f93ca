//! What the model said: its blocks in their order, then the results of its calls, all of them at the front of the user
//! message directly after it (BC-09, BC-27).

use std::borrow::Cow;
use std::collections::HashMap;
use std::ptr;

use super::Renderer;
use super::media::Blocks;
use super::native::NativeBlock;
use super::request::{Block, Reasoning, ToolResult, ToolUse};
use crate::history::MessageState;
use crate::history::report::{Fact, Moved, Thought as Why};
use crate::model::{Body, Chunk};
use crate::provider::bedrock_converse::manner::NAME;
use crate::provider::bedrock_converse::models::{is_claude, takes_documents_in_results};
use crate::provider::prompt::alternating::{Block as _, Slot, Thought};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::Thinking;
use crate::provider::prompt::origin::is_openais;
use crate::provider::prompt::output::{
    FAILED_WITHOUT_OUTPUT, NO_OUTPUT, OUTPUT_FOLLOWS, Piece, failure, heading, pieces,
};
use crate::provider::prompt::turns::{Call, Origin, Reply, Speaker, Turn};
use crate::provider::text::is_blank;

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
