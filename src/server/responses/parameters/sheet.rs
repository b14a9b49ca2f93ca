//! A request to a model that is being filled in.

use serde_json::Value;

use super::kinds::unsupported;
use crate::json::fields::Fields;
use crate::json::object::{Node, Object};
use crate::provider::parameters::choice::Choice;
use crate::provider::parameters::{column, is_openais};
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
