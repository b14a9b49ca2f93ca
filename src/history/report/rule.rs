use serde::Serialize;

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
    /// A signature, or a provider's own item, was sent as the target's own, though it is not stated who made it.
    OriginAssumed,
    /// A call or an answer of a round that is over was written as text.
    FinishedToolFlattened,
    /// A call or a result of a tool round that is over was left out.
    FinishedToolDropped,
    /// A summary takes the place of the messages up to this one; or, of a chunk: it answers a call among them.
    Summarized,
    /// Messages were left out: the window that was asked for begins after them, at this one. System messages stay.
    OutsideWindow,
    /// The last turn, with what is always sent, is more than the window may hold, and was kept whole.
    WindowExceeded,
    /// Arguments that are not a JSON object were made one.
    ArgumentsRepaired,
    /// The documented substitute for a signature was added: the target requires one.
    SignatureMade,
    /// A tool's name was changed to what the target takes.
    NameChanged,
    /// An image, audio or a file was moved into a user message.
    MediaMoved,
    /// A chunk was rendered under another role.
    RoleChanged,
    /// A message was added that nobody said: the target wants one in that place.
    TurnMade,
    /// A last user message was added, only because the list ends there: a longer prompt does not have it.
    BridgeAdded,
    /// The target still refuses this place of a repaired request: only the caller can cure it.
    StillRefused,
}

impl Rule {
    /// The rule's name in JSON.
    #[must_use]
    pub fn name(self) -> String {
        // A unit variant serialises as its name in quotes.
        serde_json::to_string(&self).unwrap_or_default().trim_matches('"').to_owned()
    }
}
