//! How a server speaks this wire: what its manner may differ in from AI Studio's.

use crate::provider::target::Target;

/// The wire's name, also where a chunk holds what the provider wrote.
pub(crate) const NAME: &str = "gemini";
/// In place of the signature of a call that the service did not make, or whose signature was not kept. Source:
/// ai.google.dev thought-signatures.
pub(crate) const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// How a server speaks this wire.
#[derive(Debug)]
pub(crate) struct Manner {
    /// The providers whose signatures are the server's own.
    pub(crate) providers: &'static [&'static str],
    /// Whether calls have signatures, or stand-ins, whatever the model's name is.
    pub(crate) signs: bool,
}

/// As Google's AI Studio speaks it.
pub(crate) const AI_STUDIO: Manner = Manner { providers: &["gemini", "google"], signs: false };

impl Manner {
    pub(crate) fn of(target: Target) -> &'static Self {
        target.manner().unwrap_or(&AI_STUDIO)
    }
}

/// Whose answers a target's are.
pub(crate) fn provider(target: Target) -> &'static str {
    Manner::of(target).providers.first().copied().unwrap_or(NAME)
}
