//! The wires: what a provider's request looks like, and when it is refused.
//!
//! A *wire* is a request format (`openai-chat`); a *dialect* is a server that speaks a wire with rules of its own
//! (`deepseek`). What lives where, from the bottom:
//!
//! - `check/`, `prompt/`, `read/`: what every wire needs to judge a request, to write one, to read one and its answers.
//! - `target`: what a row of either table holds, and for whom a request is meant.
//! - a folder for each wire: `rules` (when it refuses, with the sources), `types` (the official package's, as tables),
//!   `manner` (what its dialects may do otherwise), `check`, `render/`, `read/`, and its row.
//! - `dialect/`: a file for each dialect that has rules of its own, and one for the others.
//! - `parameters/`: what a request says beside its messages and tools, and where each wire has it.
//! - the two tables below, and what looks something up in them: `names`, `explain` (what a refusal means), and `repair/`, which
//!   goes from wire to wire.
//!
//! **To add a wire**: its folder, declared here, and its row in [`WIRES`]. The row names all that the rest of the crate has
//! to know of it; its recorded answers go to `tests/fixtures/providers/`. **To add a dialect**: its file in `dialect/`, or
//! its row in `dialect/plain.rs` if it has no rules of its own, named in [`DIALECTS`].
//!
//! A file imports each item from the file that has it, and imports form no circle: `tests/project/architecture.rs`
//! refuses a circle, and an import against the direction.

pub mod anthropic;
pub mod bedrock_converse;
mod check;
mod dialect;
mod explain;
pub mod gemini;
mod names;
pub mod openai_chat;
pub mod openai_responses;
pub(crate) mod parameters;
mod prompt;
mod read;
mod repair;
mod target;
mod text;
mod usage;

pub use check::finding::{Finding, Level};
pub use check::judge::check;
pub use check::not_json::NotJson;
pub use check::rule::ProtocolRule;
use dialect::plain;
pub use dialect::{
    bedrock, databricks, deepseek, deepseek_responses, gemini3, groq, mistral, moonshot, perplexity, vertex, vllm,
};
pub use explain::{Explanation, explain};
pub use names::UnknownTarget;
#[cfg(feature = "server")]
pub(crate) use openai_responses::check::takes_id;
#[cfg(feature = "server")]
pub(crate) use openai_responses::render::{Source, items as responses_items};
#[cfg(feature = "transfer")]
pub(crate) use prompt::media::attachment::{Payload, file_name};
#[cfg(feature = "transfer")]
pub(crate) use prompt::media::bytes::decode_base64;
pub use prompt::option_table::{OptionValues, OptionWord, PROMPT_OPTIONS, PromptOption};
pub use prompt::options::{FinishedTools, Images, NoContent, PromptOptions, Thinking};
pub use prompt::render::{Prompt, render};
#[cfg(feature = "server")]
pub(crate) use prompt::tool_id::NameRule;
pub use prompt::tools::Tool;
#[cfg(feature = "server")]
pub(crate) use prompt::window::limits::tokens_of;
pub use read::answer::Event;
#[cfg(feature = "server")]
pub(crate) use read::decoder::provider_of;
pub use read::decoder::{Decoder, decode};
pub use read::parse::parse;
pub use read::parsed::Parsed;
pub use repair::request::{likely_wire, repair};
pub use target::{Dialect, Target, Wire};
pub use usage::TokenCounts;

/// All wires.
pub static WIRES: &[&Wire] =
    &[&openai_chat::WIRE, &openai_responses::WIRE, &anthropic::WIRE, &gemini::WIRE, &bedrock_converse::WIRE];

/// All dialects.
pub static DIALECTS: &[Dialect] = &[
    deepseek::DIALECT,
    mistral::DIALECT,
    groq::DIALECT,
    moonshot::DIALECT,
    vllm::DIALECT,
    databricks::DIALECT,
    perplexity::DIALECT,
    plain::OPENROUTER,
    plain::XAI,
    plain::AZURE,
    plain::OLLAMA,
    plain::CEREBRAS,
    plain::COMPATIBLE,
    deepseek_responses::DIALECT,
    plain::AZURE_RESPONSES,
    bedrock::DIALECT,
    vertex::DIALECT,
    gemini3::DIALECT,
];
