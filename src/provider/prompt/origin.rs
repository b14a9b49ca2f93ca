//! Who made a message: one rule for all wires.
//!
//! Signatures, encrypted thinking and a provider's own items are good for the provider that made them, and often for one
//! model only. A message is a target's own if the provider is one of the target's and the model is of the same family as
//! the one that is wanted. If the maker is not stated, the message counts as the target's own, and the report has a line
//! for what is sent for that reason.

use crate::history::report::Fact;
use crate::history::{ReportLine, StoredMessage};
use crate::model::Metadata;

/// Whose a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The target's own: it is stated.
    Own,
    /// Nobody states who made it. It is taken for the target's own.
    Unstated,
    /// Another provider's, or another model's.
    Foreign,
}

impl Whose {
    /// Whose a message with this metadata is, for a target with these providers and this model.
    pub(crate) fn of(metadata: &Metadata, providers: &[&str], wanted: Option<&str>) -> Self {
        let made = metadata.model.as_deref();
        let stated = match metadata.provider.as_deref() {
            Some(provider) if !providers.contains(&provider) => return Self::Foreign,
            Some(_) => true,
            // The model's name names its maker.
            None => {
                let maker = made.and_then(maker).filter(|_| providers.iter().any(|provider| is_maker(provider)));
                match maker {
                    Some(maker) if !providers.contains(&maker) => return Self::Foreign,
                    maker => maker.is_some(),
                }
            }
        };
        match (made, wanted) {
            (Some(made), Some(wanted)) if !is_same_model(made, wanted) => Self::Foreign,
            _ if stated => Self::Own,
            _ => Self::Unstated,
        }
    }

    pub(crate) fn is_own(self) -> bool {
        self != Self::Foreign
    }

    /// The line for a chunk that is sent as the target's own, where nobody states whose it is.
    pub(crate) fn note(self, stored: &StoredMessage, chunk: usize) -> Option<ReportLine> {
        (self == Self::Unstated).then(|| ReportLine::chunk(Fact::OriginAssumed, stored, chunk))
    }
}

/// Is this thinking that OpenAI encrypted? Its tokens are Fernet's, whose first bytes are a version and a time.
pub(crate) fn is_openais(signature: &str) -> bool {
    signature.starts_with("gAAAA")
}

/// Words that begin the names of models, and who makes them.
const STEMS: &[(&str, &str)] = &[
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("codex", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("claude", "anthropic"),
    ("gemini", "google"),
    ("gemma", "google"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
    ("magistral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("ministral", "mistral"),
    ("mixtral", "mistral"),
    ("pixtral", "mistral"),
    ("grok", "xai"),
    ("kimi", "moonshot"),
    ("moonshot", "moonshot"),
    ("qwen", "qwen"),
    ("qwq", "qwen"),
    ("llama", "meta"),
    ("glm", "zai"),
    ("nova", "amazon"),
    ("command", "cohere"),
    ("minimax", "minimax"),
    ("phi", "microsoft"),
];

fn is_maker(provider: &str) -> bool {
    STEMS.iter().any(|(_, maker)| *maker == provider)
}

/// Who makes the model of this name, if the name shows it.
pub(crate) fn maker(model: &str) -> Option<&'static str> {
    let words = words(model);
    words.first().and_then(|first| stem(first)).map(|(_, maker)| maker)
}

/// The stem that a word begins with: `qwen3` begins with `qwen`.
fn stem(word: &str) -> Option<(&'static str, &'static str)> {
    let is_of = |stem: &str| word.strip_prefix(stem).is_some_and(|rest| !rest.starts_with(char::is_alphabetic));
    STEMS.iter().copied().find(|(stem, _)| is_of(stem))
}

/// Words for the size or the kind of a model: another word than these, after the name of a line, is the name of a release
/// (`gpt-5.6` answers as `gpt-5.6-sol`).
const KINDS: &[&str] = &[
    "mini",
    "nano",
    "micro",
    "tiny",
    "small",
    "medium",
    "large",
    "xl",
    "pro",
    "plus",
    "max",
    "ultra",
    "turbo",
    "flash",
    "lite",
    "fast",
    "high",
    "low",
    "codex",
    "coder",
    "code",
    "audio",
    "realtime",
    "search",
    "research",
    "deep",
    "image",
    "vision",
    "vl",
    "omni",
    "tts",
    "transcribe",
    "live",
    "embedding",
    "chat",
    "instruct",
    "base",
    "thinking",
    "reasoner",
    "reasoning",
    "oss",
    "opus",
    "sonnet",
    "haiku",
    "fable",
    "mythos",
    "instant",
    "air",
    "it",
    "math",
    "creative",
    "premier",
    "scout",
    "maverick",
    "distill",
    "guard",
    "build",
    "multi",
    "agent",
    "non",
];
/// Words that tell when a model came out, not which it is.
const OF_A_RELEASE: &[&str] = &["latest", "preview", "exp", "experimental", "beta", "stable", "default"];

/// Whether two names are those of one family of models, whatever the route, the date and the version of a release.
fn is_same_model(made: &str, wanted: &str) -> bool {
    let (made, wanted) = (words(made), words(wanted));
    if made == wanted || [(&made, &wanted), (&wanted, &made)].iter().any(|(name, alias)| is_alias(name, alias)) {
        return true;
    }
    let is_known = |words: &[String]| words.first().is_some_and(|first| stem(first).is_some());
    // What does not begin as a model's name is one that somebody gave a deployment: the answers name the model.
    is_known(&made) && !is_known(&wanted) && runs(&wanted, &made)
}

/// Names under which a maker serves whichever of its models is the newest (api-docs.deepseek.com, models; recorded:
/// pydantic-ai test_deepseek_deferred_capability_with_thinking).
const NEWEST: &[&[&str]] = &[&["deepseek", "chat"], &["deepseek", "reasoner"]];

/// Whether `alias` names a line of models, of which the other name is the newest or a release: without a version where the
/// other has one, or without the name of the release.
fn is_alias(name: &[String], alias: &[String]) -> bool {
    let is_version = |word: &&String| word.starts_with(|letter: char| letter.is_ascii_digit());
    let line = || name.iter().filter(|word| !is_version(word));
    let is_line = line().count() < name.len() && line().eq(alias);
    let released = name.strip_prefix(alias).is_some_and(|rest| {
        let is_name = |word: &String| word.bytes().all(|b| b.is_ascii_lowercase()) && !KINDS.contains(&word.as_str());
        matches!(rest, [word] if is_name(word)) && name.iter().any(|word| word.contains(|c: char| c.is_ascii_digit()))
    });
    let is_newest = NEWEST.iter().any(|newest| alias == *newest) && name.first() == alias.first();
    alias.len() > 1 && is_line || released || is_newest
}

/// Whether the name that somebody gave a deployment holds the model's, or none.
fn runs(given: &[String], made: &[String]) -> bool {
    let named = given.iter().position(|word| stem(word).is_some());
    named.is_none_or(|at| given.get(at..).unwrap_or_default().starts_with(made))
}

/// The words of a model's name that tell its family, in lower case: without the route before it, the date and the number of
/// its release. Claude's name its line and its version in either order, and `4-5` is `4.5`.
fn words(model: &str) -> Vec<String> {
    let model = model.to_ascii_lowercase();
    // `ft:gpt-4o:team::id` is a model that was tuned.
    let model = model.strip_prefix("ft:").map_or(model.as_str(), |rest| rest.split(':').next().unwrap_or(rest));
    let name = model.rsplit('/').next().unwrap_or(model);
    // `:free`, `:0`, `@20251001`.
    let name = name.split([':', '@']).next().unwrap_or(name);
    let short = without_region(name);
    let is_bedrocks = short.len() < name.len();
    let all: Vec<&str> = short.split(['-', '_', ' ']).filter(|word| !word.is_empty()).collect();
    let mut words: Vec<String> = Vec::new();
    for (at, word) in all.iter().copied().enumerate() {
        let beside =
            |at: Option<usize>| at.and_then(|at| all.get(at)).is_some_and(|word| is_number(word) && word.len() > 1);
        let is_date = is_number(word)
            && (word.len() > 2 || word.len() == 2 && (beside(at.checked_sub(1)) || beside(at.checked_add(1))));
        let is_tag = is_bedrocks && matches!(word, "v1" | "v2") && at + 1 == all.len();
        if at > 0 && (is_date || is_tag || OF_A_RELEASE.contains(&word)) {
            continue;
        }
        match words.last_mut() {
            Some(last) if word.len() == 1 && is_number(word) && last.len() == 1 && is_number(last) => {
                last.push('.');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    for word in &mut words {
        word.truncate(word.strip_suffix(".0").unwrap_or(word).len());
    }
    if words.first().is_some_and(|first| first == "claude") {
        words.get_mut(1..).unwrap_or_default().sort_unstable();
    }
    words
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// `us.anthropic.claude-..` without the words for where it runs and who made it.
fn without_region(mut name: &str) -> &str {
    while let Some((before, rest)) = name.split_once('.') {
        let is_word = !before.is_empty() && before.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
        let begins = |text: &str| text.split(['-', '.']).next().is_some_and(|word| stem(word).is_some());
        if !is_word || rest.is_empty() || begins(before) && !begins(rest) {
            break;
        }
        name = rest;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_family_are_known_by_their_words() {
        // Requests and the models that answered them, as recorded, and names that only look alike.
        let table = [
            ("gpt-5-2025-08-07", "gpt-5", true),
            ("gpt-4o-2024-08-06", "gpt-4o", true),
            ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20", true),
            ("gpt-5.6-sol", "gpt-5.6", true),
            ("gpt-4.5-preview-2025-02-27", "gpt-4.5-preview", true),
            ("computer-use-preview-2025-03-11", "computer-use-preview", true),
            ("claude-sonnet-4-20250514", "claude-sonnet-4-0", true),
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5", true),
            ("claude-3-opus-20240229", "claude-3-opus-latest", true),
            ("claude-haiku-4-5-20251001", "eu.anthropic.claude-haiku-4-5-20251001-v1:0", true),
            ("claude-opus-4-8", "us.anthropic.claude-opus-4-8", true),
            ("claude-haiku-4-5-20251001", "claude-haiku-4-5@20251001", true),
            ("anthropic/claude-4.5-sonnet-20250929", "anthropic/claude-sonnet-4.5", true),
            ("anthropic/claude-4.5-sonnet-20250929", "openrouter/anthropic/claude-sonnet-4.5:free", true),
            ("models/gemini-2.5-pro", "gemini-2.5-pro-preview-03-25", true),
            ("gemini-2.5-flash-preview-09-2025", "gemini-flash-latest", true),
            ("gemini-2.0-flash-001", "google/gemini-2.0-flash", true),
            ("openai/gpt-5-mini-2025-08-07", "openai/gpt-5-mini", true),
            ("mistral-large-2411", "mistral-large-latest", true),
            ("mistral-large-2402", "mistral.mistral-large-2402-v1:0", true),
            ("gpt-5-2025-08-07", "team-a-deployment", true),
            ("gpt-5-mini-2025-08-07", "prod-gpt-5-mini", true),
            ("ft:gpt-4o-2024-08-06:team::id", "gpt-4o", true),
            ("deepseek-v4-flash", "deepseek-reasoner", true),
            ("deepseek-v4-flash", "deepseek-chat", true),
            ("qwen3-coder", "deepseek-reasoner", false),
            ("gpt-5-2025-08-07", "prod-gpt-4o", false),
            ("gpt-5-mini", "gpt-5", false),
            ("gpt-5-mini-2025-08-07", "gpt-5", false),
            ("gpt-5", "gpt-5.2", false),
            ("gpt-4o", "gpt-4o-mini", false),
            ("gpt-5-20250807", "gpt", false),
            ("claude-sonnet-4-5", "claude-sonnet-4-0", false),
            ("claude-opus-4-20250514", "claude-sonnet-4-20250514", false),
            ("claude-3-5-sonnet-20241022", "claude-3-7-sonnet-latest", false),
            ("gemini-2.5-pro", "gemini-2.5-flash", false),
            ("gemini-2.5-pro", "gemini-flash-latest", false),
            ("deepseek-v3", "deepseek-v4", false),
            ("x-ai/grok-4", "google/gemini-2.0-flash-exp:free", false),
            ("opus", "another", false),
            ("model-a", "model-b", false),
        ];
        for (made, wanted, same) in table {
            assert_eq!(is_same_model(made, wanted), same, "{made} {wanted} {:?} {:?}", words(made), words(wanted));
        }
    }

    #[test]
    fn whose_a_message_is_depends_on_what_is_stated() {
        use Whose::{Foreign, Own, Unstated};
        let table = [
            (Some("anthropic"), None, None, Own),
            (Some("anthropic"), Some("claude-opus-4-1"), Some("claude-opus-4-1-20250805"), Own),
            (Some("anthropic"), Some("claude-opus-4-1"), Some("claude-sonnet-4-5"), Foreign),
            (Some("openai"), None, None, Foreign),
            (None, None, Some("claude-sonnet-4-5"), Unstated),
            (None, Some("claude-sonnet-4-5"), None, Own),
            (None, Some("gpt-5"), None, Foreign),
            (None, Some("opus"), None, Unstated),
            (None, Some("opus"), Some("another"), Foreign),
        ];
        for (provider, model, wanted, whose) in table {
            let own = |text: Option<&str>| text.map(str::to_owned);
            let metadata = Metadata { provider: own(provider), model: own(model), ..Metadata::default() };
            let found = Whose::of(&metadata, &["anthropic", "bedrock"], wanted);
            assert_eq!(found, whose, "{provider:?} {model:?} {wanted:?}");
        }
    }
}
