//! The settings of models: where they are.

use serde::{Deserialize, Serialize};

use super::upstream::Upstream;
use super::wrong::invalid;
use crate::error::Result;
use crate::provider::Target;

/// Where models of some names are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Model {
    /// The names: `qwen3`, or `qwen*` for all that begin so.
    pub pattern: String,
    /// The upstream that they are at.
    pub upstream: String,
    /// The wire or dialect that they are called by, if it is not the upstream's: `openai-chat/vllm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// The name that the upstream knows the model by, if it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rename: Option<String>,
    /// How many tokens its prompts may have: what `truncation: auto` leaves of a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

impl Model {
    /// Whether a model's name is one of these.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == self.pattern,
        }
    }
}

/// Fails on a model at no upstream, and on a wire that is not known.
pub(super) fn check(models: &[Model], upstreams: &[Upstream]) -> Result<()> {
    for model in models {
        if !upstreams.iter().any(|upstream| upstream.name == model.upstream) {
            return Err(invalid("model.upstream", &format!("there is no upstream {:?}", model.upstream)));
        }
        let wire = model.wire.as_deref().map(str::parse::<Target>).transpose();
        wire.map_err(|error| invalid("model.wire", &error.to_string()))?;
    }
    Ok(())
}
