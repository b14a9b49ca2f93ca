//! An append-only store for LLM conversations. Documentation follows with the layers.

pub mod provider;
