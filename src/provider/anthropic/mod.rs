//! Anthropic Messages: the request's `system` and `messages`.
//!
//! `rules` is when it refuses a request, with the sources, `types` the official package's types, and the tools that the
//! provider runs, as tables; `check/` judges requests, `read/` takes messages from requests and answers, `render/` writes
//! prompts; `manner` is how a server speaks it, `models` what the name of a model shows. The row below is what the rest of the
//! crate knows of the wire.

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

pub(super) static WIRE: Wire = Wire {
    name: manner::NAME,
    about: "Anthropic Messages",
    rules: rules::RULES,
    messages: "messages",
    parameters: &rules::AN_02,
    surrogates: &rules::AN_39,
    check: check::check,
    render: render::render,
    joins_steps: true,
    is_of_answer: |_, object| {
        object.says("type", "message_start") || object.says("type", "message") && object.peek("content").is_some()
    },
    provider: manner::provider,
    decode: read::decode::decoder,
    parse: read::request::parse,
    tools: ToolForm {
        field: "tools",
        items: ToolForm::array,
        list: None,
        wrapper: None,
        schema: |declaration| declaration.take("input_schema"),
    },
    names: |target| manner::Manner::of(target).names,
    reasons: &[],
    growing: GrowingTexts { identity: &["index"], texts: &["delta"] },
};

impl Target {
    /// Anthropic Messages, as Anthropic speaks it.
    pub const ANTHROPIC: Self = Self::of(&WIRE);
}
