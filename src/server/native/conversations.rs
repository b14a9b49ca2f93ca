//! Conversations: created, described, listed, forked, deleted; their titles, tags and metadata.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::parameters;
use crate::error::Error;
use crate::log::{Item, ListItem, ListQuery, NewConversation, Unfinished};
use crate::model::{ConversationId, Json, Name};
use crate::server::app::{Call, Outcome, ok};
use crate::server::body;
use crate::server::refusal::Refusal;
use crate::server::schemas::{Object, Tag};

#[derive(Serialize, JsonSchema)]
pub(super) struct Described {
    #[serde(flatten)]
    item: ListItem,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Object")]
    metadata: Option<Json>,
}

fn described(call: &Call, name: &Name) -> Outcome {
    let item = call.store().describe(name)?;
    let metadata = call.store().metadata(name)?;
    ok(&Described { item, metadata })
}

pub(super) fn get(call: &Call, _: &[u8]) -> Outcome {
    described(call, &parameters::name(call))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NativeNew")]
pub(super) struct New {
    key: Option<String>,
    title: Option<String>,
    #[serde(default)]
    #[schemars(with = "Vec<Tag>")]
    tags: Vec<String>,
    #[schemars(with = "Option<Object>")]
    metadata: Option<Box<RawValue>>,
}

pub(super) fn json(raw: &RawValue) -> Result<Json, Refusal> {
    Json::new(raw.get()).map_err(|error| Refusal::value("metadata", &error.to_string()))
}

pub(super) fn create(call: &Call, body: &[u8]) -> Outcome {
    let New { key, title, tags, metadata } = body::json(body)?;
    let name = parameters::new(call, key.as_deref())?;
    let mut new = NewConversation::new();
    (new.title, new.tags) = (title, tags);
    new.metadata = metadata.as_deref().map(json).transpose()?;
    call.store().create(&name, &new)?;
    described(call, &name)
}

pub(super) fn list(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&[
        "limit",
        "after",
        "title",
        "tag",
        "key_prefix",
        "forked_from",
        "metadata[]",
        "since",
        "until",
        "sort",
        "owner",
    ])?;
    let mut query = ListQuery::new().with_owner(parameters::for_owner(call)?.caller.owner);
    query.limit = usize::try_from(call.query.number("limit", 1, 1_000)?.unwrap_or(50)).unwrap_or(50);
    query.after = call.query.parse("after", "cursor")?;
    query.title = call.query.get("title").map(str::to_owned);
    query.tags = call.query.all("tag").into_iter().map(str::to_owned).collect();
    query.key_prefix = call.query.get("key_prefix").map(str::to_owned);
    query.forked_from = call.query.parse("forked_from", "id of a conversation")?;
    query.metadata = call.query.fields("metadata");
    query.since = parameters::moment(call, "since")?;
    query.until = parameters::moment(call, "until")?;
    query.sort = call.query.parse("sort", "order: newest, oldest or created")?.unwrap_or_default();
    ok(&call.store().list(&query)?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewFork {
    at_seq: Option<u64>,
    key: Option<String>,
}

pub(super) fn fork(call: &Call, body: &[u8]) -> Outcome {
    let NewFork { at_seq, key } = body::json(body)?;
    let child = parameters::new(call, key.as_deref())?;
    call.store().fork_to(parameters::name(call), at_seq, &child)?;
    described(call, &child)
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NativeDeleted")]
pub(super) struct Deleted {
    conversation: ConversationId,
    #[schemars(extend("const" = true))]
    deleted: bool,
}

pub(super) fn delete(call: &Call, _: &[u8]) -> Outcome {
    let name = parameters::name(call);
    call.store().delete(&name)?;
    ok(&Deleted { conversation: name.id(), deleted: true })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Title {
    title: Option<String>,
}

pub(super) fn title(call: &Call, body: &[u8]) -> Outcome {
    let Title { title } = body::required(body)?;
    ok(&call.store().set_title(parameters::name(call), title.as_deref())?)
}

pub(super) fn metadata(call: &Call, body: &[u8]) -> Outcome {
    let metadata: Box<RawValue> = body::required(body)?;
    ok(&call.store().set_metadata(parameters::name(call), &json(&metadata)?)?)
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TagChange {
    #[serde(default)]
    #[schemars(with = "Vec<Tag>")]
    pub(super) add: Vec<String>,
    #[serde(default)]
    pub(super) remove: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Tags {
    tags: Vec<String>,
}

pub(super) fn tags(call: &Call, body: &[u8]) -> Outcome {
    let TagChange { add, remove } = body::required(body)?;
    let name = parameters::name(call);
    let mut tags = call.store().describe(&name)?.tags;
    if !remove.is_empty() {
        tags = call.store().untag(&name, &remove.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    if !add.is_empty() {
        tags = call.store().tag(&name, &add.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    ok(&Tags { tags })
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Found {
    items: Vec<Item>,
}

/// The items with an id in the caller's conversations.
pub(super) fn find(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["item"])?;
    let Some(id) = call.query.get("item") else {
        let message = "Missing required parameter: 'item'.";
        return Err(Refusal::invalid("item", "missing_required_parameter", message));
    };
    let mut items = Vec::new();
    for item in call.store().find_item_everywhere(id)? {
        match call.store().describe(call.own(item.conversation)) {
            Ok(_) => items.push(item),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    ok(&Found { items })
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Unfinished")]
pub(super) struct AllUnfinished {
    messages: Vec<Unfinished>,
}

/// The caller's messages that are being written, or were interrupted.
pub(super) fn unfinished(call: &Call, _: &[u8]) -> Outcome {
    let mut messages = call.store().unfinished()?;
    messages.retain(|message| message.owner == call.caller.owner);
    ok(&AllUnfinished { messages })
}
