//! What the assistant says, and the results of its calls.

use std::borrow::Cow;
use std::iter::Peekable;
use std::mem;
use std::vec::IntoIter;

use super::hosted::Hosted;
use super::native::Given;
use super::plan::{Plan, Step};
use super::renderer::Renderer;
use super::request::{Block, OwnKind};
use super::thought::Thought;
use crate::history::StoredMessage;
use crate::history::report::{Arguments, Cited, Fact, Moved, Surrogates};
use crate::model::{Body, Chunk, Json, Role};
use crate::provider::prompt::arguments::{Mended, embedded};
use crate::provider::prompt::media::attachment::Attachment;
use crate::provider::prompt::turns::{Call, Speaker, Turn};

impl<'a> Renderer<'a> {
    pub(crate) fn assistant(&mut self, mut turn: Turn<'a>) {
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
                Step::Think(thought) => blocks.extend(self.thought(thought, turn.stored, thinking)),
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
            Body::Opaque { .. } => self.own_block(turn, at, chunk, plan),
            body => {
                plan.change();
                self.plan_media(body, turn, at, plan);
            }
        }
    }

    /// The text with its citations, where the provider made them.
    fn cited(&mut self, block: Block<'a>, text: &str, cited: &Option<Json>, turn: &Turn<'a>, at: usize) -> Block<'a> {
        let native = turn.stored.message.chunks.get(at).and_then(|chunk| chunk.native.as_ref());
        let given = Given::of(native).filter(|_| turn.is_by(self.manner.providers, None));
        match given.and_then(|given| given.text_block(text)) {
            Some((block, true)) => block,
            Some((block, false)) => {
                self.note(Fact::CitedFilesRemoved, turn.stored, at);
                block
            }
            None => {
                if cited.is_some() {
                    self.note(Fact::AnnotationsRemoved(Cited::OwnOnly), turn.stored, at);
                }
                block
            }
        }
    }

    /// Images and documents stand in the next user message, before its text (AN-20).
    fn plan_media(&mut self, body: &'a Body, turn: &Turn<'a>, at: usize, plan: &mut Plan<'a>) {
        let stored = turn.stored;
        let Some(attachment) = Attachment::of(body) else { return self.unfit(body, turn, at) };
        match self.place(attachment, stored, at) {
            block @ Block::Text { .. } => plan.steps.push(Step::Say(block)),
            block => {
                self.note(Fact::MediaMoved(Moved::Role(Role::Assistant)), stored, at);
                let text = |text| Block::Text { text: Cow::Borrowed(text) };
                plan.steps.push(Step::Say(text(attachment.moved())));
                plan.media.extend([text(attachment.by_assistant()), block]);
            }
        }
    }

    fn call(&mut self, call: &Call<'a>, stored: &'a StoredMessage) -> Block<'a> {
        self.called.insert(call.name.clone().into_owned());
        let input = embedded(&call.arguments);
        match input.mended {
            None => {}
            Some(Mended::Surrogates) => {
                self.note(Fact::SurrogatesReplaced(Surrogates::Arguments), stored, call.chunk);
            }
            Some(Mended::Depth) => {
                let fact = Fact::ArgumentsReplaced { why: Arguments::TooDeep, now: input.json.get() };
                self.note(fact, stored, call.chunk);
            }
        }
        if let Some(given) = stored.message.chunks.get(call.chunk).and_then(|chunk| Given::of(chunk.native.as_ref())) {
            if given.is_call(&call.id, &call.name, &input.json) {
                return given.block(OwnKind::Other, None);
            }
            self.note(Fact::Rebuilt { what: "block" }, stored, call.chunk);
        }
        Block::ToolUse { id: call.id.clone(), name: call.name.clone(), input: input.json }
    }
}
