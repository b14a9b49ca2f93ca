//! What a function gave back.

use serde_json::value::RawValue;

use super::names::Names;
use crate::model::{Body, Chunk, Output, Part, PartBody};
use crate::provider::gemini::render::object::plain;
use crate::provider::read::fields::{Fields, Owner, json, string};

/// A `functionResponse` as a result.
pub(crate) fn response(mut fields: Fields<'_>, names: &mut Names) -> Chunk {
    let name = fields.text("name").unwrap_or_default();
    let tool_call_id = names.id(fields.string("id"), &name);
    let (output, is_error) = fields.take("response").map_or_else(|| (Output::Text(String::new()), None), output);
    let body = Body::ToolResult { tool_call_id, name: Some(name), output, is_error };
    Chunk { extra: fields.extra(Owner::Chunk), ..body.into() }
}

/// The output that would be written so; any other object is a JSON value.
fn output(raw: &RawValue) -> (Output, Option<bool>) {
    let of = |key: &str| {
        let mut fields = Fields::of(raw)?;
        let texts = texts(fields.take(key)?)?;
        let written = serde_json::to_string(&serde_json::json!({ key: texts.value() })).unwrap_or_default();
        (written == raw.get()).then_some(texts)
    };
    match (of("result"), of("error")) {
        (Some(Texts::One(text)), _) if plain(&text).is_none() => (Output::Text(text), None),
        (Some(Texts::Several(texts)), _) => (parts(texts), None),
        (None, Some(Texts::One(text))) if !text.is_empty() => (Output::Text(text), Some(true)),
        (None, Some(Texts::Several(texts))) if texts.iter().any(|text| !text.is_empty()) => (parts(texts), Some(true)),
        _ => (Output::Parts(json(raw).map(|json| PartBody::Json { json }.into()).into_iter().collect()), None),
    }
}

/// A text, or at least two.
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    fn value(&self) -> serde_json::Value {
        match self {
            Self::One(text) => text.as_str().into(),
            Self::Several(texts) => texts.as_slice().into(),
        }
    }
}

fn texts(raw: &RawValue) -> Option<Texts> {
    if let Some(text) = string(raw) {
        return Some(Texts::One(text));
    }
    let texts: Vec<String> = serde_json::from_str(raw.get()).ok()?;
    (texts.len() > 1).then_some(Texts::Several(texts))
}

fn parts(texts: Vec<String>) -> Output {
    Output::Parts(texts.into_iter().map(|text| Part::from(PartBody::Text { text })).collect())
}
