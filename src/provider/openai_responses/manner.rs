//! Whose wire this is: no dialect speaks it otherwise yet.

/// The wire's name, also where a chunk holds what the provider wrote.
pub(crate) const NAME: &str = "openai-responses";
/// The provider whose reasoning and items these are.
pub(crate) const PROVIDER: &str = "openai";
