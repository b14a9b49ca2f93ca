//! What surrounds the messages of a request: system, tools, parameters. Each field is kept where it changes, and named by every
//! answer.

use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::book::{How, hex};
use super::meaning::{Digest, Key, canonical};

/// The fields that hold the messages, on any wire.
const MESSAGES: &[&str] = &["messages", "input", "contents"];
/// A field of fewer bytes is kept with every answer: its digest would be as long.
const SMALL: usize = 64;

/// A field of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Field {
    /// It is that of an earlier answer of the conversation, by its index.
    At {
        at: u64,
        #[serde(with = "hex")]
        digest: Digest,
    },
    Is {
        is: Box<RawValue>,
    },
}

/// What an answer's message says of the request, under the name `convo`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) exchange: uuid::Uuid,
    pub(super) upstream: String,
    pub(super) wire: String,
    pub(super) path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) query: Option<String>,
    pub(super) how: How,
    /// Of the request's body.
    pub(super) request: String,
    pub(super) request_bytes: u64,
    /// What was sent in the places of others that are recorded: items of the request's list, by their positions.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub(super) rewritten: Named<Field>,
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub(super) headers: Named<String>,
    pub(super) fields: Named<Field>,
}

/// Values by their names.
pub(super) type Named<T> = std::collections::BTreeMap<String, T>;

/// Headers of the client that change what a model does.
const HEADERS: &[&str] = &["anthropic-version", "anthropic-beta", "openai-beta"];

pub(super) fn headers(headers: &HeaderMap) -> Named<String> {
    let value = |name: &&str| Some(((*name).to_owned(), headers.get(*name)?.to_str().ok()?.to_owned()));
    HEADERS.iter().filter_map(value).collect()
}

/// The fields of a request but its messages. What an earlier answer has is named, not repeated.
pub(super) fn fields(key: &Key, request: &[(String, &RawValue)], before: Option<(u64, &Named<Field>)>) -> Named<Field> {
    let around = request.iter().filter(|(name, _)| !MESSAGES.contains(&name.as_str()));
    let clean = around.filter_map(|(name, raw)| Some((name.clone(), without_secrets(key, name, raw)?)));
    named(key, clean, before)
}

/// Items of the request's list of messages, by their positions.
pub(super) fn items(
    key: &Key,
    request: &[(String, &RawValue)],
    positions: impl Iterator<Item = usize>,
    before: Option<(u64, &Named<Field>)>,
) -> Named<Field> {
    let list = request.iter().find(|(name, _)| MESSAGES.contains(&name.as_str()));
    let items: Vec<&RawValue> = list.and_then(|(_, raw)| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let items = positions.filter_map(|at| Some((at.to_string(), (*items.get(at)?).to_owned())));
    named(key, items, before)
}

fn named(
    key: &Key,
    values: impl Iterator<Item = (String, Box<RawValue>)>,
    before: Option<(u64, &Named<Field>)>,
) -> Named<Field> {
    let mut found = Named::new();
    for (name, is) in values {
        if is.get().len() <= SMALL {
            found.insert(name, Field::Is { is });
            continue;
        }
        let digest = key.digest([is.get().as_bytes()]);
        let known = before.and_then(|(at, fields)| match fields.get(&name)? {
            Field::At { at, digest: known } => (*known == digest).then_some(*at),
            Field::Is { is: known } => (key.digest([known.get().as_bytes()]) == digest).then_some(at),
        });
        let field = known.map_or_else(|| Field::Is { is }, |at| Field::At { at, digest });
        found.insert(name, field);
    }
    found
}

/// Fields of a tool, or of a server of tools, that hold keys; and those that name a person's device or account.
const SECRETS: &[&str] = &["authorization", "authorization_token", "headers", "api_key", "access_token"];
const PERSONAL: &[&str] = &["device_id", "account_uuid", "installation_id", "user_id", "x-codex-installation-id"];

/// A field with its secrets replaced, so that equal ones stay equal; as it came if there are none.
fn without_secrets(key: &Key, name: &str, raw: &RawValue) -> Option<Box<RawValue>> {
    let is_listed = |names: &[&str]| names.iter().any(|name| raw.get().contains(name));
    let is_concerned = match name {
        "tools" | "mcp_servers" => is_listed(SECRETS),
        "metadata" | "client_metadata" => is_listed(PERSONAL),
        _ => SECRETS.contains(&name),
    };
    if !is_concerned {
        return Some(raw.to_owned());
    }
    let mut value: Value = serde_json::from_str(raw.get()).ok()?;
    if SECRETS.contains(&name) {
        replace(key, &mut value);
    } else {
        clean(key, &mut value);
    }
    serde_json::value::to_raw_value(&value).ok()
}

fn replace(key: &Key, value: &mut Value) {
    let digest = key.digest([canonical(&value.to_string()).as_slice()]);
    *value = Value::String(format!("redacted:{}", hex::encode(&digest)));
}

/// The parser bounds how deep values are nested.
fn clean(key: &Key, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| clean(key, item)),
        Value::Object(fields) => clean_fields(key, fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn clean_fields(key: &Key, fields: &mut Map<String, Value>) {
    for (name, value) in fields.iter_mut() {
        let is_named = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        // What a tool takes as arguments is described, not given.
        if is_named(&["input_schema", "parameters", "inputSchema"]) {
            continue;
        }
        if is_named(SECRETS) || is_named(PERSONAL) {
            replace(key, value);
        } else {
            clean(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Json;

    fn of(request: &str, before: Option<(u64, &Named<Field>)>) -> Named<Field> {
        let fields = Json::fields(request).unwrap();
        super::fields(&Key::new(&[1; 32]), &fields, before)
    }

    #[test]
    fn what_has_not_changed_is_named() {
        let long = "x".repeat(100);
        let first = of(&format!(r#"{{"system":"{long}","model":"m","messages":[]}}"#), None);
        assert!(matches!(first.get("system"), Some(Field::Is { .. })));
        assert!(!first.contains_key("messages"));
        let second = of(&format!(r#"{{"system":"{long}","model":"n"}}"#), Some((3, &first)));
        assert!(matches!(second.get("system"), Some(Field::At { at: 3, .. })));
        // A third names the first, too.
        let third = of(&format!(r#"{{"system":"{long}"}}"#), Some((5, &second)));
        assert!(matches!(third.get("system"), Some(Field::At { at: 3, .. })));
        let other = of(&format!(r#"{{"system":"{long}y"}}"#), Some((5, &second)));
        assert!(matches!(other.get("system"), Some(Field::Is { .. })));
    }

    #[test]
    fn secrets_are_replaced() {
        let request = r#"{"tools":[{"type":"mcp","authorization":"canary","headers":{"a":"canary"},"name":"n"},
            {"name":"t","input_schema":{"properties":{"authorization":{"type":"string"}}}}],
            "mcp_servers":[{"authorization_token":"canary"}],"authorization":"canary",
            "metadata":{"device_id":"canary","kept":"as it is"}}"#;
        let text = serde_json::to_string(&of(request, None)).unwrap();
        assert!(!text.contains("canary"), "{text}");
        assert!(text.contains("as it is") && text.contains(r#""properties":{"authorization""#), "{text}");
    }
}
