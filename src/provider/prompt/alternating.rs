//! The messages of a prompt so far, on wires where user and assistant take turns.
//!
//! What one side says before the other does is one message, an array of blocks. Each message depends only on what precedes
//! it, so a longer prompt begins with the bytes of the shorter one. A wire's renderer makes the blocks. This file decides who
//! says them, and what has to be added.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;

use super::arguments::{Embedded, Mended, embedded};
use super::foreign::as_text;
use super::media::attachment::Attachment;
use super::options::{PromptOptions, Thinking};
use super::origin::Whose;
use super::tool_id::NameRule;
use super::tools::{Declared, declared};
use super::turns::{BEGINNING, BRIDGE, CONTINUE, Call, Speaker, Turn};
use crate::error::Result;
use crate::history::report::{Arguments, Fact, Moved, Surrogates, Taken, Thought as Why, Unsent};
use crate::history::{ReportLine, StoredMessage};
use crate::model::{Body, Chunk, Role};
use crate::provider::target::Target;
use crate::provider::text::is_blank;

/// A block of a message.
pub(crate) trait Block<'a>: Sized {
    fn text(text: impl Into<Cow<'a, str>>) -> Self;

    fn is_text(&self) -> bool;
}

#[derive(Debug, Serialize)]
pub(crate) struct Message<B> {
    pub(crate) role: Speaker,
    /// Always an array: a later message of the same role adds to it.
    pub(crate) content: Vec<B>,
    /// Whether what the same side says next is a message of its own.
    #[serde(skip)]
    is_closed: bool,
}

/// Thinking, and the block of its own that may stand for it.
#[derive(Debug)]
pub(crate) struct Thought<'a, B> {
    pub(crate) text: &'a str,
    /// Whether it has a signature, or encrypted data.
    pub(crate) is_opaque: bool,
    pub(crate) block: Option<B>,
}

/// A chunk of the assistant's: its position in the message, and what it becomes.
pub(crate) type Slot<'a, B> = (usize, std::result::Result<B, Thought<'a, B>>);

/// What is said so far.
#[derive(Debug)]
pub(crate) struct Dialogue<'a, B> {
    target: Target,
    /// Whose blocks the target takes back.
    providers: &'static [&'static str],
    options: &'a PromptOptions,
    report: Vec<ReportLine>,
    system: Vec<B>,
    messages: Vec<Message<B>>,
    /// The tools that were called.
    called: BTreeSet<String>,
}

impl<'a, B: Block<'a>> Dialogue<'a, B> {
    pub(crate) fn new(
        target: Target,
        providers: &'static [&'static str],
        options: &'a PromptOptions,
        report: Vec<ReportLine>,
    ) -> Self {
        let (system, messages, called) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { target, providers, options, report, system, messages, called }
    }

    /// Adds to the message of the speaker, or begins one. The user begins.
    pub(crate) fn say(&mut self, role: Speaker, mut blocks: Vec<B>) {
        if blocks.is_empty() {
            return;
        }
        if self.messages.is_empty() && role == Speaker::Assistant {
            self.add(Fact::TurnAdded { role: Role::User, text: BEGINNING }, BEGINNING);
        }
        match self.messages.last_mut().filter(|last| last.role == role && !last.is_closed) {
            Some(last) => last.content.append(&mut blocks),
            None => self.messages.push(Message { role, content: blocks, is_closed: false }),
        }
    }

    /// A message of the user's that nothing is added to.
    pub(crate) fn say_apart(&mut self, blocks: Vec<B>) {
        if !blocks.is_empty() {
            self.messages.push(Message { role: Speaker::User, content: blocks, is_closed: true });
        }
    }

    /// The user speaks last.
    pub(crate) fn bridge(&mut self) {
        if self.last_said().is_some() {
            let text = if self.options.continue_last { CONTINUE } else { BRIDGE };
            if self.options.continue_last {
                let place = self.next_place();
                self.report.push(ReportLine::new(Fact::NotContinued).at(place));
            }
            self.add(Fact::BridgeAdded { text }, text);
        }
    }

    fn next_place(&self) -> String {
        format!("{}[{}]", self.target.wire().messages, self.messages.len())
    }

    /// Says in the user's name what nobody said.
    fn add(&mut self, fact: Fact<'_>, text: &'static str) {
        let place = self.next_place();
        self.report.push(ReportLine::new(fact).at(place));
        self.say(Speaker::User, vec![B::text(text)]);
    }

    /// A block of a message that is not the assistant's: given back if the user says it. What the system says at the beginning
    /// has a place of its own, if it fits there; what it says later is said by the user there.
    pub(crate) fn take_system(&mut self, turn: &Turn<'_>, at: usize, block: B, fits_system: bool) -> Option<B> {
        if turn.role != Role::System {
            return Some(block);
        }
        if !self.messages.is_empty() {
            self.note(Fact::SaidByUser(Taken::LaterSystem), turn.stored, at);
            return Some(block);
        }
        if fits_system {
            self.system.push(block);
            return None;
        }
        self.note(Fact::MediaMoved(Moved::Role(turn.role)), turn.stored, at);
        Some(block)
    }

    /// Whether what the message says has the system's place.
    pub(crate) fn is_first(&self, turn: &Turn<'_>) -> bool {
        turn.role == Role::System && self.messages.is_empty()
    }

    /// Text that says something.
    pub(crate) fn text(&mut self, text: &'a str, stored: &StoredMessage, at: usize) -> Option<B> {
        if is_blank(text) {
            self.note(Fact::blank(text), stored, at);
            return None;
        }
        Some(B::text(text))
    }

    /// A refusal, which is text here.
    pub(crate) fn refusal(&mut self, text: &'a str, stored: &StoredMessage, at: usize) -> Option<B> {
        let block = self.text(text, stored, at)?;
        self.note(Fact::RefusalAsText, stored, at);
        Some(block)
    }

    /// Media by the assistant, which only the user may have: they follow in a user message, and the block says so here.
    pub(crate) fn move_media(
        &mut self,
        attachment: Attachment<'a>,
        block: B,
        turn: &Turn<'_>,
        at: usize,
        media: &mut Vec<B>,
    ) -> B {
        self.note(Fact::MediaMoved(Moved::Role(turn.role)), turn.stored, at);
        media.extend([B::text(attachment.by_assistant()), block]);
        B::text(attachment.moved())
    }

    /// What a chunk of another provider's says, as text.
    pub(crate) fn words_of(&mut self, body: &Body, stored: &StoredMessage, at: usize) -> Option<B> {
        as_text(body, stored, at, &mut self.report).map(B::text)
    }

    /// The blocks of a message of the assistant's. Thinking that has none, or is all of the message, is text in tags, or left
    /// out. `otherwise`: why, if its signature is opaque, and it is all of the message.
    pub(crate) fn place_thinking(
        &mut self,
        turn: &Turn<'_>,
        slots: Vec<Slot<'a, B>>,
        otherwise: impl Fn(bool, bool) -> Why,
    ) -> Vec<B> {
        let is_all = slots.iter().all(|(_, slot)| slot.is_err());
        let thinking = self.options.thinking;
        let mut blocks = Vec::new();
        for (at, slot) in slots {
            let Thought { text, is_opaque, block } = match slot {
                Ok(block) => {
                    blocks.push(block);
                    continue;
                }
                Err(thought) => thought,
            };
            if let Some(block) = block.filter(|_| !is_all) {
                blocks.push(block);
            } else if thinking.tags(is_all) && !text.is_empty() {
                self.note(thinking.tagging(), turn.stored, at);
                blocks.push(B::text(Thinking::tagged(text)));
            } else {
                let is_foreign = is_opaque && !self.is_own(turn);
                let why = thinking.why_left_out(text, is_opaque, is_foreign, otherwise(is_opaque, is_all));
                self.note(Fact::ThinkingRemoved { why, text }, turn.stored, at);
            }
        }
        blocks
    }

    /// What a call is made with. The tool is one that was called.
    pub(crate) fn input(&mut self, call: &Call<'a>) -> Embedded {
        self.called.insert(call.name.clone().into_owned());
        embedded(&call.arguments)
    }

    pub(crate) fn note_mended(&mut self, input: &Embedded, stored: &StoredMessage, at: usize) {
        let fact = match input.mended {
            None => return,
            Some(Mended::Surrogates) => Fact::SurrogatesReplaced(Surrogates::Arguments),
            Some(Mended::Depth) => Fact::ArgumentsReplaced { why: Arguments::TooDeep, now: input.json.get() },
        };
        self.note(fact, stored, at);
    }
}

impl<'a, B> Dialogue<'a, B> {
    pub(crate) const fn options(&self) -> &'a PromptOptions {
        self.options
    }

    /// The model that the prompt is for.
    pub(crate) fn model(&self) -> Option<&'a str> {
        self.options.model.as_deref()
    }

    /// Whose the message is, for the model.
    pub(crate) fn whose(&self, turn: &Turn<'_>) -> Whose {
        turn.whose(self.providers, self.model())
    }

    /// Whether the model itself made the message, as far as it is known.
    pub(crate) fn is_own(&self, turn: &Turn<'_>) -> bool {
        self.whose(turn).is_own()
    }

    pub(crate) const fn report(&mut self) -> &mut Vec<ReportLine> {
        &mut self.report
    }

    pub(crate) fn note(&mut self, fact: Fact<'_>, stored: &StoredMessage, at: usize) {
        self.report.push(ReportLine::chunk(fact, stored, at));
    }

    /// A signed chunk is sent.
    pub(crate) fn note_origin(&mut self, turn: &Turn<'_>, at: usize) {
        self.report.extend(self.whose(turn).note(turn.stored, at));
    }

    /// The message does not hold the chunk.
    pub(crate) fn note_unsent(&mut self, turn: &Turn<'_>, at: usize, body: &Body) {
        let (kind, why) = Unsent::of(body, turn.role, self.target.wire().name, self.providers);
        self.note(Fact::Removed { kind, why }, turn.stored, at);
    }

    /// What the chunk came as, if it came on this wire, is not what is sent.
    pub(crate) fn note_rebuilt(&mut self, what: &'static str, turn: &Turn<'_>, at: usize, chunk: &Chunk) {
        if chunk.native.as_ref().is_some_and(|native| native.wire == self.target.wire().name) {
            self.note(Fact::Rebuilt { what }, turn.stored, at);
        }
    }

    /// Who spoke last.
    pub(crate) fn last(&self) -> Option<&Message<B>> {
        self.messages.last()
    }

    /// What the assistant said, if it spoke last.
    pub(crate) fn last_said(&mut self) -> Option<&mut Vec<B>> {
        let last = self.messages.last_mut().filter(|last| last.role == Speaker::Assistant);
        last.map(|last| &mut last.content)
    }

    /// For what a request may hold at most.
    pub(crate) fn messages(&mut self) -> (&mut [Message<B>], &mut Vec<ReportLine>) {
        (&mut self.messages, &mut self.report)
    }

    /// The tools that may be called; if it `declares` those of the history, stubs of them, too.
    pub(crate) fn tools<T: From<Declared<'a>>>(&mut self, names: NameRule, declares: bool) -> Result<Vec<T>> {
        let called = std::mem::take(&mut self.called).into_iter().filter(|_| declares).map(Cow::Owned).collect();
        let tools = declared(&self.options.tools, names, called, &mut self.report)?;
        Ok(tools.into_iter().map(Into::into).collect())
    }

    /// What the system says, the messages, and what was done.
    pub(crate) fn into_parts(self) -> (Vec<B>, Vec<Message<B>>, Vec<ReportLine>) {
        (self.system, self.messages, self.report)
    }
}
