//! Texts, and the length of names.

use crate::provider::bedrock_converse::rules::BC_08;
use crate::provider::check::finding::{Finding, Level};
use crate::provider::text::is_blank;

/// Characters of a tool's name.
pub(crate) const TOOL_NAME: usize = 64;
pub(crate) fn check_text(text: &str, place: String, out: &mut Vec<Finding>) {
    if is_blank(text) {
        let level = if text.is_empty() { Level::Hard } else { Level::Soft };
        out.push(BC_08.at(place, "text is empty or blank").with_level(level));
    }
}
