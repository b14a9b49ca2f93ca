//! Answers that a client gets later, by the id of their response: in the background, or after a cut.

use serde_json::{Value, json};

use super::answers::Wire;
use super::{Passed, Recorder, Reply, passed, said};

const WIRE: Wire = Wire::Responses;

impl Recorder {
    /// Gets a response, as it is at the upstream.
    fn fetch(&self, path: &str, reply: Reply) -> Passed {
        let method = if path.ends_with("/cancel") { "POST" } else { "GET" };
        let mut open = self.begin_with(method, self.client(), path, &[], b"", reply);
        let is_whole = open.end();
        passed(open, is_whole)
    }

    /// As [`Recorder::fetch`], until what comes of it is stored. It has no line in the book.
    fn fetch_and_store(&self, path: &str, reply: Reply) {
        let fetched = self.fetch(path, reply);
        let begun = std::time::Instant::now();
        while self.client().get(&format!("/api/v1/exchanges/{}", fetched.exchange)).status != 404 {
            assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{}", self.running.log());
            std::thread::yield_now();
        }
    }

    fn shown(&self, settled: &Value) -> Vec<String> {
        said::by_messages(&self.messages(settled["conversation"].as_str().unwrap()))
    }
}

/// The response with a text, in a state.
fn response(text: &str, state: &str) -> Value {
    let mut response = WIRE.whole(&WIRE.text(text, 1), 1);
    response["id"] = json!("resp_later");
    response["status"] = json!(state);
    if !matches!(state, "completed" | "cancelled") {
        response["output"] = json!([]);
    }
    response
}

fn ask(recorder: &Recorder, body: &Value) -> Value {
    let asked = recorder.ask("/v1/responses", &[("x-session-id", "s")], body, Reply::json(&response("", "queued")));
    recorder.settled(&asked.exchange)
}

fn hi() -> Value {
    json!({ "model": "m", "background": true, "input": [{ "role": "user", "content": "hi" }] })
}

/// What has become of a call, once its answer is not awaited any more.
fn ended(recorder: &Recorder, settled: &Value) -> Value {
    loop {
        let found = recorder.settled(settled["exchange"].as_str().unwrap());
        if found["state"] != settled["state"] {
            return found;
        }
        std::thread::yield_now();
    }
}

#[test]
fn an_answer_in_the_background_is_stored_once_when_it_is_fetched() {
    let mut recorder = Recorder::with("sled:DIR/store?cache_mb=1", "", &[]);
    let queued = ask(&recorder, &hi());
    assert_eq!(queued["state"], "queued", "{queued}");
    let answers = |recorder: &Recorder| recorder.client().get("/api/v1/usage").json()["rows"].clone();
    assert_eq!(answers(&recorder), json!([]));
    for state in ["queued", "in_progress"] {
        recorder.fetch("/v1/responses/resp_later", Reply::json(&response("", state)));
        recorder.fetch("/v1/responses/resp_other", Reply::json(&response("not it", "completed")));
    }
    recorder.kill_and_restart();
    assert_eq!(recorder.shown(&queued), ["user: hi"]);
    let whole = response("later", "completed");
    let got = recorder.fetch("/v1/responses/resp_later", Reply::json(&whole));
    assert_eq!(serde_json::from_slice::<Value>(&got.body).unwrap(), whole);
    let complete = ended(&recorder, &queued);
    assert_eq!((&complete["state"], &complete["conversation"]), (&json!("complete"), &queued["conversation"]));
    // Who gets it again, or all at one time, changes nothing.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| recorder.fetch("/v1/responses/resp_later", Reply::json(&whole)));
        }
    });
    let rows = answers(&recorder);
    assert_eq!(rows[0]["answers"].as_u64().unwrap() + rows[0]["uncounted"].as_u64().unwrap(), 1, "{rows}");
    // The next turn says the answer again: it is the one that is stored, with what surrounds it.
    let input =
        json!([{ "role": "user", "content": "hi" }, WIRE.text("later", 1)[0], { "role": "user", "content": "on" }]);
    let next = ask(&recorder, &json!({ "model": "m", "background": true, "input": input }));
    assert_eq!((&next["how"], &next["conversation"]), (&json!("continued"), &queued["conversation"]));
    assert_eq!(recorder.shown(&next), ["user: hi", "assistant: later", "user: on"]);
    let (sent, _) = recorder.request(queued["exchange"].as_str().unwrap());
    assert_eq!(sent, hi().to_string().into_bytes());
}

#[test]
fn the_end_of_its_stream_and_its_cancellation_end_it() {
    let tail = "/v1/responses/resp_later?stream=true&starting_after=3";
    for (path, state, ends_as) in
        [(tail, "completed", "complete"), ("/v1/responses/resp_later/cancel", "cancelled", "cut")]
    {
        let recorder = Recorder::open();
        let queued = ask(&recorder, &hi());
        let response = response("as far as it came", state);
        let last = json!({ "type": "response.completed", "response": response });
        let delta = json!({ "type": "response.output_text.delta", "item_id": "msg_end_1", "output_index": 0,
            "content_index": 0, "delta": " came" });
        let event = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
        let reply = if path == tail { Reply::of_events(&[event(delta), event(last)]) } else { Reply::json(&response) };
        recorder.fetch(path, reply.clone());
        let found = ended(&recorder, &queued);
        assert_eq!(found["state"], ends_as, "{path}: {found}");
        recorder.fetch_and_store(path, reply);
        assert_eq!(recorder.shown(&queued), ["user: hi", "assistant: as far as it came"], "{path}");
        assert_eq!(recorder.settled(found["exchange"].as_str().unwrap()), found);
    }
}

#[test]
fn an_answer_that_was_cut_is_completed_by_what_is_fetched() {
    let events = WIRE.events(&WIRE.text("the whole answer", 1), 1);
    // After what came is stored, and at once.
    for at_once in [false, true] {
        // Where the record is required, what is fetched does not wait 5 ms: it is looked for before the call has ended.
        let recorder = Recorder::with("memory:", if at_once { "record = \"required\"\n" } else { "" }, &[]);
        let body = json!({ "model": "m", "stream": true, "input": [{ "role": "user", "content": "hi" }] });
        let cut = events.iter().position(|event| event.contains("output_text.delta")).unwrap() + 1;
        let asked = recorder.ask("/v1/responses", &[("x-session-id", "s")], &body, Reply::cut_after(&events, cut));
        if !at_once {
            assert_eq!(recorder.settled(&asked.exchange)["state"], "cut");
        }
        let whole = WIRE.whole(&WIRE.text("the whole answer", 1), 1);
        let path = format!("/v1/responses/{}", whole["id"].as_str().unwrap());
        recorder.fetch_and_store(&path, Reply::json(&whole));
        let settled = recorder.settled(&asked.exchange);
        assert_eq!(settled["state"], "complete", "{at_once}");
        assert_eq!(recorder.shown(&settled), ["user: hi", "assistant: the whole answer"]);
    }
}
