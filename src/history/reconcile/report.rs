use serde::Serialize;

use super::super::group::StoredMessage;

/// What was done to a conversation on the way out, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReportLine {
    /// What was done.
    pub rule: Rule,
    /// The message's index in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_index: Option<u64>,
    /// The chunk's index in the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_index: Option<u32>,
    /// The tool call's id as it is stored, also where it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The same in words.
    pub detail: String,
}

/// What was done. Names in JSON are in snake case: `error_chunk_removed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rule {
    /// A record could not be read; what it held is missing.
    DamagedRecord,
    /// An error chunk is not part of the conversation.
    ErrorChunkRemoved,
    /// A message without any content is not part of the conversation.
    EmptyMessageRemoved,
    /// A tool result was moved to the place directly after its call's message.
    ResultMoved,
    /// A further result for a call that has one is not part of the conversation.
    DuplicateResultRemoved,
    /// A result without a call is not part of the conversation.
    OrphanResultRemoved,
    /// A call without a result was answered: outcome unknown.
    OutcomeUnknown,
    /// A call that was cut off was answered: not run.
    NotRun,
    /// A pending call was answered for this prompt: outcome unknown.
    PendingAnswered,
    /// A message that is still being written was taken as it is.
    StreamingTakenAsInterrupted,
    /// A lone surrogate escape was replaced by U+FFFD.
    SurrogateReplaced,
    /// A chunk, or a part of a tool's output, was left out: the target does not take it.
    LeftOut,
    /// Thinking was left out.
    ThinkingLeftOut,
    /// Thinking was rendered as text in `<think>` tags.
    ThinkingTagged,
    /// A chunk was rendered in another form.
    Altered,
    /// A signature, or a provider's own item, was sent as the target's own, though nobody states who made it.
    OriginAssumed,
    /// A call or an answer of a round that is over was written as text.
    FinishedToolFlattened,
    /// A call or an answer of a round that is over was left out.
    FinishedToolDropped,
    /// A summary takes the place of the messages up to this one; or, of a chunk: it answers a call among them.
    Summarized,
    /// Messages were left out: the window that was asked for begins after them, at this one. System messages stay.
    OutsideWindow,
    /// The last turn, with what is always sent, is more than the window may hold, and was kept whole.
    WindowExceeded,
    /// Arguments that are no JSON object were made one.
    ArgumentsRepaired,
    /// The documented substitute for a signature was added: the target requires one.
    SignatureMade,
    /// A tool's name was changed to what the target takes.
    NameChanged,
    /// An image, audio or a file was moved into a user message.
    MediaMoved,
    /// A chunk was rendered under another role.
    RoleChanged,
    /// A message was made that nobody said: the target wants one in that place.
    TurnMade,
    /// A last user message was made, only because the list ends there: a prompt that goes on does not hold it.
    BridgeAdded,
}

impl ReportLine {
    pub(crate) fn new(rule: Rule, detail: impl Into<String>) -> Self {
        Self { rule, message_index: None, chunk_index: None, tool_call_id: None, detail: detail.into() }
    }

    /// About a message.
    pub(crate) fn message(rule: Rule, message: &StoredMessage, detail: impl Into<String>) -> Self {
        Self { message_index: Some(message.index), ..Self::new(rule, detail) }
    }

    /// About a chunk of a message, by its position in it.
    pub(crate) fn chunk(rule: Rule, message: &StoredMessage, chunk: usize, detail: impl Into<String>) -> Self {
        Self { chunk_index: Some(message.chunk_index(chunk)), ..Self::message(rule, message, detail) }
    }

    pub(crate) fn with_tool_call_id(mut self, id: &str) -> Self {
        self.tool_call_id = Some(id.to_owned());
        self
    }
}

impl Rule {
    /// The rule's name in JSON.
    #[must_use]
    pub fn name(self) -> String {
        // A unit variant serialises as its name in quotes.
        serde_json::to_string(&self).unwrap_or_default().trim_matches('"').to_owned()
    }
}

impl std::fmt::Display for ReportLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.message_index, self.chunk_index) {
            (Some(message), Some(chunk)) => write!(f, "message {message}, chunk {chunk}: ")?,
            (Some(message), None) => write!(f, "message {message}: ")?,
            _ => {}
        }
        write!(f, "{} ({})", self.detail, self.rule.name())
    }
}
