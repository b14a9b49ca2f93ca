use std::fmt;

/// Why the model stopped.
///
/// The providers' own words are accepted ([`FinishReason::from`]); a word that is not known is kept as it is.
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

/// Name first, then the providers' aliases. Sources: OpenAI chat completion object (`finish_reason`), OpenAI responses
/// (`status`, `incomplete_details.reason`), Anthropic messages (`stop_reason`), Gemini `FinishReason`, Mistral
/// `finish_reason` (`model_length`).
const WORDS: &[(FinishReason, &[&str])] = &[
    (FinishReason::Stop, &["stop", "end_turn", "stop_sequence", "STOP", "completed", "eos"]),
    (
        FinishReason::Length,
        &["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "model_context_window_exceeded"],
    ),
    (FinishReason::ToolCalls, &["tool_calls", "tool_use", "function_call"]),
    (
        FinishReason::ContentFilter,
        &["content_filter", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"],
    ),
    (FinishReason::Refusal, &["refusal"]),
    (FinishReason::Error, &["error", "failed", "MALFORMED_FUNCTION_CALL"]),
    (FinishReason::Interrupted, &["interrupted", "cancelled"]),
];

impl FinishReason {
    /// The reason's name in the transcript format.
    #[must_use]
    pub fn as_str(&self) -> &str {
        if let Self::Other(word) = self {
            return word;
        }
        WORDS
            .iter()
            .find(|(reason, _)| reason == self)
            .and_then(|(_, words)| words.first())
            .copied()
            .unwrap_or_default()
    }

    /// Whether the message may have been cut off in the middle of its last chunk.
    #[must_use]
    pub const fn is_cut_off(&self) -> bool {
        matches!(self, Self::Length | Self::Interrupted)
    }
}

impl From<&str> for FinishReason {
    fn from(word: &str) -> Self {
        WORDS
            .iter()
            .find(|(_, words)| words.contains(&word))
            .map_or_else(|| Self::Other(word.to_owned()), |(reason, _)| reason.clone())
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_name_that_reads_back() {
        for (reason, words) in WORDS {
            assert!(!reason.as_str().is_empty());
            assert_eq!(&FinishReason::from(reason.as_str()), reason);
            for word in *words {
                assert_eq!(&FinishReason::from(*word), reason, "{word}");
            }
        }
    }
}
