//! A body's JSON.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::refusal::Refusal;
use crate::model::{Json, json_text};

/// The text of a body: UTF-8, without a byte order mark.
pub(crate) fn text(body: &[u8]) -> Result<&str, Refusal> {
    let text = std::str::from_utf8(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body));
    text.map_err(|error| {
        Refusal::new(400, "invalid_json", format!("the body is not UTF-8 at byte {}", error.valid_up_to()))
    })
}

/// A body that is a JSON object. No body counts as `{}`.
pub(crate) fn json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refusal> {
    let text = checked(body)?;
    let text = if text.trim().is_empty() { "{}" } else { text };
    // What is read field by field could also be a list of the values.
    if !text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        return Err(Refusal::new(400, "invalid_type", "the body must be a JSON object"));
    }
    let refused = |error: serde_json::Error| {
        let code = if error.is_data() { "invalid_value" } else { "invalid_json" };
        Refusal::new(400, code, format!("the body cannot be read: {error}"))
    };
    serde_json::from_str(text).map_err(refused)
}

/// As [`json`], for values that own their content, where an absent body is an error.
pub(crate) fn required<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    if checked(body)?.trim().is_empty() {
        return Err(Refusal::new(400, "missing_body", "the body is missing"));
    }
    json(body)
}

/// The text of a body that is not nested too deep, and has no half characters: no Rust string can hold one, and a
/// replaced one would not be returned as it was.
fn checked(body: &[u8]) -> Result<&str, Refusal> {
    let text = text(body)?;
    let depth = json_text::depth(text);
    if depth > Json::MAX_DEPTH {
        let message = format!("the body is nested {depth} deep; at most {} are accepted", Json::MAX_DEPTH);
        return Err(Refusal::new(400, "invalid_json", message));
    }
    if json_text::mark_lone_surrogates(text).1.is_some() {
        return Err(Refusal::new(400, "invalid_json", "the body has a lone surrogate escape (\\ud800 to \\udfff)"));
    }
    Ok(text)
}
