//! The results of tools: all those of a message in one user message directly after it, before anything else
//! (AN-10 to AN-12).

use std::borrow::Cow;

use super::attach::Blocks;
use super::native::Given;
use super::renderer::Renderer;
use super::request::{Block, Content, OwnKind};
use crate::history::StoredMessage;
use crate::history::report::{Fact, Moved};
use crate::model::Output;
use crate::provider::prompt::media::attachment::{Piece, pieces};
use crate::provider::prompt::turns::{Call, FAILED_WITHOUT_OUTPUT, Origin, Reply};
use crate::provider::text::is_blank;

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
                let content = Some(Content::Text(Cow::Borrowed(text)));
                return Block::ToolResult { tool_use_id: call.id, content, is_error: true };
            }
            Reply::Result { stored, chunk, output, is_error } => (stored, chunk, output, is_error),
        };
        if let Some(given) = stored.message.chunks.get(chunk).and_then(|chunk| Given::of(chunk.native.as_ref())) {
            if given.is_result(&call.id, self.manner) {
                return given.block(OwnKind::ToolResult, None);
            }
            // What the provider itself ran is sent as if the caller had run it.
            self.note(Fact::Rebuilt { what: "block" }, stored, chunk);
        }
        let before = after.len();
        let content = match output {
            Output::Text(text) if is_blank(text) => {
                if !text.is_empty() {
                    self.note(Fact::TextBlank, stored, chunk);
                }
                None
            }
            Output::Text(text) => Some(Content::Text(Cow::Borrowed(text))),
            Output::Parts(_) => {
                let blocks = self.output(stored, chunk, output, is_error.then_some((&call.id, &mut *after)));
                Some(Content::Blocks(blocks)).filter(|content| !content.is_empty())
            }
        };
        let content = content.or_else(|| {
            is_error.then(|| {
                let follows = after.len() > before;
                let text = if follows { "The tool failed; its output follows." } else { FAILED_WITHOUT_OUTPUT };
                self.note(Fact::FailureWorded { text }, stored, chunk);
                Content::Text(Cow::Borrowed(text))
            })
        });
        Block::ToolResult { tool_use_id: call.id, content, is_error }
    }

    /// The parts of an output. What a failure may not hold (AN-40) is put after the results.
    fn output(
        &mut self,
        stored: &'a StoredMessage,
        chunk: usize,
        output: &'a Output,
        mut after: Option<(&String, &mut Vec<Block<'a>>)>,
    ) -> Vec<Block<'a>> {
        let attach = Blocks { manner: self.manner, origin: Origin { stored, chunk } };
        let mut blocks = Vec::new();
        for piece in pieces(output, &attach, stored, chunk, &mut self.report) {
            match (piece, &mut after) {
                (Piece::Text(text), _) if is_blank(&text) => self.note(Fact::blank(&text), stored, chunk),
                (Piece::Text(text), _) => blocks.push(Block::Text { text }),
                (Piece::Part(block), None) => blocks.push(block),
                (Piece::Part(block), Some((id, after))) => {
                    self.note(Fact::MediaMoved(Moved::Failure), stored, chunk);
                    after.push(Block::Text { text: Cow::Owned(format!("Output of the tool call {id}:")) });
                    after.push(block);
                }
            }
        }
        blocks
    }
}
