//! The form of an answer, as each wire says it.

use serde_json::value::RawValue;

use super::{ANTHROPIC, CHAT, GEMINI, RESPONSES, WIRES};
use crate::json::fields::{Fields, string};
use crate::json::object::{Node, Object};

/// Where each wire says it.
pub(crate) const PLACES: [&str; WIRES.len()] = [
    "response_format",
    "text.format",
    "output_config.format",
    "generationConfig.responseJsonSchema",
    "outputConfig.textFormat",
];
/// Where Gemini says that it is JSON.
pub(crate) const KIND: &str = "generationConfig.responseMimeType";
pub(crate) const JSON: &str = "application/json";

/// The form of an answer.
#[derive(Debug)]
pub(crate) enum Form {
    Text,
    /// Any JSON.
    Json,
    Schema(Schema),
}

/// JSON of a schema, which is kept as it was written: models write the fields of an answer in its order.
#[derive(Debug)]
pub(crate) struct Schema {
    name: Option<String>,
    description: Option<String>,
    is_strict: Option<bool>,
    schema: Box<RawValue>,
}

impl Schema {
    fn read(fields: &Fields<'_>) -> Option<Self> {
        let text = |name: &str| fields.peek(name).and_then(string);
        let schema = fields.peek("schema")?;
        // Converse has the schema as a text.
        let schema = match string(schema) {
            Some(text) => RawValue::from_string(text).ok()?,
            None => schema.to_owned(),
        };
        let is_strict = fields.peek("strict").map(|raw| raw.get() == "true");
        Some(Self { name: text("name"), description: text("description"), is_strict, schema })
    }

    /// With a name, which some wires require.
    fn named(&self, with_strict: bool) -> Object {
        let mut object = Object::default();
        object.put("name", self.name.as_deref().unwrap_or("answer"));
        if let Some(description) = &self.description {
            object.put("description", &**description);
        }
        if let Some(is_strict) = self.is_strict.filter(|_| with_strict) {
            object.put("strict", is_strict);
        }
        object
    }
}

impl Form {
    /// Reads what a request of the wire has at its place; `None` if nothing else has a word for it.
    pub(crate) fn read(wire: usize, raw: &RawValue) -> Option<Self> {
        let fields = Fields::of(raw)?;
        if wire == GEMINI {
            let schema = raw.to_owned();
            return Some(Self::Schema(Schema { name: None, description: None, is_strict: None, schema }));
        }
        match &*fields.peek("type").and_then(string)? {
            "text" => Some(Self::Text),
            "json_object" => Some(Self::Json),
            "json_schema" => {
                let inner = match wire {
                    CHAT => fields.peek("json_schema").and_then(Fields::of)?,
                    RESPONSES | ANTHROPIC => fields,
                    _ => {
                        let structure = fields.peek("structure").and_then(Fields::of)?;
                        structure.peek("jsonSchema").and_then(Fields::of)?
                    }
                };
                Schema::read(&inner).map(Self::Schema)
            }
            _ => None,
        }
    }

    /// Says it in a request of the wire. `false`: that has no word for it.
    pub(crate) fn put(&self, wire: usize, request: &mut Object) -> bool {
        let Some(written) = self.written(wire) else { return false };
        if wire == GEMINI && !matches!(self, Self::Text) {
            request.put(KIND, JSON);
        }
        if let Some(node) = written {
            request.put(PLACES.get(wire).copied().unwrap_or_default(), node);
        }
        true
    }

    /// What a request of the wire has at its place. That may be nothing.
    fn written(&self, wire: usize) -> Option<Option<Node>> {
        let mut object = Object::default();
        match (wire, self) {
            (_, Self::Text) | (GEMINI, Self::Json) => return Some(None),
            (CHAT | RESPONSES, Self::Json) => object.put("type", "json_object"),
            (_, Self::Json) => return None,
            (GEMINI, Self::Schema(of)) => return Some(Some(Node::Raw(of.schema.clone()))),
            (CHAT, Self::Schema(of)) => {
                let mut inner = of.named(true);
                inner.put("schema", Node::Raw(of.schema.clone()));
                object.put("type", "json_schema");
                object.put("json_schema", Node::Object(inner));
            }
            (RESPONSES, Self::Schema(of)) => {
                object = of.named(true);
                object.put("type", "json_schema");
                object.put("schema", Node::Raw(of.schema.clone()));
            }
            (ANTHROPIC, Self::Schema(of)) => {
                object.put("type", "json_schema");
                object.put("schema", Node::Raw(of.schema.clone()));
            }
            (_, Self::Schema(of)) => {
                let mut inner = of.named(false);
                inner.put("schema", of.schema.get());
                object.put("type", "json_schema");
                object.put("structure.jsonSchema", Node::Object(inner));
            }
        }
        Some(Some(Node::Object(object)))
    }
}
