//! The OpenAI Conversations API, for the official SDKs as they are.
//!
//! `item/` turns items into messages and back; `listing` finds items by their place; `known` is how conversations are
//! named and written; `conversations` and `items` are the calls. An item is a message, or a chunk of one: both APIs read what either wrote.

mod conversations;
mod item;
mod items;
mod known;
mod listing;

use super::app::Handler;
use super::keys::Scope;
use super::route::{Route, Verb, header, json, optional_json, query};

const CONVERSATION: &str = r#"{"id":"conv_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b","object":"conversation","created_at":1773531716,"metadata":{"topic":"plans"}}"#;
const ITEM: &str = r#"{"id":"msg_69b58644a57081948324470dc5eaec820bd744e943e1aadd","type":"message","role":"user","content":[{"type":"input_text","text":"hello"}],"status":"completed"}"#;
const ITEMS: &str = r#"{"object":"list","data":[{"id":"msg_69b58644a57081948324470dc5eaec820bd744e943e1aadd","type":"message","role":"user","content":[{"type":"input_text","text":"hello"}],"status":"completed"}],"first_id":"msg_69b58644a57081948324470dc5eaec820bd744e943e1aadd","last_id":"msg_69b58644a57081948324470dc5eaec820bd744e943e1aadd","has_more":false}"#;

const KEY: super::route::Parameter = header(
    "Idempotency-Key",
    r#"{"type":"string","minLength":1,"maxLength":1000}"#,
    "A repetition with the same key and body changes nothing and gets the same answer",
);
const INCLUDE: super::route::Parameter =
    query("include[]", r#"{"type":"array","items":{"type":"string"}}"#, "Accepted; everything is returned without it");

pub(crate) const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Post,
        path: "/v1/conversations",
        id: "createConversation",
        summary: "Create a conversation, with up to 20 items",
        scope: Scope::Append,
        parameters: &[KEY],
        body: Some(optional_json("NewConversation", r#"{"metadata":{"topic":"plans"}}"#)),
        answer: json("Conversation", CONVERSATION),
        refusals: &[413, 422],
        handler: Handler::Store(conversations::create),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/conversations",
        id: "listConversations",
        summary: "List conversations, newest activity first; OpenAI has no such call, Azure has this one",
        scope: Scope::Read,
        parameters: &[
            query("limit", r#"{"type":"integer","minimum":1,"maximum":100,"default":20}"#, "The most conversations"),
            query("order", r#"{"type":"string","enum":["desc"],"default":"desc"}"#, "The only order: newest first"),
            query("after", r#"{"type":"string"}"#, "The last_id of the previous page"),
        ],
        body: None,
        answer: json(
            "ConversationList",
            r#"{"object":"list","data":[{"id":"conv_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b","object":"conversation","created_at":1773531716,"metadata":{}}],"first_id":"conv_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b","last_id":"conv_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b","has_more":false}"#,
        ),
        refusals: &[404],
        handler: Handler::Store(conversations::list),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/conversations/{conversation}",
        id: "getConversation",
        summary: "Read a conversation's fields",
        scope: Scope::Read,
        parameters: &[],
        body: None,
        answer: json("Conversation", CONVERSATION),
        refusals: &[404],
        handler: Handler::Store(known::get),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/conversations/{conversation}",
        id: "updateConversation",
        summary: "Replace a conversation's metadata",
        scope: Scope::Append,
        parameters: &[],
        body: Some(json("ConversationUpdate", r#"{"metadata":{"topic":"plans"}}"#)),
        answer: json("Conversation", CONVERSATION),
        refusals: &[404],
        handler: Handler::Store(conversations::update),
    },
    Route {
        verb: Verb::Delete,
        path: "/v1/conversations/{conversation}",
        id: "deleteConversation",
        summary: "Delete a conversation and erase its items",
        scope: Scope::Delete,
        parameters: &[],
        body: None,
        answer: json(
            "DeletedConversation",
            r#"{"id":"conv_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b","object":"conversation.deleted","deleted":true}"#,
        ),
        refusals: &[404],
        handler: Handler::Store(conversations::delete),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/conversations/{conversation}/items",
        id: "createConversationItems",
        summary: "Append up to 20 items, all or none of them",
        scope: Scope::Append,
        parameters: &[KEY, INCLUDE],
        body: Some(json("NewItems", r#"{"items":[{"role":"user","content":"hello"}]}"#)),
        answer: json("ItemList", ITEMS),
        refusals: &[404, 413, 422],
        handler: Handler::Store(items::create),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/conversations/{conversation}/items",
        id: "listConversationItems",
        summary: "Read a page of items",
        scope: Scope::Read,
        parameters: &[
            query(
                "limit",
                r#"{"type":"integer","minimum":1,"maximum":100,"default":20}"#,
                "The most items; large ones make a page shorter",
            ),
            query("order", r#"{"type":"string","enum":["asc","desc"],"default":"desc"}"#, "desc: newest first"),
            query("after", r#"{"type":"string"}"#, "The last_id of the previous page"),
            INCLUDE,
        ],
        body: None,
        answer: json("ItemList", ITEMS),
        refusals: &[404],
        handler: Handler::Store(items::list),
    },
    Route {
        verb: Verb::Get,
        path: "/v1/conversations/{conversation}/items/{item}",
        id: "getConversationItem",
        summary: "Read one item",
        scope: Scope::Read,
        parameters: &[INCLUDE],
        body: None,
        answer: json("Item", ITEM),
        refusals: &[404],
        handler: Handler::Store(items::get),
    },
    Route {
        verb: Verb::Delete,
        path: "/v1/conversations/{conversation}/items/{item}",
        id: "deleteConversationItem",
        summary: "Remove one item from the conversation; the log keeps it until it is redacted",
        scope: Scope::Delete,
        parameters: &[],
        body: None,
        answer: json("Conversation", CONVERSATION),
        refusals: &[404, 409],
        handler: Handler::Store(items::delete),
    },
];
