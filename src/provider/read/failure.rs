//! What providers, and the servers before them, send in place of an answer.

use serde_json::value::RawValue;

use super::forms::ErrorForm;
use crate::json::fields::{Fields, text};
use crate::model::Body;

/// The words are OpenAI's and Anthropic's `message`, FastAPI's `detail`.
pub(crate) const USUAL: ErrorForm =
    ErrorForm { words: &["message", "detail", "msg"], codes: &["code", "type", "status"] };

/// Takes the error out of an object that is, or has, one.
///
/// Known are `{"error": {"message", "code"}}` (OpenAI, OpenRouter), `{"error": "words"}`, `{"type": "error", "error": {..}}`
/// (Anthropic), `{"error": {"code", "message", "status"}}` (Gemini), `{"object": "error", "message"}` (vLLM), and any
/// object in an event of the name `error`.
pub(crate) fn take(event: &str, fields: &mut Fields<'_>, form: &ErrorForm) -> Option<Body> {
    if let Some(error) = fields.take("error") {
        return Some(body(error, form));
    }
    let is_error = |name: &str| fields.peek(name).is_some_and(|raw| raw.get() == "\"error\"");
    if event == "error" || is_error("type") || is_error("object") { worded(fields, form) } else { None }
}

/// The error of an object that is nothing else that is known.
pub(crate) fn worded(fields: &mut Fields<'_>, form: &ErrorForm) -> Option<Body> {
    let message = form.words.iter().find_map(|name| fields.text(name))?;
    Some(Body::Error { message, code: code(fields, form) })
}

fn body(error: &RawValue, form: &ErrorForm) -> Body {
    let worded = Fields::of(error).and_then(|mut fields| worded(&mut fields, form));
    worded.unwrap_or_else(|| Body::Error { message: text(error), code: None })
}

fn code(fields: &mut Fields<'_>, form: &ErrorForm) -> Option<String> {
    form.codes.iter().find_map(|name| fields.take(name)).map(text)
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
            let found = Fields::read(json).ok().and_then(|mut fields| take(event, &mut fields, &USUAL));
            let wanted = wanted
                .map(|(message, code)| Body::Error { message: message.to_owned(), code: code.map(str::to_owned) });
            assert_eq!(found, wanted, "{json}");
        }
    }
}
