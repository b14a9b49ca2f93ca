//! Servers that speak another's wire with rules of their own.
//!
//! To add one: a file here that declares its rules and a function that judges a request by them, and a row in
//! [`DIALECTS`]. The function runs after that of the wire and sees its findings: it may add, may raise a level, and may
//! put its own rule in the place of the wire's.

pub mod deepseek;
mod thinking;

use serde_json::Value;

use super::finding::Finding;
use super::openai_chat;
use super::rule::Rule;

/// A server's way of speaking a wire.
#[derive(Debug)]
pub struct Dialect {
    /// Name as in `--dialect`, for example `deepseek`.
    pub name: &'static str,
    /// Name of the wire it speaks.
    pub wire: &'static str,
    /// Its own rules; those of the wire hold as well.
    pub rules: &'static [&'static Rule],
    /// Judges a request, its messages under their key, by those rules.
    pub(super) check: fn(&Value, &mut Vec<Finding>),
    /// How it speaks: what its renderer does otherwise than for the wire.
    pub(super) manner: Manner,
}

/// How a dialect speaks its wire.
#[derive(Debug)]
pub(super) enum Manner {
    OpenAiChat(openai_chat::Manner),
}

/// All dialects.
pub static DIALECTS: &[Dialect] = &[deepseek::DIALECT];
