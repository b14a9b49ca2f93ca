//! Gemini's generateContent: the request's `systemInstruction` and `contents`.

mod check;
mod content;
mod model;
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

use super::{Wire, unread};

/// The wire's name, also where a chunk holds what the provider wrote.
const NAME: &str = "gemini";

pub(super) static WIRE: Wire = Wire {
    name: NAME,
    rules: RULES,
    messages: "contents",
    surrogates: &rules::GM_27,
    check: check::check,
    render: render::render,
    decode: unread::decoder,
    parse: unread::parse,
};
