//! Who calls: what a client says of its session, of the agent in it, and of what it asks for.

use axum::http::HeaderMap;
use serde_json::Value;

use super::meaning::{Digest, Key};

/// Headers that name a session, the first that is there counts.
const SESSION_HEADERS: &[&str] = &[
    "x-convo-conversation",
    // Claude Code, Codex.
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "conversation_id",
    // opencode, and others.
    "x-session-id",
    "x-opencode-session",
    "x-session-affinity",
    "x-litellm-session-id",
    "helicone-session-id",
    "x-openwebui-chat-id",
];
/// Headers that name an agent within a session.
const BRANCH_HEADERS: &[&str] = &["x-claude-code-agent-id", "thread-id"];
/// Headers that name the agent that started it.
const PARENT_HEADERS: &[&str] = &["x-claude-code-parent-agent-id", "x-codex-parent-thread-id"];
/// Fields that name the person at the other end.
const USER_FIELDS: &[&str] = &["/user", "/safety_identifier", "/metadata/user_id"];

/// What a call of a model is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Main,
    Agent,
    /// A title, a summary, a classification: something beside the conversation.
    Side,
    Compaction,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Agent => "agent",
            Self::Side => "side",
            Self::Compaction => "compaction",
        }
    }
}

/// Where a request belongs, as far as the client says it.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) digest: Digest,
    /// The session, if the client names one.
    pub(super) session: Option<String>,
    /// The agent in it.
    pub(super) branch: Option<String>,
    /// The scope of the agent that started this one, if the client names it.
    pub(super) parent: Option<Digest>,
    pub(super) kind: Kind,
    /// Whether the model may call tools.
    pub(super) has_tools: bool,
    /// Whether the client wants a token of the answer, to see that it gets one.
    pub(super) is_probe: bool,
    /// The person at the other end: no two are ever in one conversation.
    pub(super) user: Option<Digest>,
    /// Of the texts and tools around the messages: they tell conversations apart that say the same, where no session does.
    pub(super) surroundings: Digest,
    /// Of the client's key at the upstream.
    pub(super) account: Digest,
    /// Of the model that is asked.
    pub(super) model: Digest,
    /// The name of the conversation that the client wants.
    pub(super) wanted: Option<String>,
    /// What came before, if the request does not hold it.
    pub(super) kept_elsewhere: Option<Elsewhere>,
}

/// What a provider keeps of a conversation, so that a request has what follows alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// All up to the answer of this id.
    Response(String),
    /// A conversation of the provider's: its name is the session.
    Conversation,
}

/// What is known of a call beside its headers and its request.
pub(super) struct Around<'a> {
    pub(super) upstream: &'a str,
    pub(super) wire: &'a str,
    pub(super) model: &'a str,
    /// Of the client's key at the upstream.
    pub(super) account: Digest,
}

impl Scope {
    /// Whether the client says what the request belongs to.
    pub(super) const fn is_named(&self) -> bool {
        self.session.is_some() || self.kept_elsewhere.is_some()
    }

    pub(super) fn of(key: &Key, around: &Around<'_>, headers: &HeaderMap, request: &Value) -> Self {
        let turn = headers.get("x-codex-turn-metadata").and_then(|value| value.to_str().ok());
        let turn: Value = turn.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
        let wanted = named(headers, &["x-convo-conversation"]);
        let user_id = request.pointer("/metadata/user_id").and_then(Value::as_str);
        let user_parts: Option<Value> = user_id.and_then(|text| serde_json::from_str(text).ok());
        let in_user = user_parts.as_ref().and_then(|parts| parts.get("session_id")?.as_str());
        // As Claude Code wrote it before: `user_HASH_account_UUID_session_UUID`.
        let in_text = user_id.and_then(|text| text.rsplit_once("_session_")).map(|(_, id)| id).filter(|id| is_id(id));
        let in_user = in_user.or(in_text);
        let session = named(headers, SESSION_HEADERS).or_else(|| in_user.map(str::to_owned));
        let cache_key = request.get("prompt_cache_key").and_then(Value::as_str).map(str::to_owned);
        let session = session.or_else(|| cache_key.filter(|key| is_id(key)));
        let kept = request.get("conversation").and_then(|kept| kept.as_str().or_else(|| kept.get("id")?.as_str()));
        let previous = request.get("previous_response_id").and_then(Value::as_str);
        let kept_elsewhere = match (previous, kept) {
            (Some(id), _) => Some(Elsewhere::Response(id.to_owned())),
            (None, Some(_)) => Some(Elsewhere::Conversation),
            (None, None) => None,
        };
        let session = kept.map(|kept| format!("provider {kept}")).or(session);
        let said = named(headers, BRANCH_HEADERS);
        // The first agent of a session has the session's own name.
        let branch = said.filter(|branch| session.as_ref() != Some(branch));
        let user = (user_parts.is_none() && in_text.is_none()).then(|| user(key, request)).flatten();
        let kind = kind(headers, &turn, request, branch.is_some());
        // What the provider keeps is one history, whatever it is asked for.
        let kind = if kept_elsewhere.is_some() && kind == Kind::Side { Kind::Main } else { kind };
        let digest = |branch: Option<&str>, kind: Kind| {
            let parts: &[&[u8]] = match &session {
                Some(session) => &[b"session", session.as_bytes(), branch.unwrap_or_default().as_bytes()],
                None => &[b"none", around.upstream.as_bytes(), around.wire.as_bytes()],
            };
            // What is beside a conversation is never a part of it.
            let side: &[u8] = match kind {
                Kind::Main | Kind::Agent => b"",
                Kind::Side | Kind::Compaction => kind.as_str().as_bytes(),
            };
            key.digest(parts.iter().copied().chain([side, user.as_ref().map_or(&[][..], |user| user.as_slice())]))
        };
        let parent = named(headers, PARENT_HEADERS).filter(|parent| session.as_ref() != Some(parent));
        let has_parent = session.is_some() && branch.is_some();
        Self {
            digest: digest(branch.as_deref(), kind),
            parent: has_parent.then(|| digest(parent.as_deref(), Kind::Main)),
            surroundings: surroundings(key, request),
            account: around.account,
            model: key.digest([around.model.as_bytes()]),
            session,
            branch,
            kind,
            has_tools: has_tools(request),
            is_probe: most_tokens(request) == Some(1),
            user,
            wanted,
            kept_elsewhere,
        }
    }
}

/// The most bytes of a name that counts.
const NAME_BYTES: usize = 512;

fn named(headers: &HeaderMap, names: &[&str]) -> Option<String> {
    let values = names.iter().filter_map(|name| headers.get(*name)?.to_str().ok());
    values.map(str::trim).find(|value| !value.is_empty() && value.len() <= NAME_BYTES).map(str::to_owned)
}

/// Whether a cache key names one conversation: people also give one for all calls of a program.
fn is_id(key: &str) -> bool {
    uuid::Uuid::try_parse(key).is_ok()
}

fn user(key: &Key, request: &Value) -> Option<Digest> {
    let mut users = USER_FIELDS.iter().filter_map(|field| request.pointer(field)?.as_str()).peekable();
    users.peek()?;
    Some(key.digest(users.map(str::as_bytes)))
}

fn kind(headers: &HeaderMap, turn: &Value, request: &Value, is_branch: bool) -> Kind {
    let asks = turn.get("request_kind").and_then(Value::as_str);
    let last = request.get("input").and_then(Value::as_array).and_then(|items| items.last());
    let is_trigger = last.is_some_and(|item| item.get("type").is_some_and(|kind| kind == "compaction_trigger"));
    if asks == Some("compaction") || is_trigger {
        return Kind::Compaction;
    }
    let schemas = [
        "/output_config/format",
        "/output_format",
        "/response_format/json_schema",
        "/text/format/schema",
        "/generationConfig/responseSchema",
        "/generationConfig/responseJsonSchema",
    ];
    if !has_tools(request) && schemas.iter().any(|field| request.pointer(field).is_some_and(|value| !value.is_null())) {
        return Kind::Side;
    }
    if is_branch || headers.contains_key("x-openai-subagent") { Kind::Agent } else { Kind::Main }
}

fn has_tools(request: &Value) -> bool {
    request.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty())
}

fn most_tokens(request: &Value) -> Option<u64> {
    let fields = ["/max_tokens", "/max_completion_tokens", "/max_output_tokens", "/generationConfig/maxOutputTokens"];
    fields.iter().find_map(|field| request.pointer(field)?.as_u64())
}

/// Of the texts of the system and the names of the tools. Where a cache may end is no part of it.
fn surroundings(key: &Key, request: &Value) -> Digest {
    let mut words = Vec::new();
    for field in ["system", "instructions", "systemInstruction", "system_instruction"] {
        texts(request.get(field).unwrap_or(&Value::Null), &mut words);
    }
    // Chats have the system's words in the list of the messages.
    for field in ["messages", "input"] {
        let items = request.get(field).and_then(Value::as_array).into_iter().flatten();
        let is_system = |item: &&Value| item.get("role").is_some_and(|role| role == "system" || role == "developer");
        let contents = items.take_while(is_system).filter_map(|item| item.get("content"));
        contents.for_each(|content| texts(content, &mut words));
    }
    words.push("");
    tools(request.get("tools").unwrap_or(&Value::Null), &mut words);
    key.digest(words.into_iter().map(str::as_bytes))
}

fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => {
            for name in ["text", "parts"] {
                texts(fields.get(name).unwrap_or(&Value::Null), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn tools<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| tools(item, found)),
        Value::Object(fields) => {
            found.extend(fields.get("name").and_then(Value::as_str));
            for name in ["function", "functionDeclarations", "function_declarations", "toolSpec"] {
                tools(fields.get(name).unwrap_or(&Value::Null), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};
    use serde_json::json;

    use super::*;

    fn of(headers: &[(&'static str, &str)], request: &Value) -> Scope {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let around = Around { upstream: "up", wire: "anthropic", model: "m", account: [0; 16] };
        Scope::of(&Key::new(&[7; 32]), &around, &headers.iter().map(header).collect(), request)
    }

    #[test]
    fn clients_name_sessions_and_agents_each_in_its_own_way() {
        let nothing = json!({});
        let main = of(&[("x-claude-code-session-id", "s1")], &nothing);
        let agent = of(&[("x-claude-code-session-id", "s1"), ("x-claude-code-agent-id", "a1")], &nothing);
        let other = of(&[("x-claude-code-session-id", "s1"), ("x-claude-code-agent-id", "a2")], &nothing);
        assert_ne!(main.digest, agent.digest);
        assert_ne!(agent.digest, other.digest);
        assert_eq!((agent.parent, main.parent, agent.kind), (Some(main.digest), None, Kind::Agent));
        // Codex: its first thread has the session's name, and sub-agents share the session.
        let main = of(&[("session-id", "s"), ("thread-id", "s")], &nothing);
        let agent = of(
            &[("session-id", "s"), ("thread-id", "t"), ("x-codex-parent-thread-id", "s"), ("x-openai-subagent", "c")],
            &nothing,
        );
        assert_eq!((agent.parent, agent.kind, main.kind), (Some(main.digest), Kind::Agent, Kind::Main));
        let compacts =
            of(&[("session-id", "s"), ("x-codex-turn-metadata", r#"{"request_kind":"compaction"}"#)], &nothing);
        assert_eq!(compacts.kind, Kind::Compaction);
        assert_ne!(compacts.digest, main.digest);
        // A title, beside the conversation.
        let format = json!({"tools": [], "output_config": {"format": {"type": "json_schema"}}});
        let title = of(&[("x-claude-code-session-id", "s1")], &format);
        assert_eq!(title.kind, Kind::Side);
        assert_ne!(title.digest, of(&[("x-claude-code-session-id", "s1")], &nothing).digest);
        // What a body says.
        let user_id = json!({"metadata": {"user_id": r#"{"device_id":"d","session_id":"s9"}"#}});
        assert_eq!(of(&[], &user_id).session.as_deref(), Some("s9"));
        let id = "11111111-2222-3333-4444-555555555555";
        let before = of(&[], &json!({"metadata": {"user_id": format!("user_ab12_account__session_{id}")}}));
        assert_eq!((before.session.as_deref(), before.user), (Some(id), None));
        let other = of(&[], &json!({"metadata": {"user_id": "user_of_session_7"}}));
        assert_eq!((other.session, other.user.is_some()), (None, true));
        assert_eq!(of(&[], &json!({"prompt_cache_key": "all-of-us"})).session, None);
        assert_eq!(of(&[("x-convo-conversation", "c"), ("session-id", "s")], &nothing).session.as_deref(), Some("c"));
    }

    #[test]
    fn users_are_never_joined() {
        let [ada, bob] = ["ada", "bob"].map(|user| of(&[], &json!({"user": user})));
        assert_ne!(ada.digest, bob.digest);
        assert_eq!(ada.digest, of(&[], &json!({"user": "ada"})).digest);
        assert_ne!(ada.digest, of(&[], &json!({})).digest);
    }

    #[test]
    fn surroundings_are_texts_and_names() {
        let with = |request: Value| of(&[], &request).surroundings;
        let plain = json!({"system": "be brief", "tools": [{"name": "a", "input_schema": {}}]});
        let cached = json!({"system": [{"type": "text", "text": "be brief", "cache_control": {}}],
            "tools": [{"name": "a", "cache_control": {}}]});
        assert_eq!(with(plain.clone()), with(cached));
        assert_ne!(with(plain), with(json!({"system": "be long", "tools": [{"name": "a"}]})));
        let chat =
            |role: &str, text: &str| with(json!({"messages": [{"role": role, "content": text}, {"role": "user"}]}));
        assert_eq!(chat("system", "be brief"), chat("developer", "be brief"));
        assert_ne!(chat("system", "be brief"), chat("system", "be long"));
        assert_eq!(chat("user", "be brief"), chat("user", "be long"));
    }
}
