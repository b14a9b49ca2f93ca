//! OpenAI Responses: the request's `input`.

mod check;
mod content;
mod item;
mod rules;
mod sequence;
mod types;

pub use rules::RULES;

use super::Wire;

pub(super) static WIRE: Wire =
    Wire { name: "openai-responses", rules: RULES, messages: "input", surrogates: &rules::OR_28, check: check::check, render: super::openai_chat::WIRE.render };
