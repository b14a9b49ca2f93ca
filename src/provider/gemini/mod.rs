//! Gemini's generateContent: the request's `systemInstruction` and `contents`.
//!
//! `rules` is when it refuses a request, with the sources, `types` the official package's types as tables; `check`
//! judges requests, `read/` takes messages from requests and answers, `render/` writes prompts; `manner` is how a
//! server speaks it, `models` what the name of a model shows. The row below is what the rest of the crate knows of the
//! wire.

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
    about: "Gemini, as AI Studio serves it",
    rules: rules::RULES,
    messages: "contents",
    parameters: &rules::GM_02,
    surrogates: &rules::GM_27,
    check: check::check,
    render: render::render,
    joins_steps: false,
    is_of_answer: |_, object| object.peek("candidates").is_some(),
    provider: manner::provider,
    decode: read::decode::decoder,
    parse: read::request::parse,
    tools: ToolForm {
        field: "tools",
        items: ToolForm::array,
        list: Some("functionDeclarations"),
        wrapper: None,
        schema: |declaration| declaration.take("parameters").or_else(|| declaration.take("parametersJsonSchema")),
    },
    names: |_| render::NAMES,
    reasons: &[],
    growing: GrowingTexts { identity: &["index", "thought"], texts: &["parts"] },
};

impl Target {
    /// Gemini's generateContent, as Google's AI Studio speaks it.
    pub const GEMINI: Self = Self::of(&WIRE);
}
