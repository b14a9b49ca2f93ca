//! Why a model stopped, in the words that a transcript may have for it: the reason's name, or the word of the one who
//! wrote the transcript.

use crate::model::FinishReason;
use crate::model::finish::NAMES;

/// Words beside the names. Sources: OpenAI chat completion object (`finish_reason`), OpenAI responses (`status`,
/// `incomplete_details.reason`), Anthropic messages (`stop_reason`), Gemini `FinishReason`, Mistral `finish_reason`
/// (`model_length`).
const WORDS: &[(FinishReason, &[&str])] = &[
    (FinishReason::Stop, &["end_turn", "stop_sequence", "STOP", "completed", "complete", "COMPLETE", "eos"]),
    (
        FinishReason::Length,
        &["max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "model_context_window_exceeded"],
    ),
    (FinishReason::ToolCalls, &["tool_use", "function_call"]),
    (FinishReason::ContentFilter, &["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"]),
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
}
