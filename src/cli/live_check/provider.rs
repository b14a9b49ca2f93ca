//! Where a target's requests go, and with which key.

use std::sync::Arc;
use std::time::Duration;

use conversation_store::provider::Target;
use rustls::crypto::ring;
use serde_json::{Map, Value};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use super::super::failure::Failure;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// The most bytes of an answer that are read.
const ANSWER: u64 = 1024 * 1024;
/// Characters of an error that are printed.
const ERROR: usize = 400;

/// A target whose address is known: its URL, in which MODEL is the model, and the variable that holds the key.
/// `src/docs/targets.md` has the pages.
const KNOWN: &[(&str, &str, &str)] = &[
    ("openai-chat", "https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY"),
    ("openai-responses", "https://api.openai.com/v1/responses", "OPENAI_API_KEY"),
    ("anthropic", "https://api.anthropic.com/v1/messages", "ANTHROPIC_API_KEY"),
    ("gemini", "https://generativelanguage.googleapis.com/v1beta/models/MODEL:generateContent", "GEMINI_API_KEY"),
    (
        "gemini/gemini3",
        "https://generativelanguage.googleapis.com/v1beta/models/MODEL:generateContent",
        "GEMINI_API_KEY",
    ),
    ("openai-chat/deepseek", "https://api.deepseek.com/chat/completions", "DEEPSEEK_API_KEY"),
    ("openai-chat/mistral", "https://api.mistral.ai/v1/chat/completions", "MISTRAL_API_KEY"),
    ("openai-chat/groq", "https://api.groq.com/openai/v1/chat/completions", "GROQ_API_KEY"),
    ("openai-chat/moonshot", "https://api.moonshot.ai/v1/chat/completions", "MOONSHOT_API_KEY"),
    ("openai-chat/openrouter", "https://openrouter.ai/api/v1/chat/completions", "OPENROUTER_API_KEY"),
    ("openai-chat/xai", "https://api.x.ai/v1/chat/completions", "XAI_API_KEY"),
    ("openai-chat/cerebras", "https://api.cerebras.ai/v1/chat/completions", "CEREBRAS_API_KEY"),
];

/// The key of a target whose address is not known.
const OTHER_KEY: &str = "CONVO_PROVIDER_KEY";

/// A provider that is asked.
pub(super) struct Provider {
    agent: Agent,
    url: String,
    key: Option<String>,
    target: Target,
    model: String,
}

/// What it answered.
pub(super) struct Answered {
    pub(super) status: u16,
    /// Its error, without the key.
    pub(super) error: Option<String>,
}

impl Provider {
    /// The provider of a target. A key that is not there is none: servers on the own machine often need none.
    pub(super) fn new(
        target: Target,
        model: &str,
        url: Option<&str>,
        key_variable: Option<&str>,
    ) -> Result<Self, Failure> {
        let known = KNOWN.iter().find(|(name, ..)| *name == target.to_string());
        let Some(url) = url.or(known.map(|(_, url, _)| *url)) else {
            return Err(Failure::usage(format!("the address of {target} is not known: --url names it")));
        };
        let variable = key_variable.or(known.map(|(.., variable)| *variable)).unwrap_or(OTHER_KEY);
        let key = std::env::var(variable).ok().filter(|key| !key.is_empty());
        if key.is_none() && (known.is_some_and(|(_, known, _)| *known == url) || key_variable.is_some()) {
            return Err(Failure::usage(format!("{variable} has no key: set it to your own key")));
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(PATIENCE))
            .user_agent(concat!("convo/", env!("CARGO_PKG_VERSION")));
        if url.starts_with("http://") {
            // Such a server is near.
            config = config.proxy(None);
        } else {
            let roots = rustls_native_certs::load_native_certs().certs;
            let roots: Vec<_> = roots.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
            let tls = TlsConfig::builder()
                .provider(TlsProvider::Rustls)
                .root_certs(RootCerts::new_with_certs(&roots))
                .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
            config = config.tls_config(tls.build());
        }
        let url = url.replace("MODEL", model);
        Ok(Self { agent: config.build().new_agent(), url, key, target, model: model.to_owned() })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Sends a conversation's part of a request, with the model and what the wire requires besides.
    pub(super) fn send(&self, part: &str) -> Result<Answered, Failure> {
        let wire = self.target.wire().name;
        let mut request: Map<String, Value> =
            serde_json::from_str(part).map_err(|error| Failure::failed(format!("the prompt is no object: {error}")))?;
        if !matches!(wire, "gemini" | "bedrock-converse") {
            request.insert("model".to_owned(), self.model.as_str().into());
        }
        if wire == "anthropic" {
            request.insert("max_tokens".to_owned(), 16.into());
        }
        let body = Value::Object(request).to_string();
        let mut call = self.agent.post(&self.url).header("content-type", "application/json");
        if wire == "anthropic" {
            call = call.header("anthropic-version", "2023-06-01");
        }
        if let Some(key) = &self.key {
            call = match wire {
                "anthropic" => call.header("x-api-key", key),
                "gemini" => call.header("x-goog-api-key", key),
                _ => call.header("authorization", format!("Bearer {key}")),
            };
        }
        let cannot = |error: ureq::Error| Failure::failed(self.without_key(&format!("{}: {error}", self.url)));
        let mut answer = call.send(body.as_str()).map_err(cannot)?;
        let status = answer.status().as_u16();
        let text = answer.body_mut().with_config().limit(ANSWER).lossy_utf8(true).read_to_string().unwrap_or_default();
        let error = (!(200..300).contains(&status)).then(|| self.without_key(&said(&text)));
        Ok(Answered { status, error })
    }

    fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) => text.replace(key.as_str(), "***"),
            None => text.to_owned(),
        }
    }
}

/// The words of an error, wherever the wire has them.
fn said(body: &str) -> String {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let places = ["/error/message", "/0/error/message", "/message", "/detail", "/error"];
    let words = places.iter().find_map(|place| json.pointer(place).and_then(Value::as_str)).unwrap_or(body);
    words.chars().take(ERROR).collect()
}
