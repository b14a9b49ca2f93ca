//! The wires: what a provider's request looks like, and when it is refused.
//!
//! A *wire* is a request format (`openai-chat`); a *dialect* is a server that speaks a wire with rules of its own
//! (`deepseek`). To add a wire: one file or folder here and one row in [`WIRES`]. To add a dialect: one file in
//! `dialect/` and one row in [`DIALECTS`].

mod dialect;
mod finding;
mod media;
mod openai_chat;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

pub use dialect::{DIALECTS, Dialect};
pub use finding::{Finding, Level};

/// A request format: its name and its functions.
#[derive(Debug)]
pub struct Wire {
    /// Name as in `--for`, for example `openai-chat`.
    pub name: &'static str,
    /// Finds what a provider would refuse in a request, or accept with a loss.
    check: fn(&Value, Option<&'static Dialect>) -> Vec<Finding>,
}

/// All wires.
pub static WIRES: &[Wire] = &[openai_chat::WIRE];
