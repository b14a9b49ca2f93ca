//! The tools that the provider runs itself, by name.
//!
//! The tables differ: results of `advisor` are known, and none of them is rendered.

/// Those whose results are known: the provider puts them beside their calls, and they can tell that the tool is not there.
/// Source: `ContentBlockParam` of the official Python SDK (anthropic 2.11.0).
pub(crate) const WITH_RESULTS: &[&str] = &[
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search",
    "advisor",
];
/// The names that their calls may have in a request that is rendered.
pub(crate) const CALLED: &[&str] = &[
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
];
/// The types of their results that are rendered.
pub(crate) const SENT_RESULTS: &[&str] = &[
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
];

/// `web_search_tool_result` and the like.
pub(crate) fn is_server_result(name: &str) -> bool {
    name.strip_suffix("_result")
        .map(|name| name.strip_suffix("_tool").unwrap_or(name))
        .is_some_and(|name| WITH_RESULTS.contains(&name))
}
