//! Anthropic Messages: the request's `system` and `messages`.

mod block;
mod cache;
mod check;
mod image;
mod ingest;
mod message;
mod model;
mod parse;
mod render;
mod rules;
mod thinking;
mod tools;
mod turns;
mod types;

pub use rules::RULES;

pub(super) use block::blocks;
pub(super) use check::{messages, tool_names};
pub(super) use render::{Manner, PROVIDERS};
pub(super) use rules::{AN_04, AN_05, AN_11, AN_35, AN_38, AN_40};
pub(super) use turns::role;

use super::{Target, Wire};

/// Name of the wire, and of the provider that it is of.
const NAME: &str = "anthropic";

pub(super) static WIRE: Wire = Wire {
    name: NAME,
    rules: RULES,
    messages: "messages",
    parameters: &rules::AN_02,
    surrogates: &rules::AN_39,
    check: check::check,
    render: render::render,
    joins_steps: true,
    decode: ingest::decoder,
    parse: parse::parse,
};

/// Whose answers a target's are.
fn provider(target: Target) -> &'static str {
    Manner::of(target).provider
}
