//! Thinking, wherever a server puts it.

use crate::provider::read::fields::Fields;

/// Where thinking stands.
const THINKING: &[&str] = &["reasoning_content", "reasoning"];

/// Takes the thinking out of a message, or out of a piece of one. Some servers say it twice: the first counts.
pub(crate) fn thinking(fields: &mut Fields<'_>) -> Option<String> {
    let found: Vec<String> = THINKING.iter().filter_map(|name| fields.string(name)).collect();
    found.into_iter().find(|text| !text.is_empty())
}
