//! Stateful Responses over any model: OpenAI's Responses API, whose state is in this store, and whose model is at any upstream.
//!
//! In the order of a request: `asked` (what it says), `models` (where its model is, and the upstream's path), `parameters` and
//! `tools` (what the model's wire takes of it), `place` (its history, and where it is stored; `reach` has the stores,
//! `referenced` the items of earlier answers), `run` (the answer, stored while it comes). Out again: `following` (the log as it
//! grows), `encoder` (entries to events), `item`, `words` (OpenAI's codes of errors). `about` is what the log keeps of a
//! request, and what an id says, `sealed` what a client keeps for this server, `socket` the same by WebSocket, `compact` a
//! history as its summary.
//!
//! An answer goes to the log, and everybody reads it there: the client that asked, one that comes back, one at another server.

mod about;
mod asked;
mod calls;
mod compact;
mod encoder;
mod following;
mod item;
mod models;
mod parameters;
mod place;
mod reach;
mod referenced;
mod run;
mod sealed;
pub(crate) mod socket;
mod tools;
mod words;

use serde_json::json;

use super::app::Handler::{Store as Stored, Stream};
use super::keys::Scope::{Append, Delete, Read};
use super::route::{Parameter, Route, header, idempotency_key, json, query, text};
use super::schemas::Object;
use calls::{Counted, Deleted};

const RESPONSE: &str = r#"{"id":"resp_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b0000000000010000","object":"response","created_at":1773531716,"status":"completed","model":"qwen3","output":[{"id":"msg_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b0000000000010000","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}]}]}"#;
const COMPACTED: &str = r#"{"id":"resp_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b0000000000010000","object":"response.compaction","created_at":1773531716,"output":[{"id":"cmp_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b0000000000010000","type":"compaction","encrypted_content":"Aa"}]}"#;
const ITEMS: &str = r#"{"object":"list","data":[{"id":"msg_1","type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}],"first_id":"msg_1","last_id":"msg_1","has_more":false}"#;

/// The path that WebSockets open.
pub(crate) const SOCKET: &str = "/v1/responses";

fn includes() -> Parameter {
    let schema = json!({ "type": "array", "items": { "type": "string" } });
    query("include[]", schema, "Accepted; what is stored is returned without it")
}

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/v1/responses", Append, Stream(calls::create))
        .named("createResponse", "Ask a model at an upstream, and store what is said")
        .takes(|| {
            let hosted = json!({ "type": "string", "enum": ["refuse", "drop"], "default": "refuse" });
            vec![
                idempotency_key("A repetition with the same key follows the response that the first one began"),
                header(
                    "x-convo-hosted-tools",
                    hosted,
                    "Whether tools that only some providers run are left out elsewhere",
                ),
            ]
        })
        .body(json::<Object>(r#"{"model":"ollama/qwen3","input":"hello"}"#))
        .answers(json::<Object>(RESPONSE))
        .refuses(&[404, 408, 409, 413, 422, 502, 504]),
    Route::get("/v1/responses/{response}", Read, Stream(calls::get))
        .named("getResponse", "Read a response, or follow it: `stream=true&starting_after=N`")
        .takes(|| {
            vec![
                query("stream", json!({ "type": "boolean" }), "Whether its events are sent, those to come too"),
                query(
                    "starting_after",
                    json!({ "type": "integer", "minimum": 0 }),
                    "The number of the last event that is known",
                ),
                includes(),
            ]
        })
        .answers(json::<Object>(RESPONSE))
        .refuses(&[404]),
    Route::delete("/v1/responses/{response}", Delete, Stored(calls::delete))
        .named("deleteResponse", "Delete a response; its content is erased once nothing goes on from it")
        .answers(json::<Deleted>(
            r#"{"id":"resp_0199a1b27c3d7e4f8a9b0c1d2e3f4a5b0000000000010000","object":"response","deleted":true}"#,
        ))
        .refuses(&[404]),
    Route::post("/v1/responses/{response}/cancel", Append, Stream(calls::cancel))
        .named("cancelResponse", "End a response that is being generated; one that has ended is returned")
        .answers(json::<Object>(RESPONSE))
        .refuses(&[404]),
    Route::get("/v1/responses/{response}/input_items", Read, Stored(calls::input_items))
        .named("listResponseInputItems", "Read the items that a request brought")
        .takes(|| {
            vec![
                query(
                    "limit",
                    json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 20 }),
                    "The most items",
                ),
                query(
                    "order",
                    json!({ "type": "string", "enum": ["asc", "desc"], "default": "desc" }),
                    "desc: newest first",
                ),
                text("after", "The id of the last item that is known"),
                includes(),
            ]
        })
        .answers(json::<Object>(ITEMS))
        .refuses(&[404]),
    Route::post("/v1/responses/input_tokens", Read, Stored(calls::input_tokens))
        .named("countResponseInputTokens", "How many tokens an input has, with its history")
        .body(json::<Object>(r#"{"model":"ollama/qwen3","input":"hello"}"#))
        .answers(json::<Counted>(r#"{"object":"response.input_tokens","input_tokens":9}"#))
        .refuses(&[404, 409, 413, 422]),
    Route::post("/v1/responses/compact", Append, Stream(compact::compact))
        .named(
            "compactResponse",
            "A history as a summary that its model writes, in an item that only this server reads",
        )
        .body(json::<Object>(r#"{"model":"ollama/qwen3","input":"hello"}"#))
        .answers(json::<Object>(COMPACTED))
        .refuses(&[404, 408, 409, 413, 422, 502, 504]),
];
