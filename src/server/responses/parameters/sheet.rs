//! A request to a model that is being filled in; and values that several wires read: the format of a text, and reasoning.

use serde_json::Value;
use serde_json::value::RawValue;

use super::kinds::{unknown, unsupported, wrong};
use crate::json::fields::Fields;
use crate::json::object::{Node, Object};
use crate::provider::parameters::choice::Choice;
use crate::provider::parameters::form::Form;
use crate::provider::parameters::{RESPONSES, column, is_openais};
use crate::provider::{PromptOptions, Target, Tool};
use crate::server::refusal::Refusal;
use crate::server::responses::tools::Tools;

/// A request to a model that is being filled in.
#[derive(Debug)]
pub(super) struct Sheet<'a> {
    pub(super) target: Target,
    pub(super) model: &'a str,
    pub(super) context_tokens: Option<u64>,
    /// The client's request, as it was written.
    pub(super) text: Fields<'a>,
    pub(super) options: PromptOptions,
    pub(super) fields: Object,
    pub(super) report: Vec<String>,
    pub(super) tools: Tools,
    /// Those that go as they came: what they count for.
    pub(super) own_tools: Option<Tool>,
    pub(super) choice: Option<Choice>,
    /// How many tokens the answer may have, if the client says it.
    pub(super) answer_tokens: Option<u64>,
}

impl Sheet<'_> {
    pub(super) fn set(&mut self, path: &[&str], value: impl Into<Node>) {
        self.fields.set(path, value);
    }

    /// What the model may call, of a request's `tool_choice`.
    pub(super) fn choose(&mut self, value: &Value) -> Result<Choice, Refusal> {
        let choice = self.tools.choose(value)?;
        self.choice = Some(choice.clone());
        Ok(choice)
    }

    pub(super) fn dialect(&self) -> Option<&'static str> {
        self.target.dialect().map(|dialect| dialect.name)
    }

    /// The column of the target's wire.
    pub(super) fn wire(&self) -> usize {
        column(self.target)
    }

    /// Whether the server is OpenAI's, or serves OpenAI's models with OpenAI's parameters.
    pub(super) fn is_openais(&self) -> bool {
        is_openais(self.target)
    }

    /// The client's own text of a value, by its path; else what was read of it.
    pub(super) fn written(&self, path: &[&str], read: &Value) -> Node {
        let Some((last, before)) = path.split_last() else { return read.clone().into() };
        let mut fields = Some(self.text.clone());
        for name in before {
            fields = fields.and_then(|fields| fields.peek(name).and_then(Fields::of));
        }
        match fields.and_then(|fields| fields.peek(last)) {
            Some(raw) => Node::Raw(raw.to_owned()),
            None => read.clone().into(),
        }
    }

    /// The refusal of a parameter for which the wire has no place.
    pub(super) fn no_place(&self, param: &str) -> Refusal {
        unsupported(param, &format!("{} has no place for it", self.target))
    }

    /// The same of a value.
    pub(super) fn no_word(&self, param: &str, value: &str) -> Refusal {
        unsupported(param, &format!("{} has no word for '{value}'", self.target))
    }
}

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
    let kind = field("type").ok_or_else(|| Refusal::missing("text.format.type"))?;
    match string("text.format.type", kind)? {
        "text" | "json_object" => Ok(()),
        "json_schema" => {
            let schema = field("schema").ok_or_else(|| Refusal::missing("text.format.schema"))?;
            if !schema.is_object() {
                return Err(wrong("text.format.schema", "an object", schema));
            }
            let name = field("name").ok_or_else(|| Refusal::missing("text.format.name"))?;
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
