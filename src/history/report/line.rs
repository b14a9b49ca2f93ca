use std::fmt;

use serde::Serialize;

use super::super::group::StoredMessage;
use super::fact::{Fact, Rule, Severity};
use super::words::Words;

/// What was done to a conversation or a request, where, why, and what to do about it.
///
/// Serialized with the keys `severity`, `rule`, `place`, `message_index`, `chunk_index`, `tool_call_id`, `detail`, `why`,
/// `cure`, in this order; those that are `None` are absent. What each means is in
/// [the guide](crate::documentation::building_a_chat_server#the-report).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReportLine {
    /// What it means for the reader.
    pub severity: Severity,
    /// What was done, for programs.
    pub rule: Rule,
    /// Path into a request, in the notation of [`check`](crate::provider::check()), such as `messages[4].content[0]`. For a
    /// request that was repaired it leads into the request that was given. For a message that was added to a prompt it leads
    /// into the prompt. `None` where there is no such place: then the indexes tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The message's index in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_index: Option<u64>,
    /// The chunk's index in the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_index: Option<u32>,
    /// The tool call's id as it is stored, also where it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// What was done, in words.
    pub detail: String,
    /// Why it was done, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What to do about it, where something can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
}

impl ReportLine {
    /// About the whole.
    pub(crate) fn new(fact: Fact<'_>) -> Self {
        let Words { detail, why, cure } = Words::of(&fact);
        let (rule, severity) = fact.class();
        Self {
            severity,
            rule,
            place: None,
            message_index: None,
            chunk_index: None,
            tool_call_id: None,
            detail: detail.into_owned(),
            why: why.map(std::borrow::Cow::into_owned),
            cure: cure.map(str::to_owned),
        }
    }

    /// About a message.
    pub(crate) fn message(fact: Fact<'_>, message: &StoredMessage) -> Self {
        Self { message_index: Some(message.index), ..Self::new(fact) }
    }

    /// About a chunk of a message, by its position in it.
    pub(crate) fn chunk(fact: Fact<'_>, message: &StoredMessage, chunk: usize) -> Self {
        Self { chunk_index: Some(message.chunk_index(chunk)), ..Self::message(fact, message) }
    }

    pub(crate) fn with_tool_call_id(mut self, id: &str) -> Self {
        self.tool_call_id = Some(id.to_owned());
        self
    }

    pub(crate) fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }
}

/// One line: the place, what was done, why, and the rule's name; then, where there is one, a line with the cure.
impl fmt::Display for ReportLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.place, self.message_index, self.chunk_index) {
            (Some(place), ..) => write!(f, "{place}: ")?,
            (None, Some(message), Some(chunk)) => write!(f, "message {message}, chunk {chunk}: ")?,
            (None, Some(message), None) => write!(f, "message {message}: ")?,
            (None, None, _) => {}
        }
        f.write_str(&self.detail)?;
        if let Some(why) = &self.why {
            write!(f, ": {why}")?;
        }
        write!(f, " ({})", self.rule.name())?;
        match &self.cure {
            Some(cure) => write!(f, "\n  cure: {cure}"),
            None => Ok(()),
        }
    }
}
