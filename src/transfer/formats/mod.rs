//! One file for each format: how it is recognised, read, written.

pub(crate) mod chatgpt;
pub(crate) mod claude_ai;
