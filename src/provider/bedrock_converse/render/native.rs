//! Blocks as the provider wrote them: given back byte for byte where they are valid and belong there.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::request::{Block, Raw};
use crate::json;
use crate::model::{Chunk, Json};
use crate::provider::bedrock_converse::check::{Seen, check_block};
use crate::provider::bedrock_converse::manner::NAME;
use crate::provider::check::findings::Findings;
use crate::provider::prompt::arguments::embedded_object;
use crate::provider::prompt::turns::Origin;
use crate::provider::text::is_blank;

/// A block as the provider wrote it, read.
#[derive(Debug)]
pub(crate) struct NativeBlock<'a> {
    json: &'a Json,
    fields: Map<String, Value>,
}

impl<'a> NativeBlock<'a> {
    /// What came with a chunk, if it is of this wire.
    pub(crate) fn of(chunk: &'a Chunk) -> Option<Self> {
        let native = chunk.native.as_ref().filter(|native| native.wire == NAME)?;
        Self::read(&native.json)
    }

    /// `None` if it is no object, says nothing, holds half characters, or is nested too deep. A block that names its type
    /// is Anthropic's, which Bedrock serves by its other wire, too.
    pub(crate) fn read(json: &'a Json) -> Option<Self> {
        let is_block =
            |fields: &Map<String, Value>| !fields.contains_key("type") && fields.values().any(|value| !value.is_null());
        let fields = embedded_object(json).filter(is_block)?;
        Some(Self { json, fields })
    }

    /// As it came. `document`: of what, if it is one.
    pub(crate) fn block(&self, document: Option<Origin<'a>>) -> Block<'a> {
        let json = RawValue::from_string(json::compact(self.json.as_str()).into_owned()).unwrap_or_default();
        Block::Raw(Raw { json, document })
    }

    fn field(&self, kind: &str, name: &str) -> &Value {
        self.fields.get(kind).and_then(|block| block.get(name)).unwrap_or(&Value::Null)
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.fields.contains_key(kind)
    }

    /// Whether a message of this role may hold it: `check` finds nothing that is refused.
    pub(crate) fn fits(&self, role: &str) -> bool {
        let block = Value::Object(self.fields.clone());
        let (mut seen, mut findings) = (Seen::default(), Findings::default());
        check_block(&block, role, "", &mut seen, &mut findings);
        findings.iter().all(|finding| !finding.level.is_refused())
    }

    /// Is this the text? It may cite.
    pub(crate) fn is_text(&self, text: &str, role: &str) -> bool {
        let cited = self.field("citationsContent", "content").as_array();
        let cited = cited.map(|parts| parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<String>());
        let own = self.fields.get("text").and_then(Value::as_str);
        !is_blank(text) && (own == Some(text) || own.is_none() && cited.as_deref() == Some(text)) && self.fits(role)
    }

    /// Is this the thought? `unsigned`: it may be without a signature.
    pub(crate) fn is_thought(&self, text: &str, unsigned: bool) -> bool {
        let said = self.field("reasoningContent", "reasoningText");
        let is_signed = said.get("signature").and_then(Value::as_str).is_some_and(|signature| !signature.is_empty());
        let is_redacted = self.field("reasoningContent", "redactedContent").is_string();
        let is_said = said.get("text").is_some_and(|said| said == text) && (is_signed || unsigned && !is_blank(text));
        (is_said || is_redacted && text.is_empty()) && self.fits("assistant")
    }

    /// Is this the call?
    pub(crate) fn is_call(&self, id: &str, name: &str, arguments: &str) -> bool {
        let given = json::value::<Value>(arguments).ok();
        self.field("toolUse", "toolUseId") == id
            && self.field("toolUse", "name") == name
            && Some(self.field("toolUse", "input")) == given.as_ref()
            && self.fits("assistant")
    }

    /// Is this the result of that call? Documents get new names.
    pub(crate) fn is_result(&self, id: &str, role: &str) -> bool {
        let parts = self.field("toolResult", "content").as_array().map(Vec::as_slice).unwrap_or_default();
        let is_fit = |part: &Value| {
            let text = part.get("text").and_then(Value::as_str);
            part.get("document").is_none() && !text.is_some_and(is_blank)
        };
        self.field("toolResult", "toolUseId") == id && !parts.is_empty() && parts.iter().all(is_fit) && self.fits(role)
    }

    /// The name of a document.
    pub(crate) fn document_name(&self) -> Option<&str> {
        self.field("document", "name").as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_block_that_says_the_same_goes_back() {
        let read = |json: &str| -> NativeBlock<'static> {
            NativeBlock::read(Box::leak(Box::new(Json::new(json).unwrap()))).unwrap()
        };
        let call = read(r#"{"toolUse":{"toolUseId":"t1","name":"f","input":{"a":1}}}"#);
        assert!(call.is_call("t1", "f", r#"{"a": 1}"#));
        for (id, name, arguments) in [("t2", "f", r#"{"a":1}"#), ("t1", "g", r#"{"a":1}"#), ("t1", "f", "{}")] {
            assert!(!call.is_call(id, name, arguments), "{id} {name} {arguments}");
        }
        let cited = read(r#"{"citationsContent":{"content":[{"text":"a"},{"text":"b"}],"citations":[]}}"#);
        assert!(cited.is_text("ab", "assistant") && !cited.is_text("a", "assistant"));
        let result = |content: &str| read(&format!(r#"{{"toolResult":{{"toolUseId":"t1","content":[{content}]}}}}"#));
        let text = r#"{"text":"x"}"#;
        assert!(result(text).is_result("t1", "user") && !result(text).is_result("t2", "user"));
        let document = r#"{"document":{"format":"txt","name":"d","source":{"bytes":"eA=="}}}"#;
        assert!(result(document).fits("user") && !result(document).is_result("t1", "user"), "documents get new names");
    }
}
