//! Anthropic Messages: the request's `system` and `messages`.

mod block;
mod cache;
mod check;
mod image;
mod message;
mod model;
mod rules;
mod thinking;
mod tools;
mod turns;
mod types;

pub use rules::RULES;

pub(super) use block::blocks;
pub(super) use check::{messages, tool_names};
pub(super) use rules::{AN_04, AN_05, AN_11, AN_35, AN_38, AN_40};
pub(super) use turns::role;

use super::Wire;

pub(super) static WIRE: Wire =
    Wire { name: "anthropic", rules: RULES, messages: "messages", surrogates: &rules::AN_39, check: check::check };
