//! What surrounds the messages of a request: system, tools, parameters. Each field is kept where it changes, and named by every
//! answer.

use std::collections::BTreeSet;
use std::ops::Range;

use axum::http::HeaderMap;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::book::{How, hex};
use super::meaning::{Key, canonical};
use crate::history::StoredMessage;
use crate::json;
use crate::model::Json;
use crate::server::secrets;

/// The field of a message's metadata that says what the proxy knows of it.
pub(super) const FIELD: &str = "convo";
/// The field of an answer's metadata that says how the call ended.
pub(super) const END_FIELD: &str = "convo_end";
/// The fields that hold the messages, on any wire.
const MESSAGES: &[&str] = &["messages", "input", "contents"];
/// A field of fewer bytes is kept with every answer: its digest would be as long.
const SMALL: usize = 64;

/// A field of a request: what it is, or where it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Field {
    /// It is that of an earlier answer of the conversation, by its index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "even_null")]
    is: Option<Box<RawValue>>,
}

/// A value, which may be `null`.
fn even_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

/// A value as it is once it was stored: in one line.
fn in_line(raw: Box<RawValue>) -> Box<RawValue> {
    if !json::has_line_break(raw.get()) {
        return raw;
    }
    RawValue::from_string(json::compact(raw.get()).into_owned()).unwrap_or(raw)
}

impl Field {
    const fn of(is: Box<RawValue>) -> Self {
        Self { at: None, digest: None, is: Some(is) }
    }

    /// The field, if it is here.
    pub(super) fn is(&self) -> Option<&str> {
        self.is.as_deref().map(RawValue::get)
    }
}

/// What an answer's message says of the request, under the name `convo`.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// What was sent in the places of others that are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rewritten: Option<Rewritten>,
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub(super) headers: Named<String>,
    pub(super) fields: Named<Field>,
    /// The request, byte for byte. Absent if it could not be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sent: Option<Sent>,
}

impl About {
    /// What an answer's message says of its request.
    pub(super) fn of(stored: &StoredMessage) -> Option<Self> {
        let about = stored.message.metadata.extra.get(FIELD)?;
        serde_json::from_str(about.as_str()).ok()
    }
}

/// What an answer's message says of its request's bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Sent {
    /// The answer before, by its index: with its request this one is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<u64>,
    /// The messages that it is compared with: from `since` on, else from here on, up to `until`, but these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) from: u64,
    pub(super) until: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) without: Vec<u64>,
    /// The fields in which keys and personal ids are replaced, and the digest of the request with these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replaced: Option<Replaced>,
    pub(super) bytes: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Replaced {
    pub(super) fields: Vec<String>,
    pub(super) digest: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with this type")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Sent {
    /// The fields in which keys are replaced.
    pub(super) fn replaced_fields(&self) -> &[String] {
        self.replaced.as_ref().map_or(&[], |replaced| &replaced.fields)
    }

    /// The messages that it is compared with.
    pub(super) fn messages(&self) -> Range<u64> {
        self.since.unwrap_or(self.from)..self.until
    }
}

/// Values by their names.
pub(super) type Named<T> = std::collections::BTreeMap<String, T>;

/// Headers of the client that change what a model does.
const HEADERS: &[&str] = &["anthropic-version", "anthropic-beta", "openai-beta"];

pub(super) fn headers(headers: &HeaderMap) -> Named<String> {
    let value = |name: &&str| Some(((*name).to_owned(), headers.get(*name)?.to_str().ok()?.to_owned()));
    HEADERS.iter().filter_map(value).collect()
}

/// How deep a field may be nested: the message that it is kept with has limits.
const DEEPEST: usize = Json::MAX_DEPTH - 8;

/// The fields of a request but its messages, and but those that are nested too deep. What an earlier answer has is named, not
/// repeated.
pub(super) fn fields(key: &Key, request: &[(String, &RawValue)], before: Option<(u64, &Named<Field>)>) -> Named<Field> {
    let fits = |raw: &RawValue| !json::is_deeper(raw.get(), DEEPEST);
    let around = request.iter().filter(|(name, raw)| !MESSAGES.contains(&name.as_str()) && fits(raw));
    let clean = around.filter_map(|(name, raw)| Some((name.clone(), in_line(without_secrets(key, name, raw)?))));
    named(key, clean, before)
}

/// What a client sent in the places of messages that are recorded. It sends that with each request from then on: only what is more
/// than at an earlier answer is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Rewritten {
    /// The answer whose request had these, too, by its index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
    /// The last position, and a digest of all items up to it.
    through: usize,
    all: String,
    /// Items of the request's list, by their positions; null where the request itself is kept.
    items: Named<Box<RawValue>>,
}

impl Rewritten {
    /// The items that are here.
    pub(super) fn items(&self) -> impl Iterator<Item = &str> {
        self.items.values().map(|item| item.get())
    }

    /// The positions alone.
    pub(super) fn positions(&self) -> Self {
        let items = self.items.keys().map(|at| (at.clone(), RawValue::NULL.to_owned())).collect();
        Self { items, ..self.clone() }
    }

    /// `positions`: of the items in the request's list.
    pub(super) fn of(
        key: &Key,
        request: &[(String, &RawValue)],
        positions: &BTreeSet<usize>,
        before: Option<(u64, &Self)>,
    ) -> Option<Self> {
        let through = *positions.last()?;
        let list = request.iter().find(|(name, _)| MESSAGES.contains(&name.as_str()));
        let list: Vec<&RawValue> = list.and_then(|(_, raw)| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let items: Vec<_> = positions.iter().filter_map(|at| Some((*at, *list.get(*at)?))).collect();
        let all = |through: usize| {
            let items = items.iter().filter(|(at, _)| *at <= through);
            let parts: Vec<_> = items.map(|(at, item)| (at.to_be_bytes(), item.get().as_bytes())).collect();
            hex::encode(&key.digest(parts.iter().flat_map(|(at, item)| [at.as_slice(), item])))
        };
        let since = before.filter(|(_, before)| all(before.through) == before.all);
        let is_new = |at: usize| since.is_none_or(|(_, before)| at > before.through);
        let new =
            items.iter().filter(|(at, _)| is_new(*at)).map(|(at, item)| (at.to_string(), in_line((*item).to_owned())));
        Some(Self { since: since.map(|(index, _)| index), through, all: all(through), items: new.collect() })
    }
}

fn named(
    key: &Key,
    values: impl Iterator<Item = (String, Box<RawValue>)>,
    before: Option<(u64, &Named<Field>)>,
) -> Named<Field> {
    let mut found = Named::new();
    for (name, is) in values {
        if is.get().len() <= SMALL {
            found.insert(name, Field::of(is));
            continue;
        }
        // The key is the owner's: nobody else makes two that are equal.
        let half = |digest: String| digest.get(..16).map(str::to_owned).unwrap_or(digest);
        let digest = |value: &RawValue| half(hex::encode(&key.digest([value.get().as_bytes()])));
        let wanted = digest(&is);
        let known = before.and_then(|(index, fields)| {
            let Field { at, digest: known, is } = fields.get(&name)?;
            let known = known.clone().or_else(|| is.as_deref().map(digest))?;
            (known == wanted).then_some(at.unwrap_or(index))
        });
        let there = |at| Field { at: Some(at), digest: Some(wanted), is: None };
        found.insert(name, known.map_or_else(|| Field::of(is), there));
    }
    found
}

/// Fields that hold what people say, on any wire.
const SAID: &[&str] = &["system", "instructions", "systemInstruction", "system_instruction", "prompt"];

/// A field with its secrets replaced, so that equal ones stay equal; as it came if there are none.
pub(super) fn without_secrets(key: &Key, name: &str, raw: &RawValue) -> Option<Box<RawValue>> {
    let has_fields = raw.get().starts_with(['{', '[']);
    let is_said = MESSAGES.contains(&name) || SAID.contains(&name);
    if is_said || !(secrets::may_be_in(name) || has_fields && secrets::may_be_in(raw.get())) {
        return Some(raw.to_owned());
    }
    let with =
        |value: &Value| format!("redacted:{}", hex::encode(&key.digest([canonical(&value.to_string()).as_slice()])));
    match secrets::replace_field(name, serde_json::from_str(raw.get()).ok()?, &with) {
        Some(clean) => serde_json::value::to_raw_value(&clean).ok(),
        None => Some(raw.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the next request finds them: they were stored.
    fn of(request: &str, before: Option<(u64, &Named<Field>)>) -> Named<Field> {
        let fields = Json::fields(request).unwrap();
        let fields = super::fields(&Key::new(&[1; 32]), &fields, before);
        serde_json::from_str(&serde_json::to_string(&fields).unwrap()).unwrap()
    }

    #[test]
    fn what_has_not_changed_is_named() {
        let long = "x".repeat(100);
        let first = of(&format!(r#"{{"system":"{long}","model":"m","messages":[]}}"#), None);
        assert_eq!((first["system"].at, first["system"].is.is_some()), (None, true));
        assert!(!first.contains_key("messages"));
        let second = of(&format!(r#"{{"system":"{long}","model":"n"}}"#), Some((3, &first)));
        assert_eq!((second["system"].at, second["system"].is.is_some()), (Some(3), false));
        // A third names the first, too.
        let third = of(&format!(r#"{{"system":"{long}"}}"#), Some((5, &second)));
        assert_eq!(third["system"].at, Some(3));
        let other = of(&format!(r#"{{"system":"{long}y"}}"#), Some((5, &second)));
        assert_eq!((other["system"].at, other["system"].is.is_some()), (None, true));
    }

    #[test]
    fn what_was_rewritten_before_is_not_kept_again() {
        let of = |list: &str, positions: &[usize], before: Option<(u64, &Rewritten)>| {
            let request = format!(r#"{{"model":"m","messages":{list}}}"#);
            let fields = Json::fields(&request).unwrap();
            let positions = positions.iter().copied().collect();
            let rewritten = Rewritten::of(&Key::new(&[1; 32]), &fields, &positions, before).unwrap();
            serde_json::from_str::<Rewritten>(&serde_json::to_string(&rewritten).unwrap()).unwrap()
        };
        let names = |rewritten: &Rewritten| rewritten.items.keys().cloned().collect::<Vec<_>>();
        let first = of(r#"["a",{"b":1},"c","d"]"#, &[1], None);
        assert_eq!((first.since, names(&first), first.items["1"].get()), (None, vec!["1".to_owned()], r#"{"b":1}"#));
        let second = of(r#"["a",{"b":1},"c","d","e"]"#, &[1, 3], Some((7, &first)));
        assert_eq!((second.since, names(&second)), (Some(7), vec!["3".to_owned()]));
        let third = of(r#"["a",{"b":1},"c","d","e"]"#, &[1, 3], Some((9, &second)));
        assert_eq!((third.since, names(&third)), (Some(9), Vec::new()));
        // Another one in an earlier place: all of them are kept.
        let other = of(r#"["a",{"b":2},"c","d","e"]"#, &[1, 3], Some((9, &second)));
        assert_eq!((other.since, names(&other)), (None, vec!["1".to_owned(), "3".to_owned()]));
    }

    #[test]
    fn a_field_is_read_back_as_it_was_kept() {
        let request = r#"{"stop":null,"tools":[{"name": "t",
            "parameters": {"a": 1}}],"model":"m"}"#;
        let fields = Json::fields(request).unwrap();
        let kept = super::fields(&Key::new(&[1; 32]), &fields, None);
        let stored = Json::new(serde_json::to_string(&kept).unwrap()).unwrap();
        let read: Named<Field> = serde_json::from_str(stored.as_str()).unwrap();
        let is = |fields: &Named<Field>| fields.values().map(|field| field.is().map(str::to_owned)).collect::<Vec<_>>();
        assert_eq!(is(&read), is(&kept));
        assert_eq!(read["stop"].is(), Some("null"));
        let list = format!("[{request}]");
        let given = format!(r#"{{"messages":{list}}}"#);
        let rewritten = Rewritten::of(&Key::new(&[1; 32]), &Json::fields(&given).unwrap(), &BTreeSet::from([0]), None);
        let stored = Json::new(serde_json::to_string(&rewritten).unwrap()).unwrap();
        let read: Rewritten = serde_json::from_str(stored.as_str()).unwrap();
        assert!(read.items().eq(rewritten.unwrap().items()));
    }

    #[test]
    fn secrets_are_replaced() {
        let request = r#"{"tools":[{"type":"mcp","authorization":"canary","headers":{"a":"canary"},"name":"n"},
            {"name":"t","input_schema":{"properties":{"authorization":{"type":"string"}}}}],
            "mcp_servers":[{"authorization_token":"canary"}],"authorization":"canary",
            "client_metadata":{"API_KEY":"canary"},"extra_headers":{"a":"canary"},"extra_body":{"api_key":"canary"},
            "metadata":{"device_id":"canary","kept":"as it is","api-key":"canary"},
            "data_sources":[{"type":"azure_search","parameters":{"authentication":{"type":"api_key","key":"canary"}}}],
            "fallbacks":[{"model":"m","api_key":"canary"}],"langfuse_secret_key":"canary","hf_token":"canary",
            "user_config":{"model_list":[{"litellm_params":{"apiKey":"canary","api_base":"https://h/?k=canary"}}]}}"#;
        let text = serde_json::to_string(&of(request, None)).unwrap();
        assert!(!text.contains("canary"), "{text}");
        // Most fields whose names are like those of keys are none.
        let request = r#"{"max_tokens":1,"prompt_cache_key":"is-none-of-them","stop_token_ids":[1],"eos_token":"</s>",
            "response_format":{"type":"json_schema","json_schema":{"schema":{"properties":{"password":{"default":"a"}}}}},
            "system":"The token: api_key","instructions":[{"api_key":"of an example"}],"author":"ada"}"#;
        let kept = of(request, None);
        let fields = Json::fields(request).unwrap();
        let is_as_it_came =
            |(name, raw): &(String, &RawValue)| kept[name].is() == Some(&*crate::json::compact(raw.get()));
        assert!(fields.iter().all(is_as_it_came), "{kept:?}");
        assert!(text.contains("as it is") && text.contains(r#""properties":{"authorization""#), "{text}");
    }
}
