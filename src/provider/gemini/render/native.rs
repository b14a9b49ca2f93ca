//! Parts as the service wrote them: given back byte for byte where they are valid and belong there.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::json_text;
use crate::model::{Chunk, Json};
use crate::provider::gemini::check::content::check_content;
use crate::provider::gemini::manner::NAME;
use crate::provider::prompt::arguments::embedded_object;
use crate::provider::prompt::media::bytes::decode_any_base64;
use crate::provider::text::is_blank;

/// What the service's own code execution leaves.
const HOSTED: &[&str] = &["executableCode", "codeExecutionResult"];

/// What a user sends beside text.
const INPUTS: &[&str] = &["inlineData", "fileData"];

/// A part as the service wrote it, read.
#[derive(Debug)]
pub(crate) struct Given<'a> {
    json: &'a Json,
    fields: Map<String, Value>,
}

impl<'a> Given<'a> {
    /// What came with a chunk, if it is of this wire.
    pub(crate) fn of(chunk: &'a Chunk) -> Option<Self> {
        let native = chunk.native.as_ref().filter(|native| native.wire == NAME)?;
        Self::read(&native.json)
    }

    /// `None` if it is no object, holds half characters, or is nested too deep.
    pub(crate) fn read(json: &'a Json) -> Option<Self> {
        Some(Self { json, fields: embedded_object(json)? })
    }

    /// As it came.
    pub(crate) fn whole(&self) -> Box<RawValue> {
        RawValue::from_string(json_text::compact(self.json.as_str())).unwrap_or_default()
    }

    fn text(&self) -> Option<&str> {
        self.fields.get("text").and_then(Value::as_str)
    }

    fn is_thought(&self) -> bool {
        self.fields.get("thought") == Some(&Value::Bool(true))
    }

    pub(crate) fn is_signed(&self) -> bool {
        self.fields.get("thoughtSignature").and_then(Value::as_str).is_some_and(is_signature)
    }

    /// Whether the model may have said it: `check` has nothing to say about it.
    fn is_valid(&self) -> bool {
        let mut findings = Vec::new();
        check_content(&json!({"role": "model", "parts": [self.fields]}), "", &mut findings);
        let blank = self.text().is_some_and(|text| !text.is_empty() && is_blank(text));
        findings.is_empty() && !blank
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
        let Some(call) = self.fields.get("functionCall").filter(|_| self.is_valid()) else { return false };
        let given = serde_json::from_str::<Value>(arguments).ok();
        call.get("name").is_some_and(|called| called == name)
            && (call.get("args") == given.as_ref() || call.get("args").is_none() && arguments == "{}")
            && (self.is_signed() || !first)
    }

    /// The id that the service gave the call.
    pub(crate) fn call_id(&self) -> Option<String> {
        let id = self.fields.get("functionCall")?.get("id")?.as_str()?;
        Some(id.to_owned()).filter(|id| !id.is_empty())
    }

    /// Is this a picture that the model drew?
    pub(crate) fn is_picture(&self) -> bool {
        self.fields.contains_key("inlineData") && self.is_signed() && self.is_valid()
    }

    /// Is this a part that the user may send, saying this if it is text?
    pub(crate) fn is_input(&self, text: Option<&str>) -> bool {
        let mut findings = Vec::new();
        check_content(&json!({"role": "user", "parts": [self.fields]}), "", &mut findings);
        let is_kind = match text {
            Some(text) => self.text() == Some(text) && !self.is_thought() && !is_blank(text),
            None => INPUTS.iter().any(|name| self.fields.contains_key(*name)),
        };
        findings.is_empty() && is_kind
    }

    /// Is this something that the service's own tools left?
    pub(crate) fn is_hosted(&self) -> bool {
        HOSTED.iter().any(|name| self.fields.contains_key(*name)) && self.is_valid()
    }
}

/// GM-18: base64, in either alphabet.
pub(crate) fn is_signature(signature: &str) -> bool {
    !signature.is_empty() && decode_any_base64(signature).is_some()
}
