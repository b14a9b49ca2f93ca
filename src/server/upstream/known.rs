//! Servers of models whose addresses everybody knows.

/// A well-known server.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) name: &'static str,
    /// Where it is, without what clients put after it: `/v1` belongs to their base URL.
    pub(crate) url: &'static str,
    /// The dialect that it speaks, where that is not its wire's own.
    pub(crate) target: Option<&'static str>,
    /// How a client is pointed at it: a variable of its environment, and what comes after the URL of the proxy.
    #[expect(dead_code, reason = "the command that prints it is not written yet")]
    pub(crate) client: (&'static str, &'static str),
}

const fn openai(name: &'static str, url: &'static str, target: Option<&'static str>) -> Known {
    Known { name, url, target, client: ("OPENAI_BASE_URL", "/v1") }
}

/// Local servers come last. Their addresses are those on which they listen by default.
pub(crate) const KNOWN: &[Known] = &[
    Known { name: "anthropic", url: "https://api.anthropic.com", target: None, client: ("ANTHROPIC_BASE_URL", "") },
    openai("openai", "https://api.openai.com", None),
    Known {
        name: "gemini",
        url: "https://generativelanguage.googleapis.com",
        target: None,
        client: ("GOOGLE_GEMINI_BASE_URL", ""),
    },
    openai("cerebras", "https://api.cerebras.ai", Some("openai-chat/cerebras")),
    openai("deepseek", "https://api.deepseek.com", Some("openai-chat/deepseek")),
    openai("fireworks", "https://api.fireworks.ai/inference", Some("openai-chat/compatible")),
    openai("groq", "https://api.groq.com/openai", Some("openai-chat/groq")),
    openai("mistral", "https://api.mistral.ai", Some("openai-chat/mistral")),
    openai("moonshot", "https://api.moonshot.ai", Some("openai-chat/moonshot")),
    openai("openrouter", "https://openrouter.ai/api", Some("openai-chat/openrouter")),
    Known {
        name: "perplexity",
        url: "https://api.perplexity.ai",
        target: Some("openai-chat/perplexity"),
        client: ("OPENAI_BASE_URL", ""),
    },
    openai("together", "https://api.together.xyz", Some("openai-chat/compatible")),
    openai("xai", "https://api.x.ai", Some("openai-chat/xai")),
    openai("litellm", "http://127.0.0.1:4000", Some("openai-chat/compatible")),
    openai("llamacpp", "http://127.0.0.1:8080", Some("openai-chat/compatible")),
    openai("lmstudio", "http://127.0.0.1:1234", Some("openai-chat/compatible")),
    openai("ollama", "http://127.0.0.1:11434", Some("openai-chat/ollama")),
    openai("vllm", "http://127.0.0.1:8000", Some("openai-chat/vllm")),
];

/// The well-known server of a name.
pub(crate) fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}
