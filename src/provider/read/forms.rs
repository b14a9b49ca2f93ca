//! What wires call the things that all of them have, a part of each wire's row; and what providers, and the servers before
//! them, send in place of an answer.

use serde_json::value::RawValue;

use crate::json::fields::{Fields, array, text};
use crate::model::Body;

/// Tools as they are in a request, and what is beside them.
pub(crate) type Tools<'a> = (Vec<&'a RawValue>, Fields<'a>);

/// How a wire declares tools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolForm {
    /// The field of the request that holds them.
    pub(crate) field: &'static str,
    /// The tools in that field, and what else is there: most often it is their array.
    pub(crate) items: fn(&RawValue) -> Option<Tools<'_>>,
    /// The field of a tool that holds an array of declarations, where one tool holds several functions.
    pub(crate) list: Option<&'static str>,
    /// The field of a tool that holds the declaration.
    pub(crate) wrapper: Option<&'static str>,
    /// Takes the JSON Schema out of a declaration.
    pub(crate) schema: for<'a> fn(&mut Fields<'a>) -> Option<&'a RawValue>,
}

impl ToolForm {
    /// The field is an array of tools.
    pub(crate) fn array(field: &RawValue) -> Option<Tools<'_>> {
        Some((array(field)?, Fields::default()))
    }
}

/// Which texts of a stream grow from one object to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrowingTexts {
    /// The fields that tell texts apart which grow under the same names.
    pub(crate) identity: &'static [&'static str],
    /// Under these names they stand.
    pub(crate) texts: &'static [&'static str],
}

/// The fields of an error that may say what went wrong: `message` of OpenAI and Anthropic, `detail` of FastAPI. A server before
/// that of the wire may answer in its own way.
const WORDS: &[&str] = &["message", "detail", "msg"];
/// The fields of an error that may hold its code.
const CODES: &[&str] = &["code", "type", "status"];

/// Takes the error out of an object that is, or has, one.
///
/// Known are `{"error": {"message", "code"}}` (OpenAI, OpenRouter), `{"error": "words"}`, `{"type": "error", "error": {..}}`
/// (Anthropic), `{"error": {"code", "message", "status"}}` (Gemini), `{"object": "error", "message"}` (vLLM), and any
/// object in an event of the name `error`.
pub(crate) fn take(event: &str, fields: &mut Fields<'_>) -> Option<Body> {
    if let Some(error) = fields.take("error") {
        return Some(body(error));
    }
    let is_error = |name: &str| fields.peek(name).is_some_and(|raw| raw.get() == "\"error\"");
    if event == "error" || is_error("type") || is_error("object") { worded(fields) } else { None }
}

/// The error of an object that is nothing else that is known.
pub(crate) fn worded(fields: &mut Fields<'_>) -> Option<Body> {
    let message = WORDS.iter().find_map(|name| fields.text(name))?;
    Some(Body::Error { message, code: code(fields) })
}

fn body(error: &RawValue) -> Body {
    let worded = Fields::of(error).and_then(|mut fields| worded(&mut fields));
    worded.unwrap_or_else(|| Body::Error { message: text(error), code: None })
}

fn code(fields: &mut Fields<'_>) -> Option<String> {
    CODES.iter().find_map(|name| fields.take(name)).map(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_known_by_their_shapes() {
        let table = [
            ("", r#"{"error":{"message":"slow down","type":"rate","code":"429"}}"#, Some(("slow down", Some("429")))),
            ("", r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#, Some(("busy", Some("503")))),
            ("", r#"{"type":"error","error":{"type":"overloaded","message":"o"}}"#, Some(("o", Some("overloaded")))),
            ("", r#"{"error":"model not found"}"#, Some(("model not found", None))),
            ("", r#"{"error":{"a":1}}"#, Some((r#"{"a":1}"#, None))),
            ("", r#"{"object":"error","message":"m","code":400}"#, Some(("m", Some("400")))),
            ("error", r#"{"message":"m"}"#, Some(("m", None))),
            ("", r#"{"message":"m"}"#, None),
            ("", r#"{"error":null,"type":"response"}"#, None),
        ];
        for (event, json, wanted) in table {
            let found = Fields::read(json).ok().and_then(|mut fields| take(event, &mut fields));
            let wanted = wanted
                .map(|(message, code)| Body::Error { message: message.to_owned(), code: code.map(str::to_owned) });
            assert_eq!(found, wanted, "{json}");
        }
    }
}
