//! Ollama, on OpenAI's chat wire.

use crate::provider::check::rule::rules;
use crate::provider::openai_chat::manner::{ImagesTaken, Manner, OPENAI, UserContent};
use crate::provider::target::Dialect;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "ollama",
    about: "Ollama",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    check: |_, _| {},
    manner: &MANNER,
};

/// Its own fields of a request.
const PARAMETERS: &[&str] = &["format", "keep_alive", "options", "think", "thinking"];

/// Images are sent as data; there are no parts for sound and documents (docs.ollama.com, OpenAI compatibility).
static MANNER: Manner = Manner {
    providers: &["ollama"],
    arrays: false,
    user: UserContent::Joined,
    images: ImagesTaken::Data,
    audio: false,
    files: false,
    refusal: false,
    ..OPENAI
};

rules! {
    /// Ollama leaves out what it does not know, and has no rules that are known to be its own.
}
