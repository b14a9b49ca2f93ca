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
const NAMES: &[(FinishReason, &str)] = &[
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

    /// What a file or a server gives as the reason. Some servers write `"null"` in place of `null`: that is none.
    pub(crate) fn given(word: &str) -> Option<Self> {
        (word != "null").then(|| Self::from(word))
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

/// Words that a transcript may have beside the names. Sources: OpenAI chat completion object (`finish_reason`), OpenAI responses
/// (`status`, `incomplete_details.reason`), Anthropic messages (`stop_reason`), Gemini `FinishReason`, Mistral `finish_reason`
/// (`model_length`).
const WORDS: &[(FinishReason, &[&str])] = &[
    (FinishReason::Stop, &["end_turn", "stop_sequence", "STOP", "completed", "complete", "COMPLETE", "eos"]),
    (
        FinishReason::Length,
        &["max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "model_context_window_exceeded"],
    ),
    (FinishReason::ToolCalls, &["tool_use", "function_call"]),
    (
        FinishReason::ContentFilter,
        &[
            "SAFETY",
            "RECITATION",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
        ],
    ),
    (FinishReason::Error, &["failed", "MALFORMED_FUNCTION_CALL"]),
    (FinishReason::Interrupted, &["cancelled"]),
];

impl From<&str> for FinishReason {
    fn from(word: &str) -> Self {
        let named = NAMES.iter().find(|(_, name)| *name == word).map(|(reason, _)| reason);
        let known = named.or_else(|| WORDS.iter().find(|(_, words)| words.contains(&word)).map(|(reason, _)| reason));
        known.cloned().unwrap_or_else(|| Self::Other(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_name_that_reads_back() {
        for (reason, name) in NAMES {
            assert_eq!(reason.as_str(), *name);
            assert_eq!(&FinishReason::from(*name), reason);
        }
        for (reason, words) in WORDS {
            for word in *words {
                assert_eq!(&FinishReason::from(*word), reason, "{word}");
            }
        }
        assert_eq!(FinishReason::from("pause_turn").as_str(), "pause_turn");
    }

    #[test]
    fn a_text_that_says_null_is_no_reason() {
        assert_eq!(FinishReason::given("null"), None);
        assert_eq!(FinishReason::given("stop"), Some(FinishReason::Stop));
        let line = r#"{"role":"assistant","chunks":[],"finish_reason":"null"}"#;
        assert_eq!(crate::model::Line::from_json(line).unwrap().message.finish_reason, None);
    }
}
