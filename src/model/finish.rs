use std::fmt;

/// Why the model stopped.
///
/// [`FinishReason::from`] reads its name, and the words that transcripts may have in its place; any other word is kept as
/// it is.
///
/// ```
/// use conversation_store::model::FinishReason;
///
/// assert_eq!(FinishReason::from("max_tokens"), FinishReason::Length);
/// assert_eq!(FinishReason::from("pause_turn").as_str(), "pause_turn");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishReason {
    /// The answer is complete.
    Stop,
    /// Cut off by a token limit.
    Length,
    /// The model wants tools to be run.
    ToolCalls,
    /// Cut off by the provider's filter.
    ContentFilter,
    /// The model declined.
    Refusal,
    /// The generation failed.
    Error,
    /// Cut off by the caller, a crash or a lost connection.
    Interrupted,
    /// A reason that this crate does not know, as the provider wrote it.
    Other(String),
}

/// The reasons that have a name.
pub(super) const NAMES: &[(FinishReason, &str)] = &[
    (FinishReason::Stop, "stop"),
    (FinishReason::Length, "length"),
    (FinishReason::ToolCalls, "tool_calls"),
    (FinishReason::ContentFilter, "content_filter"),
    (FinishReason::Refusal, "refusal"),
    (FinishReason::Error, "error"),
    (FinishReason::Interrupted, "interrupted"),
];

impl FinishReason {
    /// The reason's name in the transcript format.
    #[must_use]
    pub fn as_str(&self) -> &str {
        if let Self::Other(word) = self {
            return word;
        }
        NAMES.iter().find(|(reason, _)| reason == self).map_or("", |(_, name)| *name)
    }

    /// Whether the message may have been cut off in the middle of its last chunk.
    #[must_use]
    pub const fn is_cut_off(&self) -> bool {
        matches!(self, Self::Length | Self::Interrupted)
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
