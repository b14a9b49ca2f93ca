//! Arguments of tool calls as every provider takes them: the JSON text of an object.

use std::borrow::Cow;

use crate::json;
use crate::model::Json;

/// The key under which arguments that are no JSON object are told.
const MALFORMED: &str = "malformed_arguments";

/// The arguments as they are, if they are the JSON text of an object. Nothing, `null` and an empty array become an empty
/// object; anything else is told as text within one, so that the model sees what it wrote.
pub(super) fn object(arguments: &str) -> Cow<'_, str> {
    if json::is_object(arguments) && json::depth(arguments) < Json::MAX_DEPTH {
        return Cow::Borrowed(arguments);
    }
    let without_space: String = arguments.chars().filter(|character| !character.is_whitespace()).collect();
    if ["", "null", "[]", "\"\""].contains(&without_space.as_str()) {
        return Cow::Borrowed("{}");
    }
    // A string always serialises.
    let text = serde_json::to_string(arguments).unwrap_or_default();
    Cow::Owned(format!("{{\"{MALFORMED}\":{text}}}"))
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
            ("{\"a\":NaN}", r#"{"malformed_arguments":"{\"a\":NaN}"}"#),
        ];
        for (given, wanted) in table {
            assert_eq!(object(given), wanted);
            assert!(json::is_object(&object(given)));
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
        assert!(object(&deep).starts_with("{\"malformed_arguments\":"));
    }
}
