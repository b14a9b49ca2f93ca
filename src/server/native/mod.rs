//! The native API: everything that the store does, in the store's own terms.
//!
//! `parameters` reads what several calls accept; there is a file for each group of calls.

mod admin;
mod conversations;
pub(super) mod events;
mod exchanges;
mod ingest;
mod messages;
pub(super) mod parameters;
mod prompts;
#[cfg(feature = "search")]
mod search;
mod transfer;
mod usage;

use serde_json::json;

use super::app::Handler::{Store, Stream};
use super::keys::Scope::{Admin, Append, Delete, Read};
use super::proxy::Exchange;
use super::route::{Parameter, Route, header, idempotency_key, json, number, of, optional_json, query, text};
use super::schemas::{Bytes, Events, NewMessages, Object, Request};
use crate::history::{NextStep, StoredMessage};
use crate::log::{Health, ListPage, ListSort, Receipt, Redaction, Verification};
#[cfg(feature = "search")]
use crate::model::Role;
use crate::provider::{OptionValues, PROMPT_OPTIONS, PromptOption};
#[cfg(feature = "search")]
use crate::search::SearchPage;
use crate::store::UsagePage;
use conversations::{AllUnfinished, Deleted, Described, Found, New, NewFork, TagChange, Tags, Title};
pub(in crate::server) use events::Pieces;
use exchanges::Stopped;
use ingest::Ingested;
use messages::{Appended, Entries, Messages, NewSummary, Rewind};
use prompts::{Checked, PromptTools, Repaired, Shown, Targets};
use transfer::Import;

const DESCRIBED: &str = r#"{"conversation":"0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b","key":"chat-42","title":"Plans","created_at":"2026-11-22T09:00:00.000000Z","last_activity":"2026-11-22T09:00:00.000000Z","last_seq":1,"messages":0}"#;
const PAGE: &str = r#"{"items":[{"conversation":"0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b","key":"chat-42","title":"Plans","created_at":"2026-11-22T09:00:00.000000Z","last_activity":"2026-11-22T09:00:00.000000Z","last_seq":1,"messages":0}]}"#;
const APPENDED: &str = r#"{"conversation":"0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b","first_seq":1,"last_seq":1,"message_indexes":[0],"durable":true,"duplicate":false}"#;
const CHANGED: &str = r#"{"conversation":"0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b","first_seq":2,"last_seq":2,"message_indexes":[],"durable":true,"duplicate":false}"#;
const INGESTED: &str = r#"{"conversation":"0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b","first_seq":2,"last_seq":4,"message_indexes":[1],"durable":true,"duplicate":false,"finish_reason":"stop"}"#;
const MESSAGE: &str = r#"{"index":0,"state":"complete","first_seq":1,"last_seq":1,"chunk_indexes":[0],"role":"user","chunks":[{"type":"text","text":"hello"}],"created_at":"2026-11-22T09:00:00.000000Z"}"#;
const MESSAGES: &str = r#"{"messages":[{"index":0,"state":"complete","first_seq":1,"last_seq":1,"chunk_indexes":[0],"role":"user","chunks":[{"type":"text","text":"hello"}],"created_at":"2026-11-22T09:00:00.000000Z"}]}"#;
const ENTRIES: &str = r#"{"entries":[{"seq":1,"kind":"chunk","message_index":0,"chunk_index":0,"role":"user","chunk":{"type":"text","text":"hello"},"created_at":"2026-11-22T09:00:00.000000Z"}],"cursor":"1-0000000000100004"}"#;
const ANSWER: &str =
    r#""data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n""#;
const STOPPED: &str =
    r#"{"conversation":"0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b","stopped":[],"ingests":1,"responses":0,"elsewhere":[]}"#;
const EXCHANGE: &str = r#"{"exchange":"0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b","state":"complete","how":"continued","conversation":"0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5c","message":3,"status":200}"#;
#[cfg(feature = "search")]
const FOUND: &str = r#"{"hits":[{"conversation":"0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b","key":"chat-42","title":"Plans","found_in":"text","message_index":0,"seq":1,"role":"user","created_at":"2026-11-22T09:00:00.000000Z","excerpt":"hello world","pieces":[{"text":"hello","match":true},{"text":" world"}],"score":1.5}],"next":"1"}"#;
const USAGE: &str = r#"{"rows":[{"day":"2026-11-25","model":"m-1","answers":2,"uncounted":0,"errors":1,"input":1200,"cached":1000,"cache_written":0,"output":80,"reasoning":0}]}"#;
const FILE: &str =
    r#""{\"conversation\":\"chat-43\",\"role\":\"user\",\"chunks\":[{\"type\":\"text\",\"text\":\"hello\"}]}\n""#;
const IMPORTED: &str = r#"{"conversations":[{"source_id":"chat-43","conversation":"0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b","key":"chat-43","title":"hello","messages":1,"branches":0,"skipped":{}}],"sum":{"conversations":1,"failed":0,"messages":1,"added":1,"branches":0,"skipped":{}},"notes":[]}"#;
const REQUEST: &str = r#"{"messages":[{"role":"user","content":"hello"}]}"#;
const PROMPT: &str = r#"{"conversation":"0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b","request":{"messages":[{"role":"user","content":"hello"}]},"report":[]}"#;

/// A wire, or a wire and its dialect.
fn target(name: &'static str, about: &'static str) -> Parameter {
    let wires = "^(openai-chat|openai-responses|anthropic|gemini|bedrock-converse)(/[a-z0-9-]+)?$";
    query(name, json!({ "type": "string", "pattern": wires }), about)
}

fn aim() -> Parameter {
    target("for", "The target: a wire, or a wire and its dialect, as in openai-chat/mistral").required()
}

/// A seq, or a cursor.
fn since(about: &'static str) -> Parameter {
    query("since", json!({ "type": "string", "pattern": "^[0-9]{1,19}(-[0-9a-f]{16})?$" }), about)
}

fn expect() -> Parameter {
    let schema = json!({ "type": "string", "pattern": "^(new|[0-9]{1,19}(-[0-9a-f]{16})?)$" });
    query("expect", schema, "The last seq that the conversation must have, a cursor at its end, or new")
}

fn key() -> Parameter {
    idempotency_key("A repetition with the same key and content changes nothing and gets the first receipt")
}

fn chunk() -> Vec<Parameter> {
    vec![at_least("chunk", 0, "One chunk of the message; all of it by default")]
}

fn owner() -> Parameter {
    let schema = json!({ "type": "string", "minLength": 1 });
    query("owner", schema, "Whose; the key's own by default. To name another one needs the scope admin")
}

fn at_least(name: &'static str, least: u64, about: &'static str) -> Parameter {
    query(name, json!({ "type": "integer", "minimum": least }), about)
}

fn one_of(name: &'static str, words: &[&str], about: &'static str) -> Parameter {
    query(name, json!({ "type": "string", "enum": words }), about)
}

/// A day, or a time.
fn day() -> serde_json::Value {
    json!({ "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+(Z|[+-][0-9:]+))?$" })
}

/// The target, and the options of a prompt.
fn prompt() -> Vec<Parameter> {
    let parameter = |option: &PromptOption| match option.values {
        OptionValues::Text(_) => text(option.name, option.about),
        OptionValues::Number { least, .. } => at_least(option.name, least, option.about),
        OptionValues::Words(words) => {
            one_of(option.name, &words.iter().map(|word| word.name).collect::<Vec<_>>(), option.about)
        }
    };
    let at = at_least(parameters::AT, 1, "As it was at this seq: what would have been sent then");
    [aim(), at].into_iter().chain(PROMPT_OPTIONS.iter().map(parameter)).collect()
}

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/v1/conversations", Append, Store(conversations::create))
        .named("createNativeConversation", "Create a conversation without messages")
        .body(optional_json::<New>(r#"{"key":"chat-42","title":"Plans"}"#))
        .answers(json::<Described>(DESCRIBED))
        .refuses(&[409]),
    Route::get("/api/v1/conversations", Read, Store(conversations::list))
        .named("listNativeConversations", "List conversations, newest activity first unless `sort` says otherwise")
        .takes(|| {
            vec![
                number("limit", 1, 1_000, "The most conversations: 1 to 1,000; 50 by default"),
                query("after", json!({"type":"string","minLength":1}), "The `next` of the previous page"),
                text("title", "Only titles that hold this text"),
                text("tag", "Only those with this tag; may be given several times"),
                text("key_prefix", "Only those with a key that begins so"),
                text("forked_from", "Only those that were forked from the conversation of this id"),
                query(
                    "metadata",
                    json!({"type":"object","additionalProperties":true}),
                    "Only those whose metadata have these fields: `metadata[NAME]=VALUE`, a text, or another value's JSON",
                ),
                text("since", "Only those that were active last at this time or after it: RFC 3339, or a day"),
                text("until", "Only those that were active last before this time: RFC 3339, or a day"),
                one_of("sort", &ListSort::ALL.map(ListSort::as_str), "newest activity, oldest activity, or last created first"),
                owner(),
            ]
        })
        .answers(json::<ListPage>(PAGE)),
    Route::get("/api/v1/conversations/{conversation}", Read, Store(conversations::get))
        .named("getNativeConversation", "Describe a conversation")
        .answers(json::<Described>(DESCRIBED))
        .refuses(&[404]),
    Route::delete("/api/v1/conversations/{conversation}", Delete, Store(conversations::delete))
        .named("deleteNativeConversation", "Delete a conversation and erase it")
        .answers(json::<Deleted>(r#"{"conversation":"0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b","deleted":true}"#))
        .refuses(&[404]),
    Route::post("/api/v1/conversations/{conversation}/fork", Append, Store(conversations::fork))
        .named("forkConversation", "Create a conversation that shares the entries up to a seq")
        .body(optional_json::<NewFork>(r#"{"at_seq":1}"#))
        .answers(json::<Described>(DESCRIBED))
        .refuses(&[404, 409, 410]),
    Route::put("/api/v1/conversations/{conversation}/title", Append, Store(conversations::title))
        .named("setTitle", "Set the title; null derives it from the first user text again")
        .body(json::<Title>(r#"{"title":"Plans"}"#))
        .answers(json::<Receipt>(CHANGED))
        .refuses(&[404, 413]),
    Route::put("/api/v1/conversations/{conversation}/metadata", Append, Store(conversations::metadata))
        .named("setMetadata", "Replace the metadata: a JSON object up to 64 KiB")
        .body(json::<Object>(r#"{"project":7}"#))
        .answers(json::<Receipt>(CHANGED))
        .refuses(&[404, 413]),
    Route::post("/api/v1/conversations/{conversation}/tags", Append, Store(conversations::tags))
        .named("changeTags", "Remove tags, then add others")
        .body(json::<TagChange>(r#"{"add":["work"]}"#))
        .answers(json::<Tags>(r#"{"tags":["work"]}"#))
        .refuses(&[404, 413]),
    Route::post("/api/v1/conversations/{conversation}/messages", Append, Store(messages::append))
        .named(
            "appendMessages",
            "Append one message, an array of messages, one per line (application/x-ndjson), or an object with messages \
             and the title, tags and metadata that change with them: all or none",
        )
        .takes(|| {
            vec![
                expect(),
                one_of(
                    "durability",
                    &["durable", "buffered"],
                    "buffered: answered before it is on disk; a crash may lose the last 25 ms",
                ),
                key(),
                target(
                    "from",
                    "The body is a request of this wire, or the array of its messages: they are appended; nothing else of it is",
                ),
            ]
        })
        .body(json::<NewMessages>(r#"{"role":"user","chunks":[{"type":"text","text":"hello"}]}"#))
        .answers(json::<Appended>(APPENDED))
        .refuses(&[404, 409, 410, 412, 413, 422]),
    Route::get("/api/v1/conversations/{conversation}/messages", Read, Store(messages::list))
        .named("listMessages", "Read messages, in order")
        .takes(|| {
            vec![
                at_least("from", 0, "The first message index"),
                number("limit", 1, 1_000, "The most messages: 1 to 1,000; 100 by default"),
                number(
                    "newest",
                    1,
                    100,
                    "The newest messages, 1 to 100 of them, in place of from and limit; fewer if they are over 16 \
                     MiB",
                ),
            ]
        })
        .answers(json::<Messages>(MESSAGES))
        .refuses(&[404]),
    Route::get("/api/v1/conversations/{conversation}/messages/{message}", Read, Store(messages::get))
        .named("getMessage", "Read one message")
        .answers(json::<StoredMessage>(MESSAGE))
        .refuses(&[404]),
    Route::delete("/api/v1/conversations/{conversation}/messages/{message}", Delete, Store(messages::remove))
        .named("removeMessage", "Hide one message or chunk; the log keeps it until it is redacted")
        .takes(chunk)
        .answers(json::<Receipt>(CHANGED))
        .refuses(&[404, 409]),
    Route::post("/api/v1/conversations/{conversation}/messages/{message}/redact", Delete, Store(messages::redact))
        .named("redactMessage", "Erase the content of one message or chunk")
        .takes(chunk)
        .answers(json::<Redaction>(r#"{"seq":2,"summaries":[],"meta":[]}"#))
        .refuses(&[404, 409]),
    Route::post("/api/v1/conversations/{conversation}/rewind", Delete, Store(messages::rewind))
        .named("rewindConversation", "Hide every message from an index on")
        .body(json::<Rewind>(r#"{"to":0}"#))
        .answers(json::<Receipt>(CHANGED))
        .refuses(&[404]),
    Route::post("/api/v1/conversations/{conversation}/summaries", Append, Store(messages::summarize))
        .named("summarizeConversation", "Let prompts use a summary in place of messages")
        .body(json::<NewSummary>(r#"{"through":0,"text":"They greeted."}"#))
        .answers(json::<Receipt>(CHANGED))
        .refuses(&[404, 413]),
    Route::get("/api/v1/conversations/{conversation}/entries", Read, Store(messages::entries))
        .named("listEntries", "Read the log itself")
        .takes(|| {
            vec![
                since("Only entries after this seq"),
                number("limit", 1, 1_000, "The most entries: 1 to 1,000, the default"),
            ]
        })
        .answers(json::<Entries>(ENTRIES))
        .refuses(&[404, 410]),
    Route::get("/api/v1/conversations/{conversation}/events", Read, Stream(events::events))
        .named(
            "followConversation",
            "Follow the log: server-sent events, id = seq; the stored entries, then new ones as they are \
             written",
        )
        .takes(|| {
            vec![
                since("Only entries after this seq; 0 is the beginning"),
                header(
                    "Last-Event-ID",
                    json!({"type":"string"}),
                    "The last id that the client saw; it overrides since",
                ),
            ]
        })
        .answers(of::<Events>("text/event-stream", r#"{"id":"1","data":"{\"seq\":1}"}"#))
        .refuses(&[404, 410]),
    Route::post("/api/v1/conversations/{conversation}/ingest", Append, Stream(ingest::ingest))
        .named("ingestAnswer", "Store a provider's answer while it arrives: its own bytes, whole or streamed")
        .takes(|| {
            vec![
                target("from", "The wire of the answer, or the wire and its dialect").required(),
                text("provider", "The provider of the answer, if it is not the wire's vendor"),
                text("model", "The model, if the answer does not name it"),
                expect(),
                key(),
            ]
        })
        .body(of::<Bytes>("application/octet-stream", ANSWER))
        .answers(json::<Ingested>(INGESTED))
        .refuses(&[404, 408, 409, 410, 412, 413, 422]),
    Route::get("/api/v1/conversations/{conversation}/prompt", Read, Store(prompts::prompt))
        .named("getPrompt", "Render the conversation as a request that the target accepts, with the report")
        .takes(prompt)
        .answers(json::<Shown>(PROMPT))
        .refuses(&[404, 410, 413, 422]),
    Route::post("/api/v1/conversations/{conversation}/prompt", Read, Store(prompts::prompt))
        .named("renderPrompt", "As getPrompt, with tools to declare")
        .takes(prompt)
        .body(optional_json::<PromptTools>(r#"{"tools":[]}"#))
        .answers(json::<Shown>(PROMPT))
        .refuses(&[404, 410, 413, 422]),
    Route::get("/api/v1/conversations/{conversation}/next", Read, Store(prompts::next))
        .named("getNextStep", "What an agent must do now")
        .answers(json::<NextStep>(r#"{"step":"call_model"}"#))
        .refuses(&[404]),
    Route::post("/api/v1/conversations/{conversation}/stop", Append, Store(exchanges::stop))
        .named(
            "stopAnswer",
            "Stop the answers that are being written to the conversation, also through other servers of the store",
        )
        .answers(json::<Stopped>(STOPPED))
        .refuses(&[404]),
    Route::get("/api/v1/conversations/{conversation}/export", Read, Store(transfer::export))
        .named("exportConversation", "A conversation as a file, of this program's transcript or of another program's format")
        .takes(|| vec![one_of("format", &transfer::written(), "The format; transcript by default, which leaves nothing out")])
        .answers(of::<Bytes>("application/octet-stream", FILE))
        .refuses(&[404]),
    Route::post("/api/v1/import", Append, Store(transfer::import))
        .named("importConversations", "Import another program's export; a second run adds what is new")
        .takes(|| {
            vec![
                text("format", "The format, if it should not be recognised from the file"),
                one_of("branches", &["all", "current"], "all, the default: each branch that was not shown is a fork"),
                at_least("limit", 1, "The most conversations"),
            ]
        })
        .body(of::<Bytes>("application/octet-stream", FILE))
        .answers(json::<Import>(IMPORTED))
        .refuses(&[413]),
    Route::get("/api/v1/exchanges/{exchange}", Read, Store(exchanges::get))
        .named("getExchange", "What has become of a call of a model that passed, by its x-convo-exchange")
        .answers(json::<Exchange>(EXCHANGE))
        .refuses(&[404]),
    Route::get("/api/v1/exchanges/{exchange}/request", Read, Store(exchanges::request))
        .named("getExchangeRequest", "The request that its answer answers, byte for byte as the client sent it")
        .answers(json::<Object>(r#"{"model":"m-1","messages":[{"role":"user","content":"hello"}]}"#))
        .refuses(&[404]),
    Route::get("/api/v1/find", Read, Store(conversations::find))
        .named(
            "findItem",
            "Find a provider's item id in all conversations of the key's owner; reads an index for each \
             conversation of the store",
        )
        .takes(|| vec![text("item", "The item id").required()])
        .answers(json::<Found>(r#"{"items":[]}"#)),
    #[cfg(feature = "search")]
    Route::get("/api/v1/search", Read, Store(search::get))
        .named("searchConversations", "Find the messages and titles that have all of the words, the best first")
        .takes(|| {
            vec![
                text("q", "The words, with whatever endings; in double quotes as they are, one after the other")
                    .required(),
                query("in", json!({ "type": "string" }), "Where: texts (the default), calls, results, with commas"),
                text("conversation", "Only in this conversation"),
                text("tag", "Only in conversations with this tag; given twice, with both"),
                one_of("role", &Role::ALL.map(Role::as_str), "Only what somebody of this role said"),
                query("since", day(), "Only what was said from this day, UTC, or time on"),
                query("until", day(), "Only what was said before this day or time"),
                number("limit", 1, 100, "The most hits: 1 to 100; 20 by default"),
                query(
                    "after",
                    json!({ "type": "string", "pattern": "^[0-9]{1,5}$" }),
                    "The `next` of the previous page",
                ),
                owner(),
            ]
        })
        .answers(json::<SearchPage>(FOUND))
        .refuses(&[413]),
    Route::get("/api/v1/usage", Read, Store(usage::get))
        .named("getUsage", "Count the stored answers, their tokens, and errors, page by page")
        .takes(|| {
            vec![
                query(
                    "by",
                    json!({ "type": "string" }),
                    "What is counted apart: day, model, conversation, error, with commas",
                ),
                query("since", day(), "Only answers from this day, UTC, or time on"),
                query("until", day(), "Only answers before this day or time"),
                text("tag", "Only in conversations with this tag; given twice, with both"),
                query("after", json!({"type":"string","minLength":1}), "The `next` of the previous page"),
                owner(),
            ]
        })
        .answers(json::<UsagePage>(USAGE)),
    Route::get("/api/v1/unfinished", Read, Store(conversations::unfinished))
        .named("listUnfinished", "Messages that are being written, or were interrupted")
        .answers(json::<AllUnfinished>(r#"{"messages":[]}"#)),
    Route::get("/api/v1/targets", Read, Store(prompts::targets))
        .named("listTargets", "The wires and dialects that for and from may name")
        .answers(json::<Targets>(r#"{"targets":["openai-chat","anthropic"]}"#)),
    Route::post("/api/v1/check", Read, Store(prompts::check))
        .named("checkRequest", "Check whether the target accepts a request")
        .takes(|| vec![aim()])
        .body(json::<Request>(REQUEST))
        .answers(json::<Checked>(r#"{"accepted":true,"findings":[]}"#)),
    Route::post("/api/v1/repair", Read, Store(prompts::repair))
        .named("repairRequest", "Turn a refused request into one that the target accepts")
        .takes(|| {
            let model = text("model", "The model's name, for a request of another wire");
            vec![aim(), target("from", "The wire of the request; by default that of `for`"), model]
        })
        .body(json::<Request>(REQUEST))
        .answers(json::<Repaired>(r#"{"request":{"messages":[{"role":"user","content":"hello"}]},"report":[]}"#))
        .refuses(&[413, 422]),
    Route::get("/api/v1/admin/health", Admin, Store(admin::health))
        .named("getHealth", "What prevents the store from being written, and what was lost")
        .answers(json::<Health>(r#"{"watermark_lost":false,"damage":[],"disk_full":false,"closed":false}"#)),
    Route::post("/api/v1/admin/verify", Admin, Store(admin::verify))
        .named("verifyStore", "Check all that can be derived; takes as long as reading the store")
        .answers(json::<Verification>(r#"{"conversations":1,"entries":1,"problems":[]}"#)),
    Route::get("/api/v1/admin/backup", Admin, Stream(admin::backup))
        .named("backupStore", "A backup of everything that is durable, as a file")
        .answers(of::<Bytes>("application/octet-stream", "\"\"")),
];
