//! Amazon Bedrock's Converse: the request's `system`, `messages` and `toolConfig`.
//!
//! `rules` is when it refuses a request, with the sources, `types` the official package's types as tables; `check`
//! judges requests, `read/` takes messages from requests and answers, `render/` writes prompts; `manner` is what it is
//! called, `models` what the name of a model shows. The row below is what the rest of the crate knows of the wire.

pub(crate) mod check;
pub(crate) mod manner;
pub(crate) mod models;
pub(crate) mod read;
pub(crate) mod render;
pub(crate) mod rules;
pub(crate) mod types;

pub use rules::RULES;

use super::read::forms::{GrowingTexts, ToolForm};
use super::target::{Target, Wire};
use crate::json::fields::Fields;
use crate::model::FinishReason;

pub(super) static WIRE: Wire = Wire {
    name: manner::NAME,
    about: "Amazon Bedrock's Converse, for all of its models",
    rules: rules::RULES,
    messages: "messages",
    parameters: &rules::BC_02,
    surrogates: &rules::BC_20,
    check: check::check,
    render: render::render,
    joins_steps: false,
    is_of_answer: |event, object| {
        event == "messageStart"
            || object.peek("messageStart").is_some()
            || object.peek("output").is_some() && object.peek("stopReason").is_some()
    },
    provider: |_| manner::PROVIDER,
    decode: read::decode::decoder,
    parse: read::request::parse,
    tools: ToolForm {
        field: "toolConfig",
        items: |raw| {
            let mut config = Fields::of(raw)?;
            Some((config.array("tools")?, config))
        },
        list: None,
        wrapper: Some("toolSpec"),
        schema: |declaration| declaration.object("inputSchema")?.take("json"),
    },
    names: |_| render::NAMES,
    reasons: &[
        ("guardrail_intervened", FinishReason::ContentFilter),
        ("content_filtered", FinishReason::ContentFilter),
        ("malformed_model_output", FinishReason::Error),
        ("malformed_tool_use", FinishReason::Error),
    ],
    growing: GrowingTexts { identity: &["contentBlockIndex"], texts: &["delta"] },
};

impl Target {
    /// Amazon Bedrock's Converse.
    pub const BEDROCK_CONVERSE: Self = Self::of(&WIRE);
}
