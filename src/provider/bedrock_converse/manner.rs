//! The names of this wire.

/// The wire's name, also where a chunk holds what the provider wrote.
pub(crate) const NAME: &str = "bedrock-converse";
/// Whose answers these are.
pub(crate) const PROVIDER: &str = "bedrock";
/// The names under which the provider's own messages and blocks may be stored.
pub(crate) const PROVIDERS: &[&str] = &[PROVIDER, "amazon-bedrock", "aws-bedrock", "aws", NAME];
