//! OpenAI Chat Completions: the request's `messages`.
//!
//! `rules` is when it refuses a request, with the sources, `types` the official package's types as tables; `check`
//! judges requests, `read/` takes messages from requests and answers, `render/` writes prompts; `manner` is how a
//! server speaks it. The row below is what the rest of the crate knows of the wire.

pub(crate) mod check;
pub(crate) mod manner;
pub(crate) mod read;
pub(crate) mod render;
pub(crate) mod rules;
pub(crate) mod types;

pub use rules::RULES;

use super::read::forms::{GrowingTexts, ToolForm};
use super::target::{Target, Wire};

pub(super) static WIRE: Wire = Wire {
    name: manner::NAME,
    about: "OpenAI Chat Completions",
    rules: rules::RULES,
    messages: "messages",
    parameters: &rules::OC_02,
    surrogates: &rules::OC_32,
    check: check::check,
    render: render::render,
    joins_steps: false,
    is_of_answer: |_, object| object.peek("choices").is_some(),
    provider: manner::provider,
    decode: read::decode::decoder,
    parse: read::request::parse,
    tools: ToolForm {
        field: "tools",
        items: ToolForm::array,
        list: None,
        wrapper: Some("function"),
        schema: |declaration| declaration.take("parameters"),
    },
    names: |_| render::NAMES,
    reasons: &[],
    growing: GrowingTexts { identity: &["index"], texts: &["delta"] },
};

impl Target {
    /// OpenAI Chat Completions, as OpenAI speaks it.
    pub const OPENAI_CHAT: Self = Self::of(&WIRE);
}
