//! The library, by its public interface: each file a theme, each test a promise.
#![recursion_limit = "256"]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod call_text;
mod check;
mod crossing;
mod endings;
mod expectations;
mod followers;
mod ingest;
#[cfg(feature = "sled")]
mod limits;
mod many_fields;
mod next_step;
mod parse;
mod parse_anthropic;
mod parse_gemini;
mod parse_responses;
mod prompts;
mod reconcile;
mod recorded;
mod regressions;
mod render_anthropic;
mod render_converse;
mod render_dialects;
mod render_gemini;
mod render_openai_chat;
mod render_options;
mod render_responses;
mod repaired;
mod report;
#[cfg(feature = "search")]
mod search;
mod shapes;
mod summaries;
#[cfg(feature = "archives")]
mod transfer;
mod windows;
