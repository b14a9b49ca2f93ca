//! OpenAI Responses: the request's `input`.

mod check;
mod content;
mod item;
mod render;
mod rules;
mod sequence;
mod types;

pub use rules::RULES;

use super::{Wire, unread};

/// The wire's name, also where a chunk holds what the provider wrote.
const NAME: &str = "openai-responses";

pub(super) static WIRE: Wire = Wire {
    name: NAME,
    rules: RULES,
    messages: "input",
    surrogates: &rules::OR_28,
    check: check::check,
    render: render::render,
    decode: unread::decoder,
    parse: unread::parse,
};
