//! The JSON Schemas of what no derive describes: what is written by hand, or read as it comes. All others are derived where the
//! types are.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::history::{Cursor, Entry};
use crate::log::ListCursor;
use crate::model::{ConversationId, Message, Role, Timestamp};
#[cfg(feature = "search")]
use crate::search::SearchCursor;

macro_rules! schemas {
    ($($type:ty, $name:literal: $schema:tt;)*) => {$(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

/// Any JSON object.
pub(crate) enum Object {}
/// Bytes that are not looked into.
pub(crate) enum Bytes {}
/// A provider's request.
pub(crate) enum Request {}
/// One message, or several: the transcript's reader reads them, so that it can name the place of a mistake.
pub(crate) enum NewMessages {}
/// A tag that a client gives.
pub(crate) enum Tag {}
/// An event of a follower.
pub(crate) enum Events {}
/// An item of OpenAI's.
pub(crate) enum Item {}
/// Metadata as OpenAI limits it.
pub(crate) enum Pairs {}

schemas! {
    ConversationId, "ConversationId": { "type": "string" };
    Timestamp, "Timestamp": { "type": "string" };
    Cursor, "Cursor": { "type": "string" };
    ListCursor, "ListCursor": { "type": "string" };
    Message, "Message": {
        "type": "object",
        "properties": { "role": { "type": "string" }, "chunks": { "type": "array", "items": { "type": "object" } } },
        "required": ["role", "chunks"],
    };
    NewMessages, "NewMessages": { "oneOf": [
        message(),
        { "type": "array", "items": message(), "minItems": 1 },
        {
            "type": "object",
            "properties": {
                "messages": { "type": "array", "items": message() },
                "title": { "type": "string" },
                "tags": {
                    "type": "object",
                    "properties": {
                        "add": { "type": "array", "items": { "type": "string", "pattern": "\\S" } },
                        "remove": { "type": "array", "items": { "type": "string" } },
                    },
                    "additionalProperties": false,
                },
                "metadata": { "type": "object" },
            },
            "required": ["messages"],
            "additionalProperties": false,
        },
    ] };
    Entry, "Entry": {
        "type": "object",
        "properties": {
            "seq": { "type": "integer", "minimum": 0 },
            "kind": { "type": "string" },
            "message_index": { "type": "integer", "minimum": 0 },
            "chunk_index": { "type": "integer", "minimum": 0 },
            "role": { "type": "string" },
            "chunk": { "type": "object" },
            "created_at": { "type": "string" },
        },
        "required": ["seq", "kind", "created_at"],
    };
    Object, "Metadata": { "type": "object" };
    Bytes, "Bytes": { "type": "string", "format": "binary" };
    Request, "Request": {
        "description": "A provider's request, or its list of messages. What is neither is a finding, too.",
    };
    Tag, "Tag": {
        "type": "string",
        "pattern": "\\S",
        "description": "At most 1,024 bytes; a conversation has at most 32 tags",
    };
    Events, "Events": {
        "type": "object",
        "description": "One event of the stream. Its data is an entry, as JSON; the last event is named close, and its data \
                        has reason, last_seq and cursor.",
        "properties": {
            "id": { "type": "string", "description": "The seq of the entry" },
            "event": { "type": "string" },
            "data": { "type": "string" },
            "retry": { "type": "integer" },
        },
        "required": ["data"],
    };
    Item, "Item": {
        "type": "object",
        "description": "An item as OpenAI's Responses API has it. What is not known is kept. A message needs no type.",
        "anyOf": [{ "required": ["type"] }, { "required": ["role", "content"] }],
    };
    Pairs, "Pairs": {
        "type": ["object", "null"],
        "maxProperties": 16,
        "propertyNames": { "maxLength": 64 },
        "additionalProperties": { "type": "string", "maxLength": 512 },
    };
}

#[cfg(feature = "search")]
schemas! {
    SearchCursor, "SearchCursor": { "type": "string" };
}

/// A message as a client sends it.
fn message() -> serde_json::Value {
    serde_json::json!({
        "type": "object",
        "properties": {
            "role": { "enum": Role::ALL.map(Role::as_str) },
            "chunks": {
                "type": "array",
                "items": { "type": "object", "properties": { "type": { "type": "string" } }, "required": ["type"] },
            },
        },
        "required": ["role", "chunks"],
    })
}
