//! OpenAI Chat Completions: the request's `messages`.

mod calls;
mod check;
mod content;
mod ingest;
mod message;
mod parse;
mod render;
mod rules;
mod sequence;
mod types;

pub use rules::RULES;

pub(super) use calls::{call_ids, calls};
pub(super) use check::messages;
pub(super) use render::{Images, Manner, OPENAI, Order, System, Texts, UserContent};
pub(super) use sequence::role;

use super::{Target, Wire};

pub(super) static WIRE: Wire = Wire {
    name: "openai-chat",
    rules: RULES,
    messages: "messages",
    parameters: &rules::OC_02,
    surrogates: &rules::OC_32,
    check: check::check,
    render: render::render,
    joins_steps: false,
    decode: ingest::decoder,
    parse: parse::parse,
};

/// Whose answers a target's are.
fn provider(target: Target) -> &'static str {
    Manner::of(target).providers.first().copied().unwrap_or_default()
}
