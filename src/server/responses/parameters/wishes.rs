//! Values that several wires read: the format of a text, and reasoning.

use serde_json::Value;
use serde_json::value::RawValue;

use super::kinds::{missing, unknown, wrong};
use super::sheet::Sheet;
use crate::provider::parameters::RESPONSES;
use crate::provider::parameters::form::Form;
use crate::server::refusal::Refusal;

/// The parameter `text`: the format, and how many words.
#[derive(Debug)]
pub(super) struct Text<'a> {
    form: Form,
    pub(super) verbosity: Option<&'a str>,
}

impl<'a> Text<'a> {
    pub(super) fn read(value: &'a Value, sheet: &Sheet<'_>) -> Result<Self, Refusal> {
        let mut read = Self { form: Form::Text, verbosity: None };
        for (name, value) in given(value) {
            match name.as_str() {
                "verbosity" => read.verbosity = Some(string("text.verbosity", value)?),
                "format" => {
                    check(value)?;
                    let written = RawValue::from_string(sheet.written(&["text", "format"], value).to_string()).ok();
                    read.form = written.and_then(|raw| Form::read(RESPONSES, &raw)).unwrap_or(Form::Text);
                }
                _ => return Err(unknown(&format!("text.{name}"))),
            }
        }
        if let Some(word) = read.verbosity.filter(|word| !["low", "medium", "high"].contains(word)) {
            return Err(Refusal::value("text.verbosity", &format!("'{word}' is not low, medium or high")));
        }
        Ok(read)
    }

    /// Refuses what says something else than models do without a word.
    pub(super) fn refuse_verbosity(&self, sheet: &Sheet<'_>) -> Result<(), Refusal> {
        match self.verbosity {
            None | Some("medium") => Ok(()),
            Some(word) => Err(sheet.no_word("text.verbosity", word)),
        }
    }

    pub(super) fn put_form(&self, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
        match self.form.put(sheet.wire(), &mut sheet.fields) {
            true => Ok(()),
            false => Err(sheet.no_word("text.format", "json_object")),
        }
    }
}

/// Refuses a format that is none.
fn check(value: &Value) -> Result<(), Refusal> {
    let fields = value.as_object().ok_or_else(|| wrong("text.format", "an object", value))?;
    let field = |name: &str| fields.get(name).filter(|value| !value.is_null());
    let kind = field("type").ok_or_else(|| missing("text.format.type"))?;
    match string("text.format.type", kind)? {
        "text" | "json_object" => Ok(()),
        "json_schema" => {
            let schema = field("schema").ok_or_else(|| missing("text.format.schema"))?;
            if !schema.is_object() {
                return Err(wrong("text.format.schema", "an object", schema));
            }
            let name = field("name").ok_or_else(|| missing("text.format.name"))?;
            string("text.format.name", name)?;
            field("description").map_or(Ok(""), |value| string("text.format.description", value))?;
            match field("strict").filter(|value| !value.is_boolean()) {
                Some(value) => Err(wrong("text.format.strict", "a boolean", value)),
                None => Ok(()),
            }
        }
        other => Err(Refusal::value("text.format.type", &format!("'{other}' is not text, json_object or json_schema"))),
    }
}

/// The parameter `reasoning`.
#[derive(Debug, Default)]
pub(super) struct Reasoning<'a> {
    pub(super) effort: Option<&'a str>,
    /// Whether what was thought is to be shown, in short.
    pub(super) summary: bool,
}

/// All efforts of OpenAI's models, from the lowest.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

impl<'a> Reasoning<'a> {
    pub(super) fn read(value: &'a Value, sheet: &Sheet<'_>) -> Result<Self, Refusal> {
        let mut read = Self::default();
        for (name, value) in given(value) {
            let place = format!("reasoning.{name}");
            let word = string(&place, value)?;
            match name.as_str() {
                "effort" => read.effort = Some(word),
                "summary" | "generate_summary" => read.summary = true,
                // What goes back of earlier reasoning is the renderer's to say.
                "context" => {}
                "mode" if word == "standard" => {}
                "mode" => return Err(sheet.no_word(&place, word)),
                _ => return Err(unknown(&place)),
            }
        }
        if let Some(word) = read.effort.filter(|word| !EFFORTS.contains(word)) {
            let problem = format!("'{word}' is none of {}", EFFORTS.join(", "));
            return Err(Refusal::value("reasoning.effort", &problem));
        }
        Ok(read)
    }
}

/// The fields of an object that are not null.
fn given(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null())
}

fn string<'a>(place: &str, value: &'a Value) -> Result<&'a str, Refusal> {
    value.as_str().ok_or_else(|| wrong(place, "a string", value))
}
