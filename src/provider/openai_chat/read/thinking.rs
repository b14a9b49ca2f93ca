//! Thinking, wherever a server puts it.
//!
//! The fields it came in are kept with it as its own block, without the text, which grows: `{"reasoning":""}`.

use crate::model::{Json, Native};
use crate::provider::openai_chat::manner::NAME;
use crate::provider::read::fields::Fields;

/// Where thinking is.
pub(crate) const THINKING: &[&str] = &["reasoning_content", "reasoning"];

/// Takes the thinking out of a message, or out of a piece of one: the field's name, the text, and the fields that it stood
/// in. Some servers say it twice: the first counts.
pub(crate) fn thinking(fields: &mut Fields<'_>) -> Option<(&'static str, String, Option<Native>)> {
    let found = THINKING.iter().filter_map(|name| Some((*name, fields.string(name)?)));
    let found: Vec<(&'static str, String)> = found.filter(|(_, text)| !text.is_empty()).collect();
    let names: Vec<String> = found.iter().map(|(name, _)| format!("\"{name}\":\"\"")).collect();
    let (name, text) = found.into_iter().next()?;
    let json = Json::new(format!("{{{}}}", names.join(","))).ok();
    Some((name, text, json.map(|json| Native { wire: NAME.to_owned(), json })))
}
