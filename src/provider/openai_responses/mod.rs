//! OpenAI Responses: the request's `input`.
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
    about: "OpenAI Responses",
    rules: rules::RULES,
    messages: "input",
    parameters: &rules::OR_02,
    surrogates: &rules::OR_28,
    check: check::check,
    render: render::render,
    joins_steps: false,
    is_of_answer: |_, object| object.says("object", "response") || object.says("type", "response.created"),
    provider: manner::provider,
    decode: read::decode::decoder,
    parse: read::request::parse,
    tools: ToolForm {
        field: "tools",
        items: ToolForm::array,
        list: None,
        wrapper: None,
        schema: |declaration| declaration.take("parameters"),
    },
    names: |_| render::NAMES,
    reasons: &[],
    growing: GrowingTexts {
        identity: &["output_index", "content_index", "summary_index", "item_id"],
        texts: &["delta"],
    },
};

impl Target {
    /// OpenAI Responses.
    pub const OPENAI_RESPONSES: Self = Self::of(&WIRE);
}
