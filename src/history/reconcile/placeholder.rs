//! Results that state that there is none: what this crate and others put in the place of a result that did not come.

use crate::model::{Body, Chunk, Output, PartBody};

/// What a call without a result is answered. The same whether it is still pending or not: prompts that were sent stay
/// prefixes of later ones.
pub(crate) const OUTCOME_UNKNOWN: &str =
    "Interrupted: no result was recorded. The outcome is unknown; the tool may have taken effect.";
/// What a call that was cut off is answered.
pub(crate) const NOT_RUN: &str = "Not run: the call was cut off before its arguments were complete.";

/// How such texts begin, and how they end. Sources: this crate; OpenClaw (issue 13351); Claude Code
/// (`ensureToolResultPairing`); qwen-code (issue 9573); LiteLLM (message_sanitization); LangChain's deepagents
/// (`PatchToolCallsMiddleware`); OpenCode (`message-v2`).
const TEXTS: &[(&str, &str)] = &[
    (OUTCOME_UNKNOWN, ""),
    (NOT_RUN, ""),
    ("[", "] missing tool result in session history; inserted synthetic error result for transcript repair."),
    ("[Tool result missing due to internal error]", ""),
    ("Tool result missing from saved history;", ""),
    ("[System: Tool execution skipped/interrupted by user. No result provided for tool", "]"),
    ("Tool call ", "was cancelled - another message came in before it could be completed."),
    ("[Tool execution was interrupted]", ""),
];

/// Longer texts, in bytes, are somebody's results.
const LONGEST: usize = 500;

/// Whether a result states that there is none.
pub(super) fn is_placeholder(result: &Chunk) -> bool {
    let Body::ToolResult { output, .. } = &result.body else { return false };
    let text = match output {
        Output::Text(text) => text,
        Output::Parts(parts) => match parts.as_slice() {
            [part] => match &part.body {
                PartBody::Text { text } => text,
                _ => return false,
            },
            _ => return false,
        },
    };
    if text.len() > LONGEST {
        return false;
    }
    let text = text.trim();
    let states = |(begin, end): &(&str, &str)| text.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end));
    TEXTS.iter().any(states)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_states_that_there_is_no_result_is_one() {
        let table = [
            (OUTCOME_UNKNOWN, true),
            (" [Tool result missing due to internal error]\n", true),
            (
                "[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair.",
                true,
            ),
            ("Tool call look with id c1 was cancelled - another message came in before it could be completed.", true),
            ("[System: Tool execution skipped/interrupted by user. No result provided for tool 'look'.]", true),
            ("", false),
            ("Interrupted", false),
            ("Tool call look failed", false),
            ("It printed: [Tool result missing due to internal error]", false),
        ];
        for (text, wanted) in table {
            assert_eq!(is_placeholder(&Chunk::tool_result("c1", text)), wanted, "{text}");
            let part = PartBody::Text { text: text.to_owned() };
            let output = Output::Parts(vec![part.into()]);
            let parts = Body::ToolResult { tool_call_id: "c1".to_owned(), name: None, output, is_error: None };
            assert_eq!(is_placeholder(&parts.into()), wanted, "{text}");
        }
        let long = OUTCOME_UNKNOWN.to_owned() + &"x".repeat(LONGEST);
        assert!(!is_placeholder(&Chunk::tool_result("c1", long)));
    }
}
