//! Servers that speak another's wire with rules of their own: a file each. Those without rules are rows of `plain`.
//!
//! A file declares its rules, a function that judges a request by them, its manner (what it does otherwise than the wire's
//! inventor), and its row, which is in [`DIALECTS`](super::DIALECTS). The row says what the server makes of the wire's rules
//! (`Overrides`); the wire's own functions ask the manner.

pub mod bedrock;
pub mod databricks;
pub mod deepseek;
pub mod deepseek_responses;
pub mod gemini3;
pub mod groq;
pub mod mistral;
pub mod moonshot;
pub mod perplexity;
pub(super) mod plain;
pub mod vertex;
pub mod vllm;

#[cfg(test)]
mod tests {
    use crate::provider::{DIALECTS, anthropic, gemini, openai_chat, openai_responses};

    #[test]
    fn the_dialects_of_a_wire_speak_in_its_terms() {
        for dialect in DIALECTS {
            let is_of_wire = match dialect.wire {
                openai_chat::manner::NAME => dialect.manner.is::<openai_chat::manner::Manner>(),
                openai_responses::manner::NAME => dialect.manner.is::<openai_responses::manner::Manner>(),
                anthropic::manner::NAME => dialect.manner.is::<anthropic::manner::Manner>(),
                gemini::manner::NAME => dialect.manner.is::<gemini::manner::Manner>(),
                _ => false,
            };
            assert!(is_of_wire, "{}/{}", dialect.wire, dialect.name);
        }
    }
}
