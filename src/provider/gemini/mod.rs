//! Gemini's generateContent: the request's `systemInstruction` and `contents`.

mod check;
mod content;
mod ingest;
mod model;
mod parse;
mod part;
mod render;
mod rules;
mod sequence;
mod signature;
mod types;

pub use rules::RULES;

pub(super) use render::{AI_STUDIO, Manner};
pub(super) use rules::{GM_03, GM_06, GM_17};
pub(super) use sequence::turns;
pub(super) use signature::unsigned_calls;

use super::{Target, Wire};

/// The wire's name, also where a chunk holds what the provider wrote.
const NAME: &str = "gemini";
/// Stands for the signature of a call that the service did not make, or whose signature was not kept. Source:
/// ai.google.dev thought-signatures.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Whose answers a target's are.
fn provider(target: Target) -> &'static str {
    Manner::of(target).providers.first().copied().unwrap_or(NAME)
}

pub(super) static WIRE: Wire = Wire {
    name: NAME,
    rules: RULES,
    messages: "contents",
    parameters: &rules::GM_02,
    surrogates: &rules::GM_27,
    check: check::check,
    render: render::render,
    joins_steps: false,
    decode: ingest::decoder,
    parse: parse::parse,
};
