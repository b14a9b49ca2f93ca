//! Arguments of tool calls as every provider takes them: the JSON text of an object.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::json;
use crate::json::text::Strings;
use crate::model::Json;

/// The key under which arguments that are no JSON object are sent.
const MALFORMED: &str = "malformed_arguments";

/// The arguments as they are, if they are the JSON text of an object. Nothing, `null` and an empty array become an empty
/// object; an object that was encoded twice, or has line breaks within its strings, is read for what it is; anything else is
/// sent as text within an object, so that the model sees what it wrote.
pub(crate) fn object(arguments: &str) -> Cow<'_, str> {
    if json::is_object(arguments) && !json::is_deeper(arguments, Json::MAX_DEPTH - 1) {
        return Cow::Borrowed(arguments);
    }
    let without_space: String = arguments.chars().filter(|character| !character.is_whitespace()).collect();
    if ["", "null", "[]", "\"\""].contains(&without_space.as_str()) {
        return Cow::Borrowed("{}");
    }
    let is_object = |text: &String| json::is_object(text) && !json::is_deeper(text, Json::MAX_DEPTH - 1);
    let decoded = serde_json::from_str::<String>(arguments).ok().filter(is_object);
    let object = decoded.or_else(|| Some(with_escapes(arguments)).filter(is_object));
    Cow::Owned(object.unwrap_or_else(|| malformed(arguments)))
}

/// The text with the control characters within its strings escaped.
fn with_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut strings = Strings::default();
    for character in text.chars() {
        strings.is_outside(character);
        match character {
            '\n' if strings.has_begun() => out.push_str("\\n"),
            '\r' if strings.has_begun() => out.push_str("\\r"),
            '\t' if strings.has_begun() => out.push_str("\\t"),
            _ => out.push(character),
        }
    }
    out
}

/// Arguments that are no object, as text within one.
pub(crate) fn malformed(arguments: &str) -> String {
    // A string always serialises.
    let text = serde_json::to_string(arguments).unwrap_or_default();
    format!("{{\"{MALFORMED}\":{text}}}")
}

/// Arguments that stand in a request as JSON, not as a string of it.
#[derive(Debug)]
pub(crate) struct Embedded {
    /// Byte for byte as given, but on one line, unless it was mended.
    pub(crate) json: Box<RawValue>,
    pub(crate) mended: Option<Mended>,
}

/// What was mended in embedded arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mended {
    /// They are nested deeper than parsers take, and are sent as text within an object.
    Depth,
    /// Lone surrogate escapes were replaced.
    Surrogates,
}

/// Deepest nesting of embedded JSON: parsers stop at 127 levels, some of which the request itself takes.
pub(crate) const EMBEDDED_DEPTH: usize = 100;

/// The fields of what a provider wrote itself. `None` if it is no object, holds half characters, or is nested too deep to be
/// embedded. Numbers that are out of the range of an `f64` are read as the largest: the fields are looked at, not written.
pub(crate) fn embedded_object(json: &Json) -> Option<Map<String, Value>> {
    let text = json.as_str();
    if json::depth(text) > EMBEDDED_DEPTH { None } else { json::value(text).ok() }
}

/// The text of a JSON object, as [`object`] gives it, for embedding.
pub(crate) fn embedded(object: &str) -> Embedded {
    if json::depth(object) > EMBEDDED_DEPTH {
        return Embedded { json: raw(&malformed(object)), mended: Some(Mended::Depth) };
    }
    let text = json::replace_lone_surrogates(object);
    let mended = matches!(text, Cow::Owned(_)).then_some(Mended::Surrogates);
    Embedded { json: raw(&json::one_line(&text)), mended }
}

/// `object` gives JSON text only.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_stay_byte_for_byte_and_the_rest_becomes_one() {
        let table = [
            (r#"{"a" : 1.0e3}"#, r#"{"a" : 1.0e3}"#),
            (" {} ", " {} "),
            ("", "{}"),
            (" \n", "{}"),
            ("null", "{}"),
            ("[ ]", "{}"),
            ("[1]", r#"{"malformed_arguments":"[1]"}"#),
            (r#"{"query": "rust ser"#, r#"{"malformed_arguments":"{\"query\": \"rust ser"}"#),
            (r#"{"a":1}{"b":2}"#, r#"{"malformed_arguments":"{\"a\":1}{\"b\":2}"}"#),
            (r#""{\"x\": 1}""#, r#"{"x": 1}"#),
            ("{\"a\":\"b\nc\"}", r#"{"a":"b\nc"}"#),
            ("{\"a\":NaN}", r#"{"malformed_arguments":"{\"a\":NaN}"}"#),
        ];
        for (given, wanted) in table {
            assert_eq!(object(given), wanted);
            assert!(json::is_object(&object(given)));
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
        assert!(object(&deep).starts_with("{\"malformed_arguments\":"));
    }

    #[test]
    fn embedded_arguments_parse_everywhere() {
        let deep = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let table = [
            (r#"{"n" : 1.0e5, "n": 2}"#.to_owned(), r#"{"n" : 1.0e5, "n": 2}"#.to_owned(), None),
            ("{\r\n\"a\": \"b\\n\"\n}".to_owned(), "{  \"a\": \"b\\n\" }".to_owned(), None),
            (r#"{"a":"\ud83d"}"#.to_owned(), r#"{"a":"\ufffd"}"#.to_owned(), Some(Mended::Surrogates)),
            (deep(100), deep(100), None),
            (deep(101), malformed(&deep(101)), Some(Mended::Depth)),
        ];
        for (given, wanted, mended) in table {
            let embedded = embedded(&given);
            assert_eq!((embedded.json.get(), embedded.mended), (wanted.as_str(), mended));
        }
    }
}
