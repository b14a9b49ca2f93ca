//! What the assistant says, its thinking as it came or not at all (AN-21 to AN-26, AN-43); and the results of its calls, all
//! those of a message in one user message directly after it, before anything else (AN-10 to AN-12).

use std::borrow::Cow;
use std::iter::Peekable;
use std::mem;
use std::vec::IntoIter;

use serde_json::value::RawValue;

use super::Renderer;
use super::hosted::Hosted;
use super::media::Blocks;
use super::native::NativeBlock;
use super::plan::{Form, Plan, Step, Thought};
use super::request::{Block, Content, RawKind};
use crate::history::StoredMessage;
use crate::history::report::{Cited, Fact, Moved, Thought as Why};
use crate::model::{Body, Chunk, Json, Output};
use crate::provider::anthropic::manner::NAME;
use crate::provider::anthropic::read::request::block as read_block;
use crate::provider::prompt::alternating::Block as _;
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::options::Thinking;
use crate::provider::prompt::origin::is_openais;
use crate::provider::prompt::output::{FAILED_WITHOUT_OUTPUT, Piece, failure, heading, pieces};
use crate::provider::prompt::turns::{Call, Origin, Reply, Speaker, Turn};
use crate::provider::text::is_blank;

/// What becomes of the thinking of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Blocks of the provider's own.
    Native,
    /// Text in tags.
    Tagged,
    /// Nothing, and why.
    LeftOut(Why),
}

impl<'a> Renderer<'a> {
    pub(super) fn assistant(&mut self, mut turn: Turn<'a>) {
        let calls = mem::take(&mut turn.calls);
        let plan = self.plan(&turn, calls);
        let thinking = self.use_of_thinking(&turn, &plan);
        let (mut blocks, mut calls) = (Vec::new(), Vec::new());
        for step in plan.steps {
            match step {
                Step::Say(block) => blocks.push(block),
                Step::Ask(block, asked) => {
                    blocks.push(block);
                    self.asked.push(asked);
                }
                Step::Think(thought) => blocks.extend(self.thought(thought, &turn, thinking)),
                Step::Call(call) => {
                    blocks.push(self.call(&call, turn.stored));
                    calls.push(call);
                }
                Step::Answer => {
                    self.say(Speaker::Assistant, mem::take(&mut blocks));
                    let results = self.results(mem::take(&mut calls));
                    self.say(Speaker::User, results);
                }
            }
        }
        self.say(Speaker::Assistant, blocks);
        if !self.is_paused() {
            self.close(!calls.is_empty());
        }
        let mut results = self.results(calls);
        results.extend(plan.media);
        self.say(Speaker::User, results);
    }

    fn plan(&mut self, turn: &Turn<'a>, calls: Vec<Call<'a>>) -> Plan<'a> {
        let mut hosted = self.hosted(turn, &calls);
        let mut calls = calls.into_iter().peekable();
        let mut plan = Plan::default();
        let mut expected = turn.begins;
        for (at, chunk) in turn.stored.message.chunks.iter().enumerate() {
            // What was taken out of the message left a gap in its indexes.
            if turn.stored.chunk_index(at) != expected {
                plan.change();
            }
            expected = turn.stored.chunk_index(at).saturating_add(1);
            self.plan_chunk(turn, at, chunk, &mut calls, &mut hosted, &mut plan);
        }
        plan
    }

    fn plan_chunk(
        &mut self,
        turn: &Turn<'a>,
        at: usize,
        chunk: &'a Chunk,
        calls: &mut Peekable<IntoIter<Call<'a>>>,
        hosted: &mut Hosted<'a>,
        plan: &mut Plan<'a>,
    ) {
        let stored = turn.stored;
        let call = calls.next_if(|call| call.chunk == at);
        if let Some(block) = hosted.blocks.remove(&at) {
            plan.steps.push(Step::Say(block));
            if let Some(result) = hosted.results.remove(&at) {
                plan.change();
                plan.steps.push(Step::Say(result));
            }
            return;
        }
        match &chunk.body {
            Body::ToolCall { id, name, arguments, .. } => {
                let Some(call) = call else { return };
                if (id.as_str(), name.as_str(), arguments.as_str()) != (&call.id, &call.name, &call.arguments) {
                    plan.change();
                }
                plan.steps.push(Step::Call(call));
            }
            Body::ToolResult { .. } => {
                plan.change();
                // The caller's results end the turn: nothing goes on with what the provider had not ended.
                if plan.answer() {
                    self.unanswered.clear();
                }
            }
            Body::Thinking { .. } => plan.steps.extend(Thought::of(chunk, at).map(Step::Think)),
            Body::Text { text, annotations } => {
                let block = self.text(text, stored, at).map(|block| self.cited(block, text, annotations, turn, at));
                // Before all else a blank text says nothing: the thinking after it comes first.
                if block.is_some() || !plan.steps.is_empty() {
                    plan.extend(block);
                }
            }
            Body::Refusal { text } => {
                plan.change();
                plan.extend(self.refusal(text, stored, at));
            }
            Body::Opaque { .. } => self.opaque(turn, at, chunk, plan),
            body => {
                plan.change();
                self.plan_media(body, turn, at, plan);
            }
        }
    }

    /// The text with its citations, where the provider made them.
    fn cited(&mut self, block: Block<'a>, text: &str, cited: &Option<Json>, turn: &Turn<'a>, at: usize) -> Block<'a> {
        let native = turn.stored.message.chunks.get(at).and_then(|chunk| chunk.native.as_ref());
        let given = NativeBlock::of(native).filter(|_| turn.is_by(self.manner.providers, None));
        match given.and_then(|given| given.text_block(text)) {
            Some((block, true)) => block,
            Some((block, false)) => {
                self.dialogue.note(Fact::CitedFilesRemoved, turn.stored, at);
                block
            }
            None => {
                if cited.is_some() {
                    self.dialogue.note(Fact::AnnotationsRemoved(Cited::OwnOnly), turn.stored, at);
                }
                block
            }
        }
    }

    /// Images and documents stand in the next user message, before its text (AN-20).
    fn plan_media(&mut self, body: &'a Body, turn: &Turn<'a>, at: usize, plan: &mut Plan<'a>) {
        let Some(attachment) = Attachment::of(body) else { return self.dialogue.note_unsent(turn, at, body) };
        let block = match self.place(attachment, turn.stored, at) {
            block @ Block::Text { .. } => block,
            block => self.dialogue.move_media(attachment, block, turn, at, &mut plan.media),
        };
        plan.steps.push(Step::Say(block));
    }

    fn call(&mut self, call: &Call<'a>, stored: &'a StoredMessage) -> Block<'a> {
        let input = self.dialogue.input(call);
        self.dialogue.note_mended(&input, stored, call.chunk);
        if let Some(given) =
            stored.message.chunks.get(call.chunk).and_then(|chunk| NativeBlock::of(chunk.native.as_ref()))
        {
            if given.is_call(&call.id, &call.name, &input.json) {
                return given.block(RawKind::Other, None);
            }
            self.dialogue.note(Fact::Rebuilt { what: "block" }, stored, call.chunk);
        }
        Block::ToolUse { id: call.id.clone(), name: call.name.clone(), input: input.json }
    }

    fn use_of_thinking(&self, turn: &Turn<'a>, plan: &Plan<'a>) -> Use {
        let mut thoughts =
            plan.steps.iter().filter_map(|step| if let Step::Think(thought) = step { Some(thought) } else { None });
        // What OpenAI encrypted is its own, also where nobody states it.
        let is_own = self.dialogue.is_own(turn)
            && !turn.said().any(|(_, chunk)| {
                matches!(&chunk.body, Body::Thinking { signature: Some(signature), .. } if is_openais(signature))
            });
        match self.dialogue.options().thinking {
            Thinking::Tagged => Use::Tagged,
            Thinking::Omit => Use::LeftOut(Why::AsAsked),
            Thinking::Native if plan.is_thinking_only() => Use::Tagged,
            Thinking::Native if !is_own => Use::LeftOut(Why::Foreign),
            Thinking::Native if thoughts.any(|thought| thought.form.is_none()) => Use::LeftOut(Why::Unsigned),
            Thinking::Native if !plan.keeps_thinking(self.may_think()) => Use::LeftOut(Why::OutOfPlace),
            Thinking::Native => Use::Native,
        }
    }

    fn thought(&mut self, thought: Thought<'a>, turn: &Turn<'a>, wanted: Use) -> Option<Block<'a>> {
        let why = match (wanted, thought.form) {
            (Use::Native, Some(Form::Signed { signature })) => {
                self.dialogue.note_origin(turn, thought.chunk);
                return Some(Block::Thinking { thinking: thought.text, signature });
            }
            (Use::Native, Some(Form::Redacted { data })) => {
                self.dialogue.note_origin(turn, thought.chunk);
                return Some(Block::RedactedThinking { data });
            }
            (Use::Tagged, _) if !is_blank(thought.text) => {
                self.dialogue.note(self.dialogue.options().thinking.tagging(), turn.stored, thought.chunk);
                return Some(Block::text(Thinking::tagged(thought.text)));
            }
            (Use::LeftOut(why), _) => why,
            (Use::Native | Use::Tagged, _) if thought.text.is_empty() && !thought.is_opaque => Why::Empty,
            (Use::Native | Use::Tagged, _) => Why::NoText,
        };
        self.dialogue.note(Fact::ThinkingRemoved { why, text: thought.text }, turn.stored, thought.chunk);
        None
    }

    /// The results of calls, and what has to follow them.
    fn results(&mut self, calls: Vec<Call<'a>>) -> Vec<Block<'a>> {
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
        let native = stored.message.chunks.get(chunk).and_then(|chunk| chunk.native.as_ref());
        if let Some(given) = NativeBlock::of(native) {
            let is_same = || native.is_some_and(|native| says(&native.json, output));
            if let Some(block) = given.result(&call.id, self.manner, is_same) {
                return block;
            }
            // What the provider itself ran is sent as if the caller had run it.
            self.dialogue.note(Fact::Rebuilt { what: "block" }, stored, chunk);
        }
        let before = after.len();
        let content = match output {
            Output::Text(text) if is_blank(text) => {
                if !text.is_empty() {
                    self.dialogue.note(Fact::TextBlank, stored, chunk);
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
                Content::Text(failure(text, stored, chunk, self.dialogue.report()))
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
        for piece in pieces(output, &attach, stored, chunk, self.dialogue.report()) {
            match (piece, &mut after) {
                (Piece::Text(text), _) if is_blank(&text) => self.dialogue.note(Fact::blank(&text), stored, chunk),
                (Piece::Text(text), _) => blocks.push(Block::Text { text }),
                (Piece::Part(block), None) => blocks.push(block),
                (Piece::Part(block), Some((id, after))) => {
                    self.dialogue.note(Fact::MediaMoved(Moved::Failure), stored, chunk);
                    after.extend([Block::text(heading(id)), block]);
                }
            }
        }
        blocks
    }
}

/// Whether a block is a result with this output.
fn says(block: &Json, output: &Output) -> bool {
    let read = serde_json::from_str::<&RawValue>(block.as_str()).ok().and_then(|raw| read_block(raw, NAME));
    matches!(read, Some(Chunk { body: Body::ToolResult { output: said, .. }, .. }) if said == *output)
}
