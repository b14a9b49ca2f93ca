//! Keys and personal ids in the fields of a request: where they are. What is stored of a request has something else in their
//! place.

use serde_json::{Map, Value};

/// Fields that hold keys, whatever they hold besides. Names are compared without `-` and `_`, in small letters.
const KEYS: &[&str] =
    &["authorization", "headers", "extraheaders", "credentials", "vertexcredentials", "domainsecrets"];
/// How the names of fields end that hold a key as a text: of the clouds, of LiteLLM, of servers of tools.
const KEY_ENDS: &[&str] = &[
    "apikey",
    "apikeystring",
    "secretkey",
    "privatekey",
    "accesskey",
    "subscriptionkey",
    "token",
    "secret",
    "password",
    "passwd",
    "credential",
    "connectionstring",
];
/// Names of fields of a tokenizer, which are no keys.
const NO_KEYS: &[&str] =
    &["bostoken", "eostoken", "padtoken", "unktoken", "septoken", "masktoken", "stoptoken", "nexttoken", "pagetoken"];
/// Fields whose field `key` is one.
const HOLDERS: &[&str] = &["authentication", "auth", "authconfig", "apikeyconfig", "extraquery"];
/// Fields that name a person's device or account.
const PERSONAL: &[&str] = &["deviceid", "accountuuid", "installationid", "userid", "xcodexinstallationid"];
/// Fields that hold an address. A key may be before its host, or in its query.
const ADDRESSES: &[&str] = &["serverurl", "url", "apibase", "baseurl", "endpoint"];
/// Parts of these names: a text without any holds none of them.
const PARTS: &[&str] = &["key", "token", "secret", "passw", "credential", "auth", "headers", "url", "base", "endpoint"];
const PERSONAL_PARTS: &[&str] = &["device", "account", "installation", "user", "connection"];
/// Fields of a JSON Schema: a name in there is that of a value which a model gives.
const SCHEMAS: &[&str] = &["properties", "patternproperties", "$defs", "definitions"];

/// Whether a JSON text may hold one of these: a look that costs less than reading it.
pub(super) fn may_be_in(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    // Names may be spelled with escapes.
    text.contains("\\u") || PARTS.iter().chain(PERSONAL_PARTS).any(|part| text.contains(part))
}

/// A name without what programs spell in different ways.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether a text of this name is a key. `within`: the name of what has it.
fn is_key_text(name: &str, within: &str) -> bool {
    let is_key = KEY_ENDS.iter().any(|end| name.ends_with(end)) && !is_one(NO_KEYS, name);
    is_key || name == "key" && is_one(HOLDERS, within)
}

/// Replaces keys and personal ids at any depth, but among the names of JSON Schemas. Whether there were some. The parser bounds
/// how deep values are nested.
pub(super) fn replace(value: &mut Value, with: &impl Fn(&Value) -> String) -> bool {
    replace_in(value, "", with)
}

/// As [`replace`], of a field of a request.
pub(super) fn replace_field(name: &str, value: Value, with: &impl Fn(&Value) -> String) -> Option<Value> {
    let mut field = Map::from_iter([(name.to_owned(), value)]);
    replace_fields(&mut field, "", with).then(|| field.remove(name)).flatten()
}

/// `within`: the name of the field that has the value.
fn replace_in(value: &mut Value, within: &str, with: &impl Fn(&Value) -> String) -> bool {
    match value {
        // All of them are looked at.
        Value::Array(items) => items.iter_mut().fold(false, |found, item| replace_in(item, within, with) | found),
        Value::Object(fields) if !is_one(SCHEMAS, within) => replace_fields(fields, within, with),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn replace_fields(fields: &mut Map<String, Value>, within: &str, with: &impl Fn(&Value) -> String) -> bool {
    let mut found = false;
    for (name, value) in fields.iter_mut() {
        let name = plain(name);
        let new = match value {
            Value::Null => None,
            _ if is_one(KEYS, &name) || is_one(PERSONAL, &name) => Some(with(value)),
            Value::String(text) if !text.is_empty() && is_key_text(&name, within) => Some(with(value)),
            Value::String(text) if is_one(ADDRESSES, &name) => address(text, with),
            _ => None,
        };
        match new {
            Some(new) => {
                *value = new.into();
                found = true;
            }
            None => found |= replace_in(value, &name, with),
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
    names.contains(&name)
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
