//! Servers that speak another's wire with rules of their own.
//!
//! To add one: a file here that declares its rules and a function that judges a request by them, and a row in
//! [`DIALECTS`]. The function runs after that of the wire and sees its findings: it may add, may raise a level, and may
//! put its own rule in the place of the wire's.

pub mod bedrock;
pub mod databricks;
pub mod deepseek;
pub mod groq;
pub mod mistral;
pub mod moonshot;
mod thinking;
pub mod vllm;

use serde_json::Value;

use super::finding::Finding;
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
}

/// All dialects.
pub static DIALECTS: &[Dialect] = &[
    deepseek::DIALECT,
    mistral::DIALECT,
    groq::DIALECT,
    moonshot::DIALECT,
    vllm::DIALECT,
    databricks::DIALECT,
    bedrock::DIALECT,
];
