//! Conversations: created, read, updated, deleted, listed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::items;
use super::known::{Conversation, conversation, found, name, not_found, own, reused, shown};
use crate::error::Error;
use crate::history::EntryKind;
use crate::log::{ListQuery, NewConversation};
use crate::model::{ConversationId, Json, Name};
use crate::server::app::{Call, Outcome, ok};
use crate::server::body;
use crate::server::refusal::Refusal;
use crate::server::schemas::{Item, Pairs};

/// Pairs of metadata, characters of a name, characters of a value.
const PAIRS: usize = 16;
const NAME: usize = 64;
const VALUE: usize = 512;

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NewConversation")]
pub(super) struct New<'a> {
    #[serde(borrow, default)]
    #[schemars(with = "Pairs")]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schemars(with = "Option<Vec<Item>>", length(max = 20))]
    items: Option<&'a RawValue>,
}

pub(super) fn create(call: &Call, body: &[u8]) -> Outcome {
    let New { metadata, items } = body::json(body)?;
    let metadata = metadata.map(checked).transpose()?.flatten();
    let items = items.map(|raw| items::read(call, raw)).transpose()?.unwrap_or_default();
    // The key creates the same conversation again.
    let key = call.idempotency_key()?;
    let name = match key {
        None => call.own(ConversationId::new()),
        Some(key) => call.own(format!("idempotency-key:{key}")),
    };
    match items.is_empty() {
        true => make(call, &name, metadata).map_err(|error| reused(call, error))?,
        false => _ = items::begin(call, &name, &items, metadata)?,
    }
    ok(&conversation(call, &call.store().describe(&name)?)?)
}

/// Makes a conversation without items. Of the same key, it has to have begun with the same metadata, and without items.
fn make(call: &Call, name: &Name, metadata: Option<Json>) -> Result<(), Error> {
    let mut new = NewConversation::new();
    new.metadata.clone_from(&metadata);
    let taken = match call.store().create(name, &new) {
        Err(taken @ Error::NameTaken { .. }) => taken,
        made => return made.map(|_| ()),
    };
    let first = call.store().entries(name, 1..=1, 1)?.into_iter().next().map(|entry| entry.kind);
    match first {
        Some(EntryKind::Meta { metadata: begun, .. }) if begun == metadata => Ok(()),
        _ => Err(taken),
    }
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ConversationUpdate")]
pub(super) struct Update<'a> {
    #[serde(borrow)]
    #[schemars(with = "Pairs")]
    metadata: Option<&'a RawValue>,
}

pub(super) fn update(call: &Call, body: &[u8]) -> Outcome {
    let name = name(call);
    let known = found(call, call.store().describe(&name))?;
    // Written out, null empties it; `Option` would read null as absent.
    let fields: Map<String, Value> = body::required(body)?;
    if !fields.contains_key("metadata") {
        return Err(Refusal::missing("metadata"));
    }
    let Update { metadata } = body::json(body)?;
    let metadata = metadata.map(checked).transpose()?.flatten();
    let metadata = metadata.or_else(|| Json::new("{}").ok()).ok_or_else(|| Refusal::internal("no metadata"))?;
    found(call, call.store().set_metadata(&name, &metadata))?;
    ok(&conversation(call, &known)?)
}

/// Metadata within OpenAI's limits; `None` for null.
fn checked(raw: &RawValue) -> Result<Option<Json>, Refusal> {
    let fields = match serde_json::from_str::<Value>(raw.get()) {
        Ok(Value::Null) => return Ok(None),
        Ok(Value::Object(fields)) => fields,
        _ => {
            let message = "Invalid type for 'metadata': expected an object or null.";
            return Err(Refusal::invalid("metadata", "invalid_type", message));
        }
    };
    let over = |param: String, code, what: &str, limit: usize, actual: usize| {
        let message = format!("Invalid '{param}': {what}. Expected at most {limit}, but got {actual} instead.");
        Refusal::invalid(param, code, message)
    };
    if fields.len() > PAIRS {
        let code = "object_above_max_properties";
        return Err(over("metadata".to_owned(), code, "too many properties", PAIRS, fields.len()));
    }
    for (name, value) in &fields {
        let param = format!("metadata.{name}");
        let length = name.chars().count();
        if length > NAME {
            return Err(over(param, "string_above_max_length", "name too long", NAME, length));
        }
        let Value::String(value) = value else {
            let message = format!("Invalid type for '{param}': expected a string.");
            return Err(Refusal::invalid(param, "invalid_type", message));
        };
        let length = value.chars().count();
        if length > VALUE {
            return Err(over(param, "string_above_max_length", "string too long", VALUE, length));
        }
    }
    Json::new(raw.get()).map(Some).map_err(|error| Refusal::value("metadata", &error.to_string()))
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeletedConversation")]
pub(super) struct Deleted {
    id: String,
    #[schemars(extend("const" = "conversation.deleted"))]
    object: &'static str,
    #[schemars(extend("const" = true))]
    deleted: bool,
}

pub(super) fn delete(call: &Call, _: &[u8]) -> Outcome {
    let name = name(call);
    found(call, call.store().delete(&name))?;
    ok(&Deleted { id: shown(name.id()), object: "conversation.deleted", deleted: true })
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConversationList")]
pub(super) struct Page {
    #[schemars(extend("const" = "list"))]
    object: &'static str,
    data: Vec<Conversation>,
    first_id: Option<String>,
    last_id: Option<String>,
    has_more: bool,
}

pub(super) fn list(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["limit", "order", "after"])?;
    if call.query.get("order").is_some_and(|order| order != "desc") {
        return Err(Refusal::value("order", "conversations are listed in the order `desc` only"));
    }
    let limit = call.query.number("limit", 1, 100)?.unwrap_or(20);
    let limit = usize::try_from(limit).unwrap_or(20);
    let mut query = ListQuery::new().with_owner(&*call.caller.owner).with_limit(limit);
    if let Some(after) = call.query.get("after") {
        let item = call.store().describe(own(call, after)).map_err(|_| not_found(after).at("after"))?;
        query = query.with_after(item.cursor());
    }
    let page = call.store().list(&query)?;
    let data = page.items.iter().map(|item| conversation(call, item)).collect::<Result<Vec<_>, _>>()?;
    let id = |conversation: Option<&Conversation>| conversation.map(|conversation| conversation.id.clone());
    let (first_id, last_id) = (id(data.first()), id(data.last()));
    ok(&Page { object: "list", data, first_id, last_id, has_more: page.next.is_some() })
}
