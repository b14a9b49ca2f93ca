//! `reasoning_details`, which OpenRouter sends in pieces: what goes back is what the pieces make up, as in a whole answer.

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::model::{Extra, Json};
use crate::provider::read::answer::Answer;

/// The field.
pub(crate) const NAME: &str = "reasoning_details";
/// What grows, and in which type (openrouter.ai/docs, reasoning tokens). Others come whole.
const GROWING: &[(&str, &str)] = &[("reasoning.text", "text"), ("reasoning.summary", "summary")];

/// The details so far, field by field in their order.
#[derive(Debug, Default)]
pub(crate) struct Details(Vec<Vec<(String, Value)>>);

impl Details {
    /// A detail, or a piece of the last one.
    pub(crate) fn take(&mut self, raw: &RawValue, answer: &mut Answer) {
        let Ok(fields) = Extra::from_object(raw.get()) else { return answer.keep(NAME, raw) };
        answer.hold(raw.get().len());
        let value = |json: &Json| serde_json::from_str(json.as_str()).unwrap_or_default();
        let piece: Vec<(String, Value)> = fields.iter().map(|(name, json)| (name.to_owned(), value(json))).collect();
        match self.0.last_mut().and_then(|last| Some((growing(last, &piece)?, last))) {
            Some((growing, last)) => piece.into_iter().for_each(|field| add(last, field, growing)),
            None => self.0.push(piece),
        }
    }

    /// Keeps them all.
    pub(crate) fn finish(&mut self, answer: &mut Answer) {
        let details = std::mem::take(&mut self.0);
        let written: Vec<String> = details.iter().map(|fields| object(fields)).collect();
        if let Ok(raw) = RawValue::from_string(format!("[{}]", written.join(",")))
            && !written.is_empty()
        {
            answer.keep(NAME, &raw);
        }
    }
}

/// The field of the last detail that a piece goes on with.
fn growing(last: &[(String, Value)], piece: &[(String, Value)]) -> Option<&'static str> {
    let (kind, index) = (get(piece, "type")?.as_str()?, get(piece, "index"));
    let field = GROWING.iter().find(|(name, _)| *name == kind)?.1;
    let is_same = get(last, "type")?.as_str()? == kind && get(last, "index") == index;
    // One that is signed is whole.
    let is_signed = get(last, "signature").is_some_and(|signature| !signature.is_null());
    (is_same && !is_signed).then_some(field)
}

fn get<'a>(fields: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn add(last: &mut Vec<(String, Value)>, (name, value): (String, Value), growing: &str) {
    match (last.iter_mut().find(|(known, _)| *known == name).map(|(_, known)| known), value) {
        (Some(Value::String(known)), Value::String(more)) if name == growing => known.push_str(&more),
        (Some(known @ Value::Null), value) => *known = value,
        (Some(_), _) => {}
        (None, value) => last.push((name, value)),
    }
}

fn object(fields: &[(String, Value)]) -> String {
    let text = |value: &Value| to_raw_value(value).map(|raw| raw.get().to_owned()).unwrap_or_default();
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), text(value))).collect();
    format!("{{{}}}", fields.join(","))
}
