//! OpenAI Responses: the request's `input`.

mod check;
mod content;
mod ingest;
mod item;
mod parse;
mod render;
mod rules;
mod sequence;
mod types;

pub use rules::RULES;

use super::Wire;

/// The wire's name, also where a chunk holds what the provider wrote.
const NAME: &str = "openai-responses";
/// The provider whose reasoning and items these are.
const PROVIDER: &str = "openai";

pub(super) static WIRE: Wire = Wire {
    name: NAME,
    rules: RULES,
    messages: "input",
    parameters: &rules::OR_02,
    surrogates: &rules::OR_28,
    check: check::check,
    render: render::render,
    joins_steps: false,
    decode: ingest::decoder,
    parse: parse::parse,
};
