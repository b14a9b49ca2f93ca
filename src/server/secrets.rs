//! Keys and personal ids in the fields of a request: where they are. What is stored of a request has something else in their
//! place.

use serde_json::{Map, Value};

/// Fields of a request, of a tool, or of a server of tools, that hold keys. The names of cloud providers are LiteLLM's.
const KEYS: &[&str] = &[
    "authorization",
    "authorization_token",
    "headers",
    "extra_headers",
    "api_key",
    "access_token",
    "client_secret",
    "aws_secret_access_key",
    "aws_session_token",
    "azure_ad_token",
    "vertex_credentials",
    "domain_secrets",
];
/// Fields that name a person's device or account.
const PERSONAL: &[&str] = &["device_id", "account_uuid", "installation_id", "user_id", "x-codex-installation-id"];
/// Fields that hold an address. A key may be before its host, or in its query.
const ADDRESSES: &[&str] = &["server_url", "url"];
/// Fields that describe what a tool takes: a name in there is no field.
const SCHEMAS: &[&str] = &["input_schema", "parameters", "inputschema"];

/// Whether a field of a request holds a key, and nothing else.
pub(super) fn is_key(name: &str) -> bool {
    is_one(KEYS, name)
}

/// Whether a JSON text may hold one of these: a look that costs less than reading it.
pub(super) fn may_be_in(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let names = KEYS.iter().chain(PERSONAL).chain(ADDRESSES);
    // Names may be spelled with escapes.
    text.contains("\\u") || names.into_iter().any(|name| text.contains(name))
}

/// Replaces keys and personal ids at any depth, but in the schemas of tools. Whether there were some. The parser bounds how deep
/// values are nested.
pub(super) fn replace(value: &mut Value, with: &impl Fn(&Value) -> String) -> bool {
    match value {
        // All of them are looked at.
        Value::Array(items) => items.iter_mut().fold(false, |found, item| replace(item, with) | found),
        Value::Object(fields) => replace_fields(fields, with),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn replace_fields(fields: &mut Map<String, Value>, with: &impl Fn(&Value) -> String) -> bool {
    let mut found = false;
    for (name, value) in fields.iter_mut() {
        if is_one(SCHEMAS, name) {
            continue;
        }
        let new = match value {
            Value::Null => None,
            _ if is_one(KEYS, name) || is_one(PERSONAL, name) => Some(with(value)),
            Value::String(text) if is_one(ADDRESSES, name) => address(text, with),
            _ => None,
        };
        match new {
            Some(new) => {
                *value = new.into();
                found = true;
            }
            None => found |= replace(value, with),
        }
    }
    found
}

/// An address without its user and its query; `None` if it has neither.
fn address(text: &str, with: &impl Fn(&Value) -> String) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) if !query.is_empty() => (place, Some(query)),
        _ => (rest, None),
    };
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let (user, host) = match host.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, host),
    };
    if user.is_none() && query.is_none() {
        return None;
    }
    let user = user.map(|user| format!("{}@", with(&user.into()))).unwrap_or_default();
    let query = query.map(|query| format!("?{}", with(&query.into()))).unwrap_or_default();
    Some(format!("{scheme}://{user}{host}{path}{query}"))
}

fn is_one(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_replaced_wherever_they_are() {
        let mut value = json!([
            { "type": "mcp", "Authorization": "canary", "headers": { "a": "canary" }, "name": "n", "authorization": null },
            { "server_url": "https://ada:canary@h:1/mcp?token=canary", "url": "https://h/path" },
            { "container": { "network_policy": { "domain_secrets": [{ "name": "n", "value": "canary" }] } } },
            { "input_schema": { "properties": { "authorization": { "type": "string" } } } },
        ]);
        assert!(may_be_in(&value.to_string()));
        assert!(replace(&mut value, &|_| "gone".to_owned()));
        let wanted = json!([
            { "type": "mcp", "Authorization": "gone", "headers": "gone", "name": "n", "authorization": null },
            { "server_url": "https://gone@h:1/mcp?gone", "url": "https://h/path" },
            { "container": { "network_policy": { "domain_secrets": "gone" } } },
            { "input_schema": { "properties": { "authorization": { "type": "string" } } } },
        ]);
        assert_eq!(value, wanted);
    }

    #[test]
    fn a_value_without_keys_is_left_alone() {
        let mut value = json!({ "url": "https://h/path?", "name": "user@host", "n": [1, { "a": "https://h?x=1" }] });
        let before = value.clone();
        assert!(!replace(&mut value, &|_| "gone".to_owned()));
        assert_eq!(value, before);
    }
}
