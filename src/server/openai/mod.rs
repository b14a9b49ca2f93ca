//! The OpenAI Conversations API, for the official SDKs as they are.
//!
//! `item/` turns items into messages and back; `listing` finds items by their place; `known` is how conversations are
//! named and written; `conversations` and `items` are the calls. An item is a message, or a chunk of one: both APIs read what
//! either wrote.

mod conversations;
mod item;
mod items;
mod known;
mod listing;
mod repaired;

use serde_json::json;

use super::app::Handler::Store;
use super::keys::Scope::{Append, Delete, Read};
use super::route::{Parameter, Route, header, idempotency_key, json, optional_json, query, text};
use super::schemas::Item;
use conversations::{Deleted, New, Page, Update};
use items::{List, New as NewItems};
use known::Conversation;

pub(crate) use item::{Given, Normal, Taken, annotations_of, base64_of, given, messages, normal, sound_part};
pub(crate) use known::{not_found, own, shown};

const CONVERSATION: &str = r#"{"id":"conv_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b","object":"conversation","created_at":1773531716,"metadata":{"topic":"plans"}}"#;
const ITEM: &str = r#"{"id":"msg_69b58644a57081948324470dc5eaec820bd744e943e1aadd","type":"message","role":"user","content":[{"type":"input_text","text":"hello"}],"status":"completed"}"#;
const ITEMS: &str = r#"{"object":"list","data":[{"id":"msg_69b58644a57081948324470dc5eaec820bd744e943e1aadd","type":"message","role":"user","content":[{"type":"input_text","text":"hello"}],"status":"completed"}],"first_id":"msg_69b58644a57081948324470dc5eaec820bd744e943e1aadd","last_id":"msg_69b58644a57081948324470dc5eaec820bd744e943e1aadd","has_more":false}"#;
const CONVERSATIONS: &str = r#"{"object":"list","data":[{"id":"conv_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b","object":"conversation","created_at":1773531716,"metadata":{}}],"first_id":"conv_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b","last_id":"conv_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b","has_more":false}"#;

fn key() -> Parameter {
    idempotency_key("A repetition with the same key and body changes nothing and gets the same answer")
}

fn include() -> Parameter {
    let schema = json!({ "type": "array", "items": { "type": "string" } });
    query("include[]", schema, "Accepted; everything is returned without it. `convo.report`: what was repaired")
}

/// How a call asks for items as they are stored, or as a provider accepts them.
fn repaired() -> [Parameter; 2] {
    let schema = json!({ "type": "boolean" });
    let about =
        "Whether items come as OpenAI accepts them, or as they are stored; else the key says it, or the settings";
    [query(repaired::PARAMETER, schema.clone(), about), header(repaired::HEADER, schema, about)]
}

/// What pages have: how many of these, from where, in one of these orders.
fn page(most: &'static str, orders: &[&str], order: &'static str) -> Vec<Parameter> {
    vec![
        query("limit", json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 20 }), most),
        query("order", json!({ "type": "string", "enum": orders, "default": "desc" }), order),
        text("after", "The last_id of the previous page"),
    ]
}

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/v1/conversations", Append, Store(conversations::create))
        .named("createConversation", "Create a conversation, with up to 20 items")
        .takes(|| vec![key()])
        .body(optional_json::<New<'static>>(r#"{"metadata":{"topic":"plans"}}"#))
        .answers(json::<Conversation>(CONVERSATION))
        .refuses(&[409, 413, 422]),
    Route::get("/v1/conversations", Read, Store(conversations::list))
        .named(
            "listConversations",
            "List conversations, newest activity first; OpenAI has no such call, Azure has this one",
        )
        .takes(|| page("The most conversations", &["desc"], "The only order: newest first"))
        .answers(json::<Page>(CONVERSATIONS))
        .refuses(&[404]),
    Route::get("/v1/conversations/{conversation}", Read, Store(known::get))
        .named("getConversation", "Read a conversation's fields")
        .answers(json::<Conversation>(CONVERSATION))
        .refuses(&[404]),
    Route::post("/v1/conversations/{conversation}", Append, Store(conversations::update))
        .named("updateConversation", "Replace a conversation's metadata")
        .body(json::<Update<'static>>(r#"{"metadata":{"topic":"plans"}}"#))
        .answers(json::<Conversation>(CONVERSATION))
        .refuses(&[404]),
    Route::delete("/v1/conversations/{conversation}", Delete, Store(conversations::delete))
        .named("deleteConversation", "Delete a conversation and erase its items")
        .answers(json::<Deleted>(
            r#"{"id":"conv_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b","object":"conversation.deleted","deleted":true}"#,
        ))
        .refuses(&[404]),
    Route::post("/v1/conversations/{conversation}/items", Append, Store(items::create))
        .named("createConversationItems", "Append up to 20 items, all or none of them")
        .takes(|| vec![key(), include()])
        .body(json::<NewItems<'static>>(r#"{"items":[{"role":"user","content":"hello"}]}"#))
        .answers(json::<List>(ITEMS))
        .refuses(&[404, 413, 422]),
    Route::get("/v1/conversations/{conversation}/items", Read, Store(items::list))
        .named("listConversationItems", "Read a page of items")
        .takes(|| {
            let page = page("The most items; large ones make a page shorter", &["asc", "desc"], "desc: newest first");
            page.into_iter().chain([include()]).chain(repaired()).collect()
        })
        .answers(json::<List>(ITEMS))
        .refuses(&[404]),
    Route::get("/v1/conversations/{conversation}/items/{item}", Read, Store(items::get))
        .named("getConversationItem", "Read one item")
        .takes(|| [include()].into_iter().chain(repaired()).collect())
        .answers(json::<Item>(ITEM))
        .refuses(&[404]),
    Route::delete("/v1/conversations/{conversation}/items/{item}", Delete, Store(items::delete))
        .named("deleteConversationItem", "Remove one item from the conversation; the log keeps it until it is redacted")
        .answers(json::<Conversation>(CONVERSATION))
        .refuses(&[404, 409]),
];
