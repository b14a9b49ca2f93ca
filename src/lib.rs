//! An append-only store for LLM conversations. Documentation follows with the layers.

mod json;
pub mod provider;
