//! How a server speaks this wire: what its manner may differ in from Anthropic's.

use crate::provider::prompt::tool_id::NameRule;
use crate::provider::target::Target;

/// Name of the wire, and of the provider that it is of.
pub(crate) const NAME: &str = "anthropic";

/// How a server speaks this wire.
#[derive(Debug)]
pub(crate) struct Manner {
    /// The provider whose answers are the server's.
    pub(crate) provider: &'static str,
    /// The providers whose thinking is the server's own. Claude's signatures hold on all of its platforms
    /// (platform.claude.com extended-thinking).
    pub(crate) providers: &'static [&'static str],
    /// What tools may be called.
    pub(crate) names: NameRule,
    /// Whether images and documents may be at an address.
    pub(crate) addresses: bool,
    /// Whether the tools of the history have to be declared.
    pub(crate) declares: bool,
}

/// The providers by which Claude is served.
pub(crate) const PROVIDERS: &[&str] = &["anthropic", "bedrock"];
/// As Anthropic speaks it. The name: AN-17.
const ANTHROPIC: Manner =
    Manner { provider: NAME, providers: PROVIDERS, names: NameRule::words(128), addresses: true, declares: false };

impl Manner {
    pub(crate) fn of(target: Target) -> &'static Self {
        target.manner().unwrap_or(&ANTHROPIC)
    }
}

/// Whose answers a target's are.
pub(crate) fn provider(target: Target) -> &'static str {
    Manner::of(target).provider
}
