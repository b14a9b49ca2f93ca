//! A loaded conversation.

use crate::group::{Grouped, MessageState, StoredMessage};
use crate::model::Role;
use crate::reconcile::{self, ReportLine, Rule};

/// Messages in the order of their index, reconciled, and the report of what was done to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    messages: Vec<StoredMessage>,
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
        Self { messages, report, is_being_answered }
    }

    /// Reconciles messages that come from elsewhere, or were changed.
    #[must_use]
    pub fn new(messages: Vec<StoredMessage>) -> Self {
        Self::from_grouped(Grouped { messages, damage: Vec::new() })
    }

    /// The messages.
    #[must_use]
    pub fn messages(&self) -> &[StoredMessage] {
        &self.messages
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
