//! How servers speak this wire.

use crate::provider::target::Target;

/// The wire's name, also where a chunk holds what the provider wrote.
pub(crate) const NAME: &str = "openai-responses";
/// The provider whose items these are, as they are kept, whichever server made them.
pub(crate) const PROVIDER: &str = "openai";

/// What a server does otherwise than OpenAI's.
#[derive(Debug)]
pub(crate) struct Manner {
    /// Whose messages are the server's own; the first is what its answers are stored as.
    pub(crate) providers: &'static [&'static str],
    /// Whether its items are as OpenAI makes them: reasoning encrypted, ids of certain kinds.
    pub(crate) openais_items: bool,
    /// Whether the calls of a message come after everything else in it.
    pub(crate) calls_last: bool,
}

/// OpenAI itself.
pub(crate) const OPENAI: Manner = Manner { providers: &[PROVIDER], openais_items: true, calls_last: false };

impl Manner {
    pub(crate) fn of(target: Target) -> &'static Self {
        static PLAIN: Manner = OPENAI;
        target.manner().unwrap_or(&PLAIN)
    }
}

/// The provider whose answers these are.
pub(crate) fn provider(target: Target) -> &'static str {
    Manner::of(target).providers.first().copied().unwrap_or(PROVIDER)
}
