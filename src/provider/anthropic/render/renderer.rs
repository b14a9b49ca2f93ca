//! What is said so far, on its way into a request: roles alternate.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use super::request::{Block, Message, Origin, Speaker};
use crate::history::StoredMessage;
use crate::history::{ReportLine, Rule};
use crate::provider::anthropic::manner::Manner;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::turns::BEGINNING;

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
    /// Whose text was said last.
    pub(super) last_text: Option<Origin<'a>>,
}

impl<'a> Renderer<'a> {
    /// Adds to the message of the speaker, or begins one.
    pub(super) fn say(&mut self, speaker: Speaker, mut blocks: Vec<Block<'a>>) {
        if blocks.is_empty() {
            return;
        }
        if self.messages.is_empty() && speaker == Speaker::Assistant {
            let detail = "the target wants the user to begin: a first message was made";
            self.report.push(ReportLine::new(Rule::TurnMade, detail));
            self.say(Speaker::User, vec![Block::Text { text: Cow::Borrowed(BEGINNING) }]);
        }
        match self.messages.last_mut().filter(|last| last.role == speaker) {
            Some(last) => last.content.append(&mut blocks),
            None => self.messages.push(Message { role: speaker, content: blocks }),
        }
    }

    /// Whether a message of the assistant may begin with thinking here: it is the first of its side, or the provider's own
    /// tools gave their results last.
    pub(super) fn may_think(&self) -> bool {
        let allows =
            |last: &Message<'_>| last.role == Speaker::User || last.content.last().is_some_and(Block::is_server_result);
        self.messages.last().is_none_or(allows)
    }

    pub(super) fn note(&mut self, rule: Rule, stored: &StoredMessage, chunk: usize, detail: impl Into<String>) {
        self.report.push(ReportLine::chunk(rule, stored, chunk, detail));
    }
}
