//! Servers of models whose addresses everybody knows.

/// A server of models whose address everybody knows.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct KnownUpstream {
    /// Its name: an [`Upstream`](super::config::Upstream) of this name needs no URL.
    pub name: &'static str,
    /// Where it is, without what clients put after it: `/v1` belongs to their base URL.
    pub url: &'static str,
    /// The dialect that it speaks, where that is not its wire's own.
    pub wire: Option<&'static str>,
    /// The variable of the environment in which its clients take their base URL.
    pub variable: &'static str,
    /// What follows `/proxy/NAME` in that base URL.
    pub path: &'static str,
}

const fn openai(name: &'static str, url: &'static str, wire: Option<&'static str>) -> KnownUpstream {
    KnownUpstream { name, url, wire, variable: "OPENAI_BASE_URL", path: "/v1" }
}

/// A client that knows nothing of the server but its own wire.
const fn other(name: &'static str, url: &'static str, variable: &'static str) -> KnownUpstream {
    KnownUpstream { name, url, wire: None, variable, path: "" }
}

/// The servers of models whose addresses everybody knows. Local ones come last: they are where they listen by default.
pub const KNOWN_UPSTREAMS: &[KnownUpstream] = &[
    other("anthropic", "https://api.anthropic.com", "ANTHROPIC_BASE_URL"),
    openai("openai", "https://api.openai.com", None),
    other("gemini", "https://generativelanguage.googleapis.com", "GOOGLE_GEMINI_BASE_URL"),
    openai("cerebras", "https://api.cerebras.ai", Some("openai-chat/cerebras")),
    openai("deepseek", "https://api.deepseek.com", Some("openai-chat/deepseek")),
    openai("fireworks", "https://api.fireworks.ai/inference", Some("openai-chat/compatible")),
    openai("groq", "https://api.groq.com/openai", Some("openai-chat/groq")),
    openai("mistral", "https://api.mistral.ai", Some("openai-chat/mistral")),
    openai("moonshot", "https://api.moonshot.ai", Some("openai-chat/moonshot")),
    openai("openrouter", "https://openrouter.ai/api", Some("openai-chat/openrouter")),
    KnownUpstream { path: "", ..openai("perplexity", "https://api.perplexity.ai", Some("openai-chat/perplexity")) },
    openai("together", "https://api.together.xyz", Some("openai-chat/compatible")),
    openai("xai", "https://api.x.ai", Some("openai-chat/xai")),
    openai("litellm", "http://127.0.0.1:4000", Some("openai-chat/compatible")),
    openai("llamacpp", "http://127.0.0.1:8080", Some("openai-chat/compatible")),
    openai("lmstudio", "http://127.0.0.1:1234", Some("openai-chat/compatible")),
    openai("ollama", "http://127.0.0.1:11434", Some("openai-chat/ollama")),
    openai("vllm", "http://127.0.0.1:8000", Some("openai-chat/vllm")),
];

/// The well-known server of a name.
pub(crate) fn known(name: &str) -> Option<&'static KnownUpstream> {
    KNOWN_UPSTREAMS.iter().find(|known| known.name == name)
}
