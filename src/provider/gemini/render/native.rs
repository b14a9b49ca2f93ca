//! Parts as the service wrote them: given back byte for byte where they are valid and belong there.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::history::report::Unsent;
use crate::json;
use crate::json::fields::Fields;
use crate::model::{Chunk, Json};
use crate::provider::check::findings::Findings;
use crate::provider::check::value::field;
use crate::provider::gemini::check::check_content;
use crate::provider::gemini::manner::NAME;
use crate::provider::prompt::arguments::EMBEDDED_DEPTH;
use crate::provider::prompt::media::bytes::decode_any_base64;
use crate::provider::text::{is_blank, is_spelling_of};

/// Parts that are chunks of their own kind.
const TYPED: &[&str] = &["text", "functionCall", "functionResponse", "function_call", "function_response"];

/// What the service's own tools leave.
const HOSTED: &[&str] = &["executableCode", "codeExecutionResult", "toolCall", "toolResponse"];

/// What a user sends beside text.
const INPUTS: &[&str] = &["inlineData", "fileData"];

/// What is beside a response: pictures that the tool gave, when the model gets it, whether more follows. A result has no
/// place for it.
pub(crate) const BESIDE_RESPONSE: &[&str] = &["parts", "scheduling", "willContinue"];

/// A part as the service wrote it, read.
#[derive(Debug)]
pub(crate) struct NativePart<'a> {
    json: &'a Json,
    fields: Map<String, Value>,
}

impl<'a> NativePart<'a> {
    /// What came with a chunk, if it is of this wire.
    pub(crate) fn of(chunk: &'a Chunk) -> Option<Self> {
        let native = chunk.native.as_ref().filter(|native| native.wire == NAME)?;
        Self::read(&native.json)
    }

    /// `None` if it is no object, holds half characters or a number that no double holds, or is nested too deep.
    pub(crate) fn read(json: &'a Json) -> Option<Self> {
        let text = json.as_str();
        let fields = if json::is_deeper(text, EMBEDDED_DEPTH) { None } else { serde_json::from_str(text).ok() };
        Some(Self { json, fields: fields? })
    }

    /// As it came.
    pub(crate) fn whole(&self) -> Box<RawValue> {
        RawValue::from_string(json::one_line(self.json.as_str()).into_owned()).unwrap_or_default()
    }

    fn text(&self) -> Option<&str> {
        self.fields.get("text").and_then(Value::as_str)
    }

    fn is_thought(&self) -> bool {
        self.fields.get("thought") == Some(&Value::Bool(true))
    }

    pub(crate) fn is_signed(&self) -> bool {
        // As it came: who made it knows its bytes.
        let signature = field(&self.fields, "thoughtSignature").and_then(Value::as_str);
        signature.is_some_and(|signature| !signature.is_empty() && decode_any_base64(signature).is_some())
    }

    /// What `check` finds in a content of this role that holds it.
    fn findings(&self, role: &str) -> Findings {
        let mut findings = Findings::default();
        check_content(&json!({"role": role, "parts": [self.fields]}), "", &mut findings);
        findings
    }

    /// Whether the model may have said it.
    fn is_valid(&self) -> bool {
        let blank = self.text().is_some_and(|text| !text.is_empty() && is_blank(text));
        !blank && self.findings("model").iter().all(|finding| !finding.level.is_refused())
    }

    /// Is this the text?
    pub(crate) fn is_text(&self, text: &str) -> bool {
        self.text() == Some(text) && !self.is_thought() && self.is_valid()
    }

    /// Is this the thought, with its signature (GM-26)?
    pub(crate) fn is_thinking(&self, text: &str) -> bool {
        self.text() == Some(text) && self.is_thought() && self.is_signed() && self.is_valid()
    }

    /// Is this the call? The first of a step has its signature (GM-17).
    pub(crate) fn is_call(&self, name: &str, arguments: &str, first: bool) -> bool {
        let Some(call) = field(&self.fields, "functionCall").filter(|_| self.is_valid()) else { return false };
        let given = serde_json::from_str::<Value>(arguments).ok();
        call.get("name").is_some_and(|called| called == name)
            && (call.get("args") == given.as_ref() || call.get("args").is_none() && arguments == "{}")
            && (self.is_signed() || !first)
    }

    /// The id that the service gave the call.
    pub(crate) fn call_id(&self) -> Option<String> {
        let id = field(&self.fields, "functionCall")?.get("id")?.as_str()?;
        Some(id.to_owned()).filter(|id| !id.is_empty())
    }

    /// What is beside the response of a function, as far as `check` does not refuse it.
    pub(crate) fn beside_response(&self) -> BTreeMap<&'static str, Box<RawValue>> {
        let of = |fields: &Fields<'a>, wanted: &str| {
            fields.present().find(|(name, _)| is_spelling_of(wanted, name)).map(|(_, raw)| raw)
        };
        let part = Fields::read(self.json.as_str()).unwrap_or_default();
        let given = of(&part, "functionResponse").and_then(Fields::of).unwrap_or_default();
        let taken = |name: &&'static str| {
            let raw = of(&given, name)?;
            let value: Value = serde_json::from_str(raw.get()).ok()?;
            let mut findings = Findings::default();
            let response = json!({"name": "f", "response": {}, *name: value});
            check_content(&json!({"role": "user", "parts": [{"functionResponse": response}]}), "", &mut findings);
            let is_taken = findings.iter().all(|finding| !finding.level.is_refused());
            is_taken.then(|| (*name, raw.to_owned()))
        };
        BESIDE_RESPONSE.iter().filter_map(taken).collect()
    }

    /// Is this a picture that the model drew?
    pub(crate) fn is_picture(&self) -> bool {
        field(&self.fields, "inlineData").is_some() && (self.is_signed() || self.is_thought()) && self.is_valid()
    }

    /// Is this a part that the user may send, saying this if it is text?
    pub(crate) fn is_input(&self, text: Option<&str>) -> bool {
        let is_kind = match text {
            Some(text) => self.text() == Some(text) && !self.is_thought() && !is_blank(text),
            None => INPUTS.iter().any(|name| field(&self.fields, name).is_some()),
        };
        is_kind && self.findings("user").is_empty()
    }

    /// Is this a part of its own, of this kind, known or not? What else an answer holds is no part.
    pub(crate) fn is_part(&self, kind: &str) -> bool {
        let is_known = HOSTED.iter().any(|name| field(&self.fields, name).is_some());
        is_known || self.fields.contains_key(kind) && !TYPED.contains(&kind)
    }

    /// Why the target refuses the part in a content of the model.
    pub(crate) fn refusal(&self) -> Option<Unsent<'static>> {
        let refusal = self.findings("model").into_kept().into_iter().find(|finding| finding.level.is_refused());
        let refusal = refusal.map(|finding| Unsent::Refused(finding.into()));
        refusal.or_else(|| (!self.is_valid()).then_some(Unsent::Blank))
    }
}

/// GM-18: base64, in either alphabet, without bits to spare: those who decode strictly take no other.
pub(crate) fn is_signature(signature: &str) -> bool {
    let engines = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
    !signature.is_empty() && engines.iter().any(|engine| engine.decode(signature).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_part_that_says_the_same_goes_back() {
        let read = |json: &str| -> NativePart<'static> {
            NativePart::read(Box::leak(Box::new(Json::new(json).unwrap()))).unwrap()
        };
        let signed = read(r#"{"text":"hm","thought":true,"thoughtSignature":"c2lnbmF0dXJl"}"#);
        let unsigned = read(r#"{"text":"hm","thought":true}"#);
        assert!(signed.is_thinking("hm") && !signed.is_thinking("oh") && !unsigned.is_thinking("hm"));
        let call = r#"{"functionCall":{"name":"f","args":{"a":1}}"#;
        let signed = read(&format!(r#"{call},"thoughtSignature":"c2lnbmF0dXJl"}}"#));
        let unsigned = read(&format!("{call}}}"));
        assert!(signed.is_call("f", r#"{"a": 1}"#, true));
        assert!(!signed.is_call("g", r#"{"a":1}"#, true) && !signed.is_call("f", "{}", true));
        assert!(unsigned.is_call("f", r#"{"a":1}"#, false), "only the first of a step has a signature");
        assert!(!unsigned.is_call("f", r#"{"a":1}"#, true));
        assert!(read(r#"{"text":"a"}"#).is_input(Some("a")) && !read(r#"{"text":"a"}"#).is_input(Some("b")));
        let file = r#"{"fileData":{"mimeType":"image/png","fileUri":"https://a.example/b.png"}"#;
        assert!(read(&format!("{file}}}")).is_input(None));
        assert!(!read(&format!(r#"{file},"unknown":1}}"#)).is_input(None), "`check` finds something");
    }
}
