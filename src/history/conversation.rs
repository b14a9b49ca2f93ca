//! A loaded conversation.

use super::group::{Grouped, MessageState, StoredMessage, Summary};
use super::reconcile::{self, Calls, ReportLine, Rule, Site, is_cut_off, is_pending};
use crate::model::{Body, Role};

/// Messages in the order of their index, reconciled, the summary that prompts use in place of the first of them, and the
/// report of what was done to the messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    messages: Vec<StoredMessage>,
    summary: Option<Summary>,
    report: Vec<ReportLine>,
    /// Whether an answer is being written, also one of which nothing is there yet.
    is_being_answered: bool,
}

impl Conversation {
    pub(crate) fn from_grouped(grouped: Grouped) -> Self {
        let is_being_answered = grouped
            .messages
            .iter()
            .any(|stored| stored.state == MessageState::Streaming && stored.message.role == Role::Assistant);
        let (messages, mut lines) = reconcile::reconcile(grouped.messages);
        let mut report: Vec<ReportLine> =
            grouped.damage.iter().map(|error| ReportLine::new(Rule::DamagedRecord, error.to_string())).collect();
        report.append(&mut lines);
        Self { messages, summary: grouped.summary, report, is_being_answered }
    }

    /// Reconciles messages that come from elsewhere, or were changed.
    #[must_use]
    pub fn new(messages: Vec<StoredMessage>) -> Self {
        Self::from_grouped(Grouped { messages, ..Grouped::default() })
    }

    /// Sets the summary that prompts use in place of the messages that it covers.
    #[must_use]
    pub fn with_summary(mut self, summary: Option<Summary>) -> Self {
        self.summary = summary;
        self
    }

    /// The messages, those that a summary covers too.
    #[must_use]
    pub fn messages(&self) -> &[StoredMessage] {
        &self.messages
    }

    /// The newest summary of [`crate::Store::summarize`], if no rewind has hidden what it covers.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The first message up to `through` with a call whose result comes behind `through`, or may still come.
    pub(crate) fn parted_call(&self, through: u64) -> Option<u64> {
        let paired = Calls::pair(&self.messages);
        let is_parted = |message: usize, chunk: usize, stored: &StoredMessage| match paired
            .result(Site { message, chunk })
            .and_then(|site| self.messages.get(site.message))
        {
            Some(result) => result.index > through,
            None => is_pending(&self.messages, message) && !is_cut_off(stored, chunk),
        };
        let covered = self.messages.iter().enumerate().filter(|(_, stored)| stored.index <= through);
        let mut asking = covered.filter(|(_, stored)| stored.message.role == Role::Assistant);
        let parted = asking.find(|(at, stored)| {
            let chunks = stored.message.chunks.iter().enumerate();
            let mut calls = chunks.filter(|(_, chunk)| matches!(chunk.body, Body::ToolCall { .. }));
            calls.any(|(chunk, _)| is_parted(*at, chunk, stored))
        });
        parted.map(|(_, stored)| stored.index)
    }

    /// What reconcile did, and what could not be read.
    #[must_use]
    pub fn report(&self) -> &[ReportLine] {
        &self.report
    }

    pub(crate) const fn is_being_answered(&self) -> bool {
        self.is_being_answered
    }

    /// The messages, for changes: [`Conversation::new`] takes them back.
    #[must_use]
    pub fn into_messages(self) -> Vec<StoredMessage> {
        self.messages
    }
}
