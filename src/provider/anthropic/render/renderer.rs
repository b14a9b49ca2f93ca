//! What is said so far, on its way into a request: roles alternate.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::mem;

use serde_json::Value;
use serde_json::value::to_raw_value;

use super::request::{Block, Message, Own, OwnKind};
use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::history::report::Fact;
use crate::model::Role;
use crate::provider::anthropic::manner::Manner;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::turns::{BEGINNING, Origin, Speaker};

pub(super) struct Renderer<'a> {
    pub(super) manner: &'static Manner,
    pub(super) options: &'a PromptOptions,
    pub(super) report: Vec<ReportLine>,
    pub(super) system: Vec<Block<'a>>,
    pub(super) messages: Vec<Message<'a>>,
    /// The tools that were called.
    pub(super) called: BTreeSet<String>,
    /// The ids of the calls that the provider ran itself.
    pub(super) server_calls: HashSet<String>,
    /// Which of them, in blocks of the provider's own, have no result in what is planned so far.
    pub(super) unanswered: HashSet<String>,
    /// The calls in the last message that the provider runs itself, in blocks of its own.
    pub(super) asked: Vec<Asked<'a>>,
    /// Whose text was said last.
    pub(super) last_text: Option<Origin<'a>>,
}

/// A call of a tool that the provider runs.
pub(crate) struct Asked<'a> {
    pub(super) id: String,
    /// Takes the place of a result that does not come.
    pub(super) made_result: Option<Value>,
    pub(super) origin: Origin<'a>,
}

impl<'a> Renderer<'a> {
    /// Adds to the message of the speaker, or begins one.
    pub(super) fn say(&mut self, speaker: Speaker, mut blocks: Vec<Block<'a>>) {
        if blocks.is_empty() {
            return;
        }
        if speaker == Speaker::User && self.messages.last().is_some_and(|last| last.role == Speaker::Assistant) {
            self.close(blocks.first().is_some_and(Block::is_tool_result));
        }
        if self.messages.is_empty() && speaker == Speaker::Assistant {
            let added = Fact::TurnAdded { role: Role::User, text: BEGINNING };
            self.report.push(ReportLine::new(added).at("messages[0]"));
            self.say(Speaker::User, vec![Block::Text { text: Cow::Borrowed(BEGINNING) }]);
        }
        match self.messages.last_mut().filter(|last| last.role == speaker) {
            Some(last) => last.content.append(&mut blocks),
            None => self.messages.push(Message { role: speaker, content: blocks }),
        }
    }

    /// Whether the provider paused the turn, to go on with it when it is sent back: it ends with a call that the provider runs.
    pub(super) fn is_paused(&self) -> bool {
        let last = self.messages.last().filter(|last| last.role == Speaker::Assistant);
        matches!(last.and_then(|last| last.content.last()), Some(Block::Own(own)) if own.kind == OwnKind::ServerCall)
    }

    /// The turn ends: calls that the provider ran, and did not end, get a result that they failed, unless they wait for the
    /// results of tools.
    pub(super) fn close(&mut self, waits: bool) {
        if self.messages.last().is_none_or(|last| last.role == Speaker::User) {
            return;
        }
        for Asked { id, made_result, origin } in mem::take(&mut self.asked) {
            if !self.unanswered.remove(&id) || waits {
                continue;
            }
            if let (Some(last), Some(json)) =
                (self.messages.last_mut(), made_result.and_then(|result| to_raw_value(&result).ok()))
            {
                last.content.push(Block::Own(Own { json, kind: OwnKind::ServerResult, origin: None }));
                self.note(Fact::CallClosed, origin.stored, origin.chunk);
            }
        }
    }

    /// Whether a message of the assistant may begin with thinking here: it is the first of its side, or the provider's own
    /// tools gave their results last.
    pub(super) fn may_think(&self) -> bool {
        let allows =
            |last: &Message<'_>| last.role == Speaker::User || last.content.last().is_some_and(Block::is_server_result);
        self.messages.last().is_none_or(allows)
    }

    pub(super) fn note(&mut self, fact: Fact<'_>, stored: &StoredMessage, chunk: usize) {
        self.report.push(ReportLine::chunk(fact, stored, chunk));
    }
}
