//! Servers that speak another's wire with rules of their own, one file each.
//!
//! A file declares its rules, a function that judges a request by them, its manner (what it does otherwise than the wire's
//! inventor), and its row, which is in [`DIALECTS`](super::DIALECTS).

pub mod azure;
pub mod azure_responses;
pub mod bedrock;
pub mod cerebras;
pub mod compatible;
pub mod databricks;
pub mod deepseek;
pub mod deepseek_responses;
pub mod gemini3;
pub mod groq;
pub mod mistral;
pub mod moonshot;
pub mod ollama;
pub mod openrouter;
pub mod vertex;
pub mod vllm;
pub mod xai;
