//! The results of tools: all those of a message at the front of the user message directly after it (BC-09, BC-27).

use std::borrow::Cow;

use super::attach::Blocks;
use super::native::Given;
use super::renderer::Renderer;
use super::request::{Block, ToolResult};
use crate::history::MessageState;
use crate::history::report::{Fact, Moved};
use crate::model::Body;
use crate::provider::bedrock_converse::models::takes_documents_in_results;
use crate::provider::prompt::media::attachment::{OUTPUT_FOLLOWS, Piece, pieces};
use crate::provider::prompt::turns::{Call, FAILED_WITHOUT_OUTPUT, Origin, Reply};
use crate::provider::text::is_blank;

/// The output of a tool that gave nothing: the block of a result holds at least one.
const NO_OUTPUT: &str = "The tool gave no output.";

impl<'a> Renderer<'a> {
    /// The results of calls, and what has to follow them.
    pub(crate) fn results(&mut self, calls: Vec<Call<'a>>) -> Vec<Block<'a>> {
        let mut after = Vec::new();
        let mut blocks: Vec<Block<'a>> = calls.into_iter().map(|call| self.result(call, &mut after)).collect();
        blocks.append(&mut after);
        blocks
    }

    fn result(&mut self, call: Call<'a>, after: &mut Vec<Block<'a>>) -> Block<'a> {
        let (stored, chunk, output, is_error) = match call.answer {
            Reply::Made(text) => {
                let content = vec![Block::Text(Cow::Borrowed(text))];
                return Block::ToolResult(ToolResult { tool_use_id: call.id, content, status: Some("error") });
            }
            Reply::Result { stored, chunk, output, is_error } => (stored, chunk, output, is_error),
        };
        let given = stored.message.chunks.get(chunk).and_then(Given::of);
        if let Some(given) = given.filter(|given| given.is_result(&call.id, "user")) {
            return given.block(None);
        }
        let before = after.len();
        let documents = self.options.model.as_deref().and_then(takes_documents_in_results) == Some(true);
        let mut content = Vec::new();
        let attach = Blocks { origin: Origin { stored, chunk } };
        for piece in pieces(output, &attach, stored, chunk, &mut self.report) {
            match piece {
                Piece::Text(text) if is_blank(&text) => {
                    if !text.is_empty() {
                        self.note(Fact::TextBlank, stored, chunk);
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
                    self.note(Fact::MediaMoved(Moved::Result), stored, chunk);
                    after.push(Block::Text(Cow::Owned(format!("Output of the tool call {}:", call.id))));
                    let block = self.named(block, stored, chunk);
                    after.push(block);
                }
            }
        }
        let has_text = content.iter().any(|block| matches!(block, Block::Text(_)));
        if is_error && !has_text {
            self.note(Fact::FailureWorded { text: FAILED_WITHOUT_OUTPUT }, stored, chunk);
            content.insert(0, Block::Text(Cow::Borrowed(FAILED_WITHOUT_OUTPUT)));
        } else if content.is_empty() {
            let text = if after.len() > before { OUTPUT_FOLLOWS } else { NO_OUTPUT };
            self.note(Fact::OutputWorded { text }, stored, chunk);
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
