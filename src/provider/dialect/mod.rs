//! Servers that speak another's wire with rules of their own.
//!
//! To add one: a file here that declares its rules and a function that judges a request by them, and a row in
//! [`DIALECTS`]. The function runs after that of the wire and sees its findings: it may add, may raise a level, and may
//! put its own rule in the place of the wire's.

pub mod bedrock;
pub mod databricks;
pub mod deepseek;
pub mod gemini3;
pub mod groq;
pub mod mistral;
pub mod moonshot;
mod thinking;
pub mod vertex;
pub mod vllm;

use serde_json::Value;

use super::finding::{Finding, Level};
use super::rule::Rule;
use super::{anthropic, gemini, openai_chat};

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
    Anthropic(anthropic::Manner),
    Gemini(gemini::Manner),
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
    vertex::DIALECT,
    gemini3::DIALECT,
];

/// Makes findings of the wire's rules hard.
fn raise(rules: &[&Rule], out: &mut [Finding]) {
    for finding in out.iter_mut().filter(|finding| rules.iter().any(|rule| rule.id == finding.rule)) {
        finding.level = Level::Hard;
    }
}

/// What breaks one of the wire's rules, at that level, breaks this one too.
fn repeat(broken: &[(&Rule, Level)], rule: &Rule, out: &mut Vec<Finding>) {
    let found = out.iter().filter(|found| broken.iter().any(|(of, at)| (of.id, *at) == (found.rule, found.level)));
    let found: Vec<_> = found.map(|finding| rule.at(&finding.place, &finding.problem)).collect();
    out.extend(found);
}
