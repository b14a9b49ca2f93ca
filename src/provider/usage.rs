//! Token counts, as the five wires write them, as one form.

use serde::Serialize;
use serde_json::Value;

use crate::model::Json;

/// The tokens of one answer, whatever the provider's words for them are.
///
/// ```
/// use conversation_store::model::Json;
/// use conversation_store::provider::TokenCounts;
///
/// let usage = Json::new(r#"{"input_tokens": 12, "cache_read_input_tokens": 1000, "output_tokens": 80}"#)?;
/// let counts = TokenCounts::of(&usage).unwrap();
/// assert_eq!((counts.input, counts.cached, counts.output), (1012, 1000, 80));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TokenCounts {
    /// All that the model read, those from a cache too.
    pub input: u64,
    /// Of the input, what was read from a cache.
    pub cached: u64,
    /// Of the input, what was written to a cache. Only Anthropic and Amazon count it.
    pub cache_written: u64,
    /// All that the model wrote, its reasoning too.
    pub output: u64,
    /// Of the output, the reasoning, where it is counted apart.
    pub reasoning: u64,
}

impl TokenCounts {
    /// Reads what a provider wrote in `usage` (Gemini: `usageMetadata`): the forms of OpenAI's two APIs, of Anthropic, Gemini and
    /// Converse, and what Codex, LangChain and Pydantic AI make of them in what they store. `None` if no count is in it. A count
    /// that is absent is 0.
    ///
    /// Anthropic and Converse count cached input beside the rest of the input, the others within it. Gemini counts thinking beside
    /// the rest of the output. Where a total shows that reasoning was counted beside the output, as xAI does, it is added to it.
    ///
    /// Sources: the API references of the five providers, `usage` and `UsageMetadata`; Codex's `TokenUsage`, LangChain's
    /// `UsageMetadata`, Pydantic AI's `RequestUsage`.
    #[must_use]
    pub fn of(usage: &Json) -> Option<Self> {
        let usage: Value = serde_json::from_str(usage.as_str()).ok()?;
        let count = |at: &str| usage.pointer(at).and_then(Value::as_u64);
        let first = |names: &[&str]| names.iter().find_map(|name| count(name));
        let sum = |names: &[&str]| names.iter().filter_map(|name| count(name)).fold(0, u64::saturating_add);
        let mut counts = Self {
            cached: first(&[
                "/prompt_tokens_details/cached_tokens",
                "/input_tokens_details/cached_tokens",
                "/input_token_details/cache_read",
                "/cached_input_tokens",
                "/cache_read_tokens",
                "/cache_read_input_tokens",
                "/cacheReadInputTokens",
                "/cachedContentTokenCount",
                "/prompt_cache_hit_tokens",
            ])
            .unwrap_or(0),
            cache_written: first(&[
                "/cache_creation_input_tokens",
                "/cacheWriteInputTokens",
                "/input_token_details/cache_creation",
                "/cache_write_tokens",
            ])
            .unwrap_or(0),
            reasoning: first(&[
                "/completion_tokens_details/reasoning_tokens",
                "/output_tokens_details/reasoning_tokens",
                "/output_token_details/reasoning",
                "/reasoning_output_tokens",
                "/details/reasoning_tokens",
                "/thoughtsTokenCount",
            ])
            .unwrap_or(0),
            ..Self::default()
        };
        let within = first(&["/prompt_tokens", "/promptTokenCount"]);
        let beside = first(&["/input_tokens", "/inputTokens"]);
        let input = match (within, beside) {
            (Some(_), _) => within.map(|input| input.saturating_add(sum(&["/toolUsePromptTokenCount"]))),
            (None, Some(input)) => Some(input.saturating_add(sum(&[
                "/cache_read_input_tokens",
                "/cache_creation_input_tokens",
                "/cacheReadInputTokens",
                "/cacheWriteInputTokens",
            ]))),
            (None, None) => None,
        };
        let said = first(&["/completion_tokens", "/output_tokens", "/outputTokens"]);
        let candidates = first(&["/candidatesTokenCount", "/thoughtsTokenCount"]);
        let thought = || sum(&["/candidatesTokenCount", "/thoughtsTokenCount"]);
        let output = said.or_else(|| candidates.map(|_| thought()));
        if input.is_none() && output.is_none() {
            return None;
        }
        (counts.input, counts.output) = (input.unwrap_or(0), output.unwrap_or(0));
        let with_reasoning = counts.output.saturating_add(counts.reasoning);
        if said.is_some() && count("/total_tokens") == Some(counts.input.saturating_add(with_reasoning)) {
            counts.output = with_reasoning;
        }
        Some(counts)
    }

    /// Adds the tokens of another answer.
    pub const fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_written = self.cache_written.saturating_add(other.cache_written);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wires_counts_are_read() {
        let rows = [
            (r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}"#, Some((10, 0, 0, 5, 0))),
            (
                r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":3}}"#,
                Some((10, 8, 0, 5, 3)),
            ),
            // xAI: the reasoning is beside the completion.
            (
                r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":18,"completion_tokens_details":{"reasoning_tokens":3}}"#,
                Some((10, 0, 0, 8, 3)),
            ),
            // A gateway before Anthropic: the prompt has all of it.
            (r#"{"prompt_tokens":110,"completion_tokens":5,"cache_read_input_tokens":100}"#, Some((110, 100, 0, 5, 0))),
            (
                r#"{"input_tokens":10,"output_tokens":5,"total_tokens":15,"input_tokens_details":{"cached_tokens":8},"output_tokens_details":{"reasoning_tokens":3}}"#,
                Some((10, 8, 0, 5, 3)),
            ),
            (
                r#"{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":5}"#,
                Some((130, 100, 20, 5, 0)),
            ),
            (
                r#"{"inputTokens":10,"outputTokens":5,"totalTokens":115,"cacheReadInputTokens":100,"cacheWriteInputTokens":0}"#,
                Some((110, 100, 0, 5, 0)),
            ),
            (
                r#"{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":5,"thoughtsTokenCount":3,"toolUsePromptTokenCount":2,"totalTokenCount":20}"#,
                Some((12, 4, 0, 8, 3)),
            ),
            (r#"{"input_tokens":18446744073709551615,"cache_read_input_tokens":1}"#, Some((u64::MAX, 1, 0, 0, 0))),
            (r#"{"prompt_tokens":null,"completion_tokens":-1}"#, None),
            ("[]", None),
            ("null", None),
        ];
        for (usage, wanted) in rows {
            let counts = TokenCounts::of(&Json::new(usage).unwrap());
            let counts = counts.map(|c| (c.input, c.cached, c.cache_written, c.output, c.reasoning));
            assert_eq!(counts, wanted, "{usage}");
        }
    }
}
