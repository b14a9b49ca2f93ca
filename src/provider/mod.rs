//! The wires: what a provider's request looks like, and when it is refused.
//!
//! A *wire* is a request format (`openai-chat`); a *dialect* is a server that speaks a wire with rules of its own
//! (`deepseek`). To add a wire: one folder here and one row in [`WIRES`]. To add a dialect: one file in `dialect/` and
//! one row in [`DIALECTS`].

pub mod anthropic;
mod arguments;
mod attachment;
mod check;
mod declarations;
mod dialect;
mod finding;
pub mod gemini;
mod imageless;
mod ingest;
mod kept;
mod measure;
mod media;
pub mod openai_chat;
pub mod openai_responses;
mod parse;
mod payload;
mod picture;
mod prompt;
mod repair;
mod rounds;
mod rule;
mod shape;
mod summary;
mod target;
mod text;
mod tokens;
mod tool_id;
mod tools;
mod turns;
mod window;
mod windowed;

pub use check::{NotJson, check};
pub use dialect::{DIALECTS, Dialect, bedrock, databricks, deepseek, gemini3, groq, mistral, moonshot, vertex, vllm};
pub use finding::{Finding, Level};
pub use ingest::{Decoder, Event, decode};
pub use parse::{Parsed, parse};
pub use prompt::{FinishedTools, Images, NoContent, Prompt, PromptOptions, Thinking, render};
pub use repair::repair;
pub use rule::Rule;
pub use target::{Target, UnknownTarget};
pub use tools::Tool;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::history::StoredMessage;

/// A request format: its name, its rules, its functions.
#[derive(Debug)]
pub struct Wire {
    /// Name as in `--for`, for example `openai-chat`.
    pub name: &'static str,
    /// When a request is refused, or accepted with a loss.
    pub rules: &'static [&'static Rule],
    /// The key of the request under which its messages stand. An array in place of a request is taken as theirs.
    messages: &'static str,
    /// The rule that a field of the request breaks which is not known.
    parameters: &'static Rule,
    /// The rule that a lone surrogate breaks, in any string of the request.
    surrogates: &'static Rule,
    /// Judges a request by all other rules.
    check: fn(&Value, &mut Vec<Finding>),
    /// Renders reconciled messages.
    render: Render,
    /// Whether it tells the steps of the tools that a provider ran itself in one message. Else they are parted before.
    joins_steps: bool,
    /// Makes a decoder of a target's answers.
    decode: fn(Target) -> Box<dyn ingest::Decode>,
    /// Takes the messages out of a request's fields. What it leaves there is no part of the conversation.
    parse: fn(Target, &mut ingest::fields::Fields<'_>) -> crate::Result<Parsed>,
}

type Render = fn(Target, &[StoredMessage], &PromptOptions) -> crate::Result<(Box<RawValue>, Vec<crate::ReportLine>)>;

/// All wires.
pub static WIRES: &[&Wire] = &[&openai_chat::WIRE, &openai_responses::WIRE, &anthropic::WIRE, &gemini::WIRE];
