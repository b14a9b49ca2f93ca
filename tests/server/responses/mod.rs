//! Responses over any model: what a client of OpenAI's Responses API is promised, whatever wire its model speaks.

mod recorded;
mod socket;

use std::path::Path;

use serde_json::{Value, json};

use crate::common::http::{Client, Event};
use crate::recorded::answers::Wire;
use crate::recorded::{Recorder, Reply};

const WIRES: [(Wire, &str); 4] = [
    (Wire::Chat, "openai-chat"),
    (Wire::Anthropic, "anthropic"),
    (Wire::Responses, "openai-responses"),
    (Wire::Gemini, "gemini"),
];
const DURABLE: &str = "sled:DIR/store?cache_mb=1";

/// A server whose one upstream speaks a wire.
fn server(url: &str, wire: &str, owners: &[&str]) -> Recorder {
    Recorder::with(url, &format!("wire = \"{wire}\"\ndefault = true\n"), owners)
}

fn says(wire: Wire, text: &str) -> Reply {
    Reply::of_events(&wire.events(&wire.text(text, 1), 1))
}

fn request(input: Value, more: Value) -> Value {
    let mut request = json!({ "model": "m", "input": input });
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    request
}

fn create(client: &Client, input: Value, more: Value) -> Value {
    client.post("/v1/responses", &request(input, more)).ok()
}

fn streamed(client: &Client, input: Value, more: Value) -> Vec<Event> {
    let mut body = request(input, more);
    body["stream"] = true.into();
    rest(client.stream("POST", "/v1/responses", &[], body.to_string().as_bytes()))
}

fn rest(mut events: crate::common::http::Events) -> Vec<Event> {
    std::iter::from_fn(|| events.next()).collect()
}

fn followed(client: &Client, id: &str, after: Option<u64>) -> Vec<Event> {
    let after = after.map(|after| format!("&starting_after={after}")).unwrap_or_default();
    rest(client.follow(&format!("/v1/responses/{id}?stream=true{after}"), &[]))
}

fn path(response: &Value) -> String {
    format!("/v1/responses/{}", response["id"].as_str().unwrap())
}

fn text(response: &Value) -> String {
    let parts = response["output"].as_array().unwrap().iter().filter(|item| item["type"] == "message");
    let parts = parts.flat_map(|item| item["content"].as_array().unwrap().clone());
    parts.map(|part| part["text"].as_str().unwrap().to_owned()).collect()
}

/// What the upstream was sent, as one text.
fn sent(server: &Recorder) -> String {
    String::from_utf8(server.asked().1).unwrap()
}

/// Events that a client may see of one response: their numbers have no gap, and one ends it.
fn are_whole(events: &[Event]) {
    let numbers: Vec<u64> = events.iter().map(|event| event.data["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let ends = ["response.completed", "response.incomplete", "response.failed"];
    let is_end = |event: &Event| ends.contains(&event.name.as_str());
    assert_eq!(events.iter().filter(|event| is_end(event)).count(), 1);
    assert!(is_end(events.last().unwrap()));
    assert!(events.iter().all(|event| event.data["type"] == *event.name));
    let last = &events.last().unwrap().data["response"];
    assert_eq!(&recorded::accumulated(events), last["output"].as_array().unwrap());
}

/// What is in files below a directory.
fn is_in_files(dir: &Path, word: &str) -> bool {
    std::fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => is_in_files(&path, word),
            false => std::fs::read(path).unwrap().windows(word.len()).any(|window| window == word.as_bytes()),
        }
    })
}

#[test]
fn a_response_is_the_same_streamed_whole_and_read_again() {
    for (wire, name) in WIRES {
        let server = server("memory:", name, &[]);
        let client = server.client();
        server.answers(says(wire, "Hello there, you."));
        let events = streamed(client, json!("hi"), json!({}));
        are_whole(&events);
        let last = &events.last().unwrap().data["response"];
        assert_eq!((last["status"].as_str(), &*text(last)), (Some("completed"), "Hello there, you."), "{name}");
        let deltas = events.iter().filter(|event| event.name == "response.output_text.delta");
        let deltas: String = deltas.map(|event| event.data["delta"].as_str().unwrap().to_owned()).collect();
        assert_eq!(deltas, "Hello there, you.");
        assert_eq!(client.get(&path(last)).ok(), *last, "{name}");
        let id = last["id"].as_str().unwrap();
        for at in 0..=events.len() {
            let known = (at as u64).checked_sub(1);
            assert_eq!(followed(client, id, known), events[at..], "{name}, after {known:?}");
        }
        server.answers(says(wire, "Hello there, you."));
        let whole = create(client, json!("hi"), json!({}));
        assert_eq!((whole["output"][0]["content"].clone(), whole["usage"].clone()), {
            (last["output"][0]["content"].clone(), last["usage"].clone())
        });
    }
}

#[test]
fn thoughts_calls_and_their_outputs_go_to_every_wire() {
    let tools = json!([{ "type": "function", "name": "clock", "parameters": { "type": "object", "properties": {} } }]);
    let call = |wire: Wire| match wire {
        Wire::Chat => vec![json!({ "role": "assistant", "reasoning_content": "Hm.", "content": null, "tool_calls": [
            { "id": "call_1", "type": "function", "function": { "name": "clock", "arguments": "{\"at\":1}" } }] })],
        Wire::Anthropic => vec![
            json!({ "type": "thinking", "thinking": "Hm.", "signature": "EqQB" }),
            json!({ "type": "tool_use", "id": "toolu_1", "name": "clock", "input": { "at": 1 } }),
        ],
        Wire::Responses => vec![json!({ "type": "function_call", "id": "fc_up", "call_id": "call_1", "name": "clock",
            "arguments": "{\"at\":1}", "status": "completed" })],
        Wire::Gemini => {
            vec![json!({ "functionCall": { "name": "clock", "args": { "at": 1 } }, "thoughtSignature": "QUJD" })]
        }
    };
    for (wire, name) in WIRES {
        let server = server("memory:", name, &[]);
        let client = server.client();
        server.answers(Reply::of_events(&wire.events(&call(wire), 1)));
        let events = streamed(client, json!("What time is it?"), json!({ "tools": tools }));
        are_whole(&events);
        sent(&server);
        let first = events.last().unwrap().data["response"].clone();
        let output = first["output"].as_array().unwrap();
        let called = output.iter().find(|item| item["type"] == "function_call").unwrap();
        assert_eq!((&called["name"], &called["status"]), (&json!("clock"), &json!("completed")), "{name}");
        let arguments: Value = serde_json::from_str(called["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(arguments, json!({ "at": 1 }));
        let is_thought = |item: &&Value| item["type"] == "reasoning" && item["summary"][0]["text"] == "Hm.";
        assert_eq!(output.iter().any(|item| is_thought(&item)), matches!(wire, Wire::Chat | Wire::Anthropic));

        // What is missing is refused before the upstream is asked; so is what nobody asked for.
        let previous = json!({ "previous_response_id": first["id"], "tools": tools });
        let refused = client.post("/v1/responses", &request(json!("And?"), previous.clone()));
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains("No tool output found for function call"), "{}", refused.text());
        let output = |id: &Value| json!([{ "type": "function_call_output", "call_id": id, "output": "10:34" }]);
        let refused = client.post("/v1/responses", &request(output(&json!("call_no")), previous.clone()));
        assert!(refused.status == 400 && refused.text().contains("No tool call found"), "{}", refused.text());

        server.answers(says(wire, "It is 10:34."));
        let second = create(client, output(&called["call_id"]), previous);
        assert_eq!(text(&second), "It is 10:34.");
        let upstream = sent(&server);
        for word in ["What time is it?", "clock", "10:34"] {
            assert!(upstream.contains(word), "{name}: {word} is missing in {upstream}");
        }
        let signature = match wire {
            Wire::Anthropic => "EqQB",
            Wire::Gemini => "QUJD",
            Wire::Chat | Wire::Responses => "",
        };
        assert!(upstream.contains(signature), "{name}: {upstream}");
    }
}

#[test]
fn each_response_is_a_checkpoint() {
    let server = server("memory:", "openai-chat", &[]);
    let client = server.client();
    let say = |text: &str| server.answers(says(Wire::Chat, text));
    say("one");
    let first = create(client, json!("1"), json!({ "instructions": "Be brief." }));
    assert!(sent(&server).contains("Be brief."));
    say("two");
    let second = create(client, json!("2"), json!({ "previous_response_id": first["id"] }));
    let history = sent(&server);
    assert!(history.contains("one") && history.contains("\"2\"") && !history.contains("Be brief."), "{history}");
    // The first one has been gone on from: this is another branch.
    say("three");
    let third = create(client, json!("3"), json!({ "previous_response_id": first["id"] }));
    let history = sent(&server);
    assert!(history.contains("one") && !history.contains("two"), "{history}");
    let conversations = server.conversations();
    assert_eq!(conversations.len(), 2, "{conversations:?}");
    for (response, said) in [(&first, "one"), (&second, "two"), (&third, "three")] {
        assert_eq!(text(&client.get(&path(response)).ok()), said);
    }
    let items = client.get(&format!("{}/input_items", path(&third))).ok();
    assert_eq!((items["data"].as_array().unwrap().len(), &items["data"][0]["content"][0]["text"]), (1, &json!("3")));

    // What was deleted is gone, and what goes on from it is not.
    assert_eq!(client.delete(&path(&first)).ok()["deleted"], true);
    assert_eq!(client.get(&path(&first)).status, 404);
    let again = client.post("/v1/responses", &request(json!("4"), json!({ "previous_response_id": first["id"] })));
    assert_eq!(again.code(400), "previous_response_not_found");
    say("four");
    let fourth = create(client, json!("4"), json!({ "previous_response_id": second["id"] }));
    assert!(sent(&server).contains("one"));
    for response in [&second, &third, &fourth] {
        client.delete(&path(response)).ok();
    }
    assert_eq!(server.conversations().len(), 0, "nothing goes on from any of them");
    for id in ["resp_none", first["id"].as_str().unwrap()] {
        assert_eq!(client.get(&format!("/v1/responses/{id}")).status, 404);
        assert_eq!(client.delete(&format!("/v1/responses/{id}")).status, 404);
        assert_eq!(client.post(&format!("/v1/responses/{id}/cancel"), &json!({})).status, 404);
        assert_eq!(client.get(&format!("/v1/responses/{id}/input_items")).status, 404);
    }
}

/// Nearly every server of models speaks Chat Completions.
#[test]
fn an_upstream_of_which_nothing_is_said_is_asked_for_a_chat() {
    let server = Recorder::with("memory:", "default = true\n", &[]);
    server.answers(says(Wire::Chat, "yes"));
    assert_eq!(text(&create(server.client(), json!("go"), json!({}))), "yes");
    assert!(server.asked().0.starts_with("post /v1/chat/completions "));
}

#[test]
fn tools_are_stored_once_and_repeated_each_time() {
    let server = server("memory:", "openai-chat", &[]);
    let client = server.client();
    let tool = |name: &str| {
        json!([{ "type": "function", "name": name, "description": "what it does ".repeat(1_000),
            "parameters": { "type": "object", "properties": {} }, "strict": false }])
    };
    let mut last = Value::Null;
    let mut all = Vec::new();
    for turn in 0..6 {
        let tools = tool(if turn < 4 { "one" } else { "two" });
        server.answers(says(Wire::Chat, "yes"));
        last = create(client, json!("go"), json!({ "tools": tools, "previous_response_id": last["id"] }));
        assert_eq!(last["tools"], tools);
        all.push((last.clone(), tools));
    }
    for (response, tools) in &all {
        let read = client.get(&path(response)).ok();
        assert_eq!((&read, &read["tools"]), (response, tools));
    }
    let conversation = &server.conversations()[0]["conversation"];
    let stored = server.messages(conversation.as_str().unwrap());
    let bytes: usize = stored.iter().map(|message| message.to_string().len()).sum();
    assert!((26_000..40_000).contains(&bytes), "two of them: {bytes}");
    // What is erased there is gone everywhere.
    let message = format!("/api/v1/conversations/{}/messages/1", conversation.as_str().unwrap());
    client.post(&format!("{message}/redact"), &json!({})).ok();
    assert_eq!(client.get(&path(&all[0].0)).status, 404);
    assert_eq!(client.get(&path(&all[1].0)).ok()["tools"], json!([]));
}

#[test]
fn a_conversation_has_the_items_of_its_responses() {
    let server = server("memory:", "openai-chat", &[]);
    let client = server.client();
    let conversation =
        client.post("/v1/conversations", &json!({ "items": [{ "role": "user", "content": "zero" }] })).ok();
    let named = json!({ "conversation": conversation["id"] });
    server.answers(says(Wire::Chat, "one"));
    let first = create(client, json!("1"), named.clone());
    assert!(sent(&server).contains("zero"));
    assert_eq!(first["conversation"], json!({ "id": conversation["id"] }));
    let items = client.get(&format!("/v1/conversations/{}/items?order=asc", conversation["id"].as_str().unwrap())).ok();
    let items = items["data"].as_array().unwrap();
    assert_eq!(items.len(), 3);
    assert_eq!(items[2], first["output"][0]);
    let both = json!({ "conversation": conversation["id"], "previous_response_id": first["id"] });
    assert_eq!(client.post("/v1/responses", &request(json!("2"), both)).status, 400);
    // While one answers, no other does.
    server.answers(Reply::cut_after(&Wire::Chat.events(&Wire::Chat.text("slow", 1), 1), 1).wait(1));
    let slow = json!({ "conversation": conversation["id"], "background": true });
    let slow = create(client, json!("2"), slow);
    let locked = client.post("/v1/responses", &request(json!("3"), named));
    assert_eq!(locked.code(409), "conversation_locked");
    assert_eq!(client.post(&format!("{}/cancel", path(&slow)), &json!({})).ok()["status"], "cancelled");
    let none = client.post("/v1/responses", &request(json!("1"), json!({ "conversation": "conv_none" })));
    assert_eq!(none.status, 404);
}

#[test]
fn what_is_not_stored_is_nowhere() {
    let server = server(DURABLE, "anthropic", &[]);
    let client = server.client();
    let thought = [
        json!({ "type": "thinking", "thinking": "canary-thought", "signature": "canarysignature" }),
        json!({ "type": "text", "text": "canary-answer" }),
    ];
    server.answers(Reply::of_events(&Wire::Anthropic.events(&thought, 1)));
    let unstored = json!({ "store": false, "include": ["reasoning.encrypted_content"] });
    let first = create(client, json!("canary-question"), unstored.clone());
    sent(&server);
    assert_eq!(client.get(&path(&first)).status, 404);
    let again = json!({ "previous_response_id": first["id"] });
    assert_eq!(client.post("/v1/responses", &request(json!("2"), again)).code(400), "previous_response_not_found");
    assert!(server.conversations().is_empty());
    assert!(!is_in_files(server.running.dir.path(), "canary"), "{}", server.running.log());
    // The client keeps the reasoning, and gives it back.
    let mut input = vec![json!({ "role": "user", "content": "canary-question" })];
    input.extend(first["output"].as_array().unwrap().clone());
    input.push(json!({ "role": "user", "content": "and?" }));
    let mut forged = input.clone();
    let sealed = forged[1]["encrypted_content"].as_str().unwrap().to_owned();
    let changed = sealed.char_indices().map(|(at, digit)| if (60..64).contains(&at) { 'A' } else { digit });
    forged[1]["encrypted_content"] = changed.collect::<String>().into();
    for (input, is_sent) in [(input, true), (forged, false)] {
        server.answers(says(Wire::Anthropic, "done"));
        assert_eq!(text(&create(client, input.into(), unstored.clone())), "done");
        assert_eq!(sent(&server).contains("canarysignature"), is_sent);
    }
    let refused = json!({ "store": false, "background": true });
    assert_eq!(client.post("/v1/responses", &request(json!("x"), refused)).status, 400);
}

#[test]
fn a_response_goes_on_in_the_background() {
    let server = server(DURABLE, "openai-chat", &[]);
    let client = server.client();
    let events = Wire::Chat.events(&Wire::Chat.text("one two three", 1), 1);
    let half = events.len() / 2;
    let slow = |round: usize| {
        let begin = Reply::cut_after(&events, half).wait(round);
        events[half..].iter().fold(begin, |reply, event| reply.then(event)).end()
    };
    server.answers(slow(1));
    let begun = create(client, json!("go"), json!({ "background": true }));
    assert!(["queued", "in_progress"].contains(&begun["status"].as_str().unwrap()), "{begun}");
    let other = client.clone();
    let id = begun["id"].as_str().unwrap().to_owned();
    let following = std::thread::spawn(move || followed(&other, &id, None));
    server.go_on();
    let events_seen = following.join().unwrap();
    are_whole(&events_seen);
    assert_eq!(events_seen[1].name, "response.queued");
    let done = client.get(&path(&begun)).ok();
    assert_eq!((done["status"].as_str(), &*text(&done)), (Some("completed"), "one two three"));

    server.answers(slow(9));
    let begun = create(client, json!("go"), json!({ "background": true }));
    let cancelled = client.post(&format!("{}/cancel", path(&begun)), &json!({})).ok();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(client.post(&format!("{}/cancel", path(&begun)), &json!({})).ok(), cancelled);
    assert_eq!(client.post(&format!("{}/cancel", path(&done)), &json!({})).ok(), done);

    // In OpenAI's words, with the upstream's own beside them.
    for (status, said, code, word) in [
        (401, json!({ "message": "no such key", "code": "invalid_api_key" }), "server_error", "invalid_api_key"),
        (429, json!({ "message": "no such key" }), "rate_limit_exceeded", "429"),
        (
            400,
            json!({ "message": "no such key", "type": "invalid_request_error" }),
            "invalid_prompt",
            "invalid_request_error",
        ),
    ] {
        server.answers(Reply::error(status, &json!({ "error": said })));
        let begun = create(client, json!("go"), json!({ "background": true }));
        let failed = followed(client, begun["id"].as_str().unwrap(), None).pop().unwrap().data["response"].clone();
        assert_eq!(failed["status"], "failed");
        assert!(failed["error"]["message"].as_str().unwrap().contains("no such key"), "{failed}");
        assert_eq!(
            (failed["error"]["code"].as_str(), failed["error"]["upstream_code"].as_str()),
            (Some(code), Some(word))
        );
    }
}

#[test]
fn a_key_that_an_upstream_repeats_is_neither_stored_nor_shown() {
    const KEY: &str = "sk-canary-0123456789";
    let server = server("memory:", "openai-chat", &[]);
    let client = server.client();
    let error = json!({ "error": { "message": format!("bad key: Bearer {KEY}") } });
    for more in [json!({}), json!({ "background": true }), json!({ "stream": true })] {
        for reply in [Reply::error(401, &error), Reply::of_events(&[format!("data: {error}\n\n")])] {
            server.answers(reply);
            let body = request(json!("go"), more.clone()).to_string();
            let answer = client.send("POST", "/v1/responses", &[("x-api-key", KEY)], body.as_bytes());
            let mut shown = answer.text();
            if more.get("background").is_some() {
                let id = answer.json()["id"].as_str().unwrap().to_owned();
                shown = followed(client, &id, None).pop().unwrap().data.to_string();
            }
            assert!(shown.contains("bad key: Bearer [a key]") && !shown.contains(KEY), "{more}: {shown}");
        }
    }
}

#[test]
fn a_response_has_as_long_as_a_request_when_the_server_ends() {
    let server =
        Recorder::with("memory:", "wire = \"openai-chat\"\ndefault = true\n[server]\ndrain_seconds = 0\n", &[]);
    let client = server.client();
    let events = Wire::Chat.events(&Wire::Chat.text("one two three", 1), 1);
    let reply = events[1..].iter().fold(Reply::stream().then(&events[0]).wait(1), |reply, event| reply.then(event));
    server.answers(reply.end());
    std::thread::scope(|scope| {
        let whole = scope.spawn(|| create(client, json!("go"), json!({})));
        server.asked();
        server.running.signal("TERM");
        while !server.running.log().contains("ending: no new requests") {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        server.go_on();
        let whole = whole.join().unwrap();
        assert_eq!((&whole["status"], &*text(&whole)), (&json!("completed"), "one two three"));
    });
}

#[test]
fn nothing_is_called_completed_that_is_not() {
    for (wire, name) in WIRES {
        let server = server("memory:", name, &[]);
        let client = server.client();
        let events = wire.events(&wire.text("one two three four", 1), 1);
        for at in 0..events.len() {
            server.answers(Reply::cut_after(&events, at));
            let seen = streamed(client, json!("go"), json!({}));
            are_whole(&seen);
            let last = &seen.last().unwrap().data["response"];
            let whole = text(last) == "one two three four";
            assert!(whole || last["status"] != "completed", "{name}, {at}: {last}");
            assert_eq!(client.get(&path(last)).ok(), *last, "{name}, {at}");
        }
    }
}

#[test]
fn a_killed_server_has_what_its_clients_saw() {
    let events = Wire::Chat.events(&Wire::Chat.text("one two three", 1), 1);
    for in_background in [false, true] {
        for at in 1..events.len() {
            let mut server = server(DURABLE, "openai-chat", &[]);
            server.answers(Reply::cut_after(&events, at).wait(1));
            let body = request(json!("go"), json!({ "stream": true, "background": in_background }));
            let mut stream = server.client().stream("POST", "/v1/responses", &[], body.to_string().as_bytes());
            // Of the first pieces nothing may be a delta; the beginning is one in any case.
            let mut seen = stream.take(2);
            let id = seen[0].data["response"]["id"].as_str().unwrap().to_owned();
            server.kill_and_restart();
            seen.extend(rest(stream));
            let after = followed(server.client(), &id, None);
            are_whole(&after);
            assert_eq!(after[..seen.len()], seen);
            let last = &after.last().unwrap().data["response"];
            assert_eq!((&last["status"], &last["error"]["code"]), (&json!("failed"), &json!("server_error")));
        }
    }
}

#[test]
fn a_repeated_request_follows_the_first() {
    let server = server("memory:", "openai-chat", &[]);
    let client = server.client();
    let ask = |headers: &[(&str, &str)], input: &str| {
        client.send("POST", "/v1/responses", headers, request(json!(input), json!({})).to_string().as_bytes())
    };
    server.answers(says(Wire::Chat, "one"));
    let first = ask(&[("idempotency-key", "k")], "go").ok();
    sent(&server);
    let repeated = ask(&[("idempotency-key", "k")], "go");
    assert_eq!(repeated.ok(), first, "the upstream is not asked again");
    assert_eq!(ask(&[("idempotency-key", "k")], "other").status, 422);
    server.answers(says(Wire::Chat, "two"));
    let second = ask(&[], "go").ok();
    assert_ne!(second["id"], first["id"]);
    assert_eq!(ask(&[("x-stainless-retry-count", "1")], "go").ok(), second);
}

/// The model is asked once, though nothing of its answer has come when the request is repeated.
#[test]
fn a_repetition_waits_for_the_answer_of_the_first() {
    let first: &[(&str, &str)] = &[("idempotency-key", "k")];
    for (at, (headers, repeated)) in
        [(first, first), (&[], &[("x-stainless-retry-count", "1")])].into_iter().enumerate()
    {
        let server = server("memory:", "openai-chat", &[]);
        let ask = |headers: &'static [(&str, &str)]| {
            let client = server.client().clone();
            let body = request(json!("go"), json!({})).to_string();
            std::thread::spawn(move || client.send("POST", "/v1/responses", headers, body.as_bytes()).ok())
        };
        server.answers(says(Wire::Chat, "one").after(Reply::default().wait(1)));
        server.answers(says(Wire::Chat, "two"));
        let one = ask(headers);
        sent(&server);
        let again = ask(repeated);
        server.go_on();
        assert_eq!(one.join().unwrap(), again.join().unwrap(), "{at}");
        assert_eq!(text(&create(server.client(), json!("next"), json!({}))), "two", "{at}: nobody else has asked");
        assert!(sent(&server).contains("next"));
    }
}

/// The first one was refused: who waits for it asks the model.
#[test]
fn a_repetition_of_what_is_refused_asks_again() {
    let server = server("memory:", "openai-chat", &[]);
    let ask = || {
        let client = server.client().clone();
        let body = request(json!("go"), json!({})).to_string();
        std::thread::spawn(move || client.send("POST", "/v1/responses", &[("idempotency-key", "k")], body.as_bytes()))
    };
    let no = Reply::error(503, &json!({ "error": { "message": "no" } }));
    server.answers(no.after(Reply::default().wait(1)));
    server.answers(says(Wire::Chat, "one"));
    let first = ask();
    sent(&server);
    let again = ask();
    server.go_on();
    assert_eq!(first.join().unwrap().status, 503);
    assert_eq!(text(&again.join().unwrap().ok()), "one");
}

#[test]
fn two_go_on_without_input_at_one_time() {
    let server = server("memory:", "openai-chat", &[]);
    server.answers(says(Wire::Chat, "one"));
    let first = create(server.client(), json!("1"), json!({}));
    sent(&server);
    let body = json!({ "model": "m", "previous_response_id": first["id"] }).to_string();
    let both = ["two", "two"].map(|word| {
        server.answers(says(Wire::Chat, word).after(Reply::default().wait(1)));
        let (client, body) = (server.client().clone(), body.clone());
        std::thread::spawn(move || client.send("POST", "/v1/responses", &[], body.as_bytes()).ok())
    });
    // Each has asked before any has its answer.
    sent(&server);
    sent(&server);
    server.go_on();
    let [two, other] = both.map(|one| one.join().unwrap());
    assert_eq!((&*text(&two), &*text(&other)), ("two", "two"));
    assert_ne!(two["id"], other["id"]);
    for response in [&two, &other] {
        assert_eq!(server.client().get(&path(response)).ok(), *response);
        server.answers(says(Wire::Chat, "three"));
        create(server.client(), json!("3"), json!({ "previous_response_id": response["id"] }));
        let history = sent(&server);
        assert_eq!((history.matches("\"one\"").count(), history.matches("\"two\"").count()), (1, 1), "{history}");
    }
    assert_eq!(server.conversations().len(), 2);
}

/// A picture of an answer comes as OpenAI's models give one, and goes back to the model that made it.
#[test]
fn a_picture_goes_back_to_its_model() {
    let server = server("memory:", "gemini", &[]);
    let parts = [json!({ "text": "Here:" }), json!({ "inlineData": { "mimeType": "image/jpeg", "data": "/9j/4AAQ" } })];
    for is_stored in [true, false] {
        server.answers(Reply::of_events(&Wire::Gemini.events(&parts, 1)));
        let events = streamed(server.client(), json!("draw"), json!({ "store": is_stored }));
        are_whole(&events);
        sent(&server);
        let first = &events.last().unwrap().data["response"];
        let picture = &first["output"][1];
        let wanted = json!({
            "id": picture["id"], "type": "image_generation_call", "status": "completed", "output_format": "jpeg", "result": "/9j/4AAQ",
        });
        assert_eq!(*picture, wanted, "{first}");
        let mut input = first["output"].as_array().unwrap().clone();
        input.insert(0, json!({ "role": "user", "content": "draw" }));
        input.push(json!({ "role": "user", "content": "again" }));
        let (input, more) = match is_stored {
            true => (json!("again"), json!({ "previous_response_id": first["id"] })),
            false => (json!(input), json!({ "store": false })),
        };
        server.answers(says(Wire::Gemini, "no"));
        create(server.client(), input, more);
        assert!(sent(&server).contains("/9j/4AAQ"), "{is_stored}");
    }
}

#[test]
fn errors_of_upstreams_are_the_clients_and_leave_nothing() {
    let server = server("memory:", "openai-chat", &[]);
    let client = server.client();
    for status in [400, 401, 403, 404, 413, 422, 429, 500, 503, 529] {
        let error = json!({ "error": { "message": "they say no", "type": "x", "code": "y" } });
        server.answers(Reply::error(status, &error).with_header("retry-after: 7"));
        let refused = client.post("/v1/responses", &request(json!("go"), json!({})));
        assert_eq!(refused.code(status), "upstream_error");
        assert!(refused.text().contains("they say no"), "{}", refused.text());
        assert_eq!(refused.header("retry-after"), Some("7"));
    }
    assert!(server.conversations().is_empty());
    let table = [
        (json!({ "input": "x" }), 400),
        (json!({ "model": "m" }), 400),
        (json!({ "model": "m", "input": 7 }), 400),
        (json!({ "model": "m", "input": [{ "type": "item_reference", "id": "msg_none" }] }), 404),
        (
            json!({ "model": "m", "input": [{ "role": "user", "id": "a", "content": "x" }, { "role": "user", "id": "a", "content": "x" }] }),
            400,
        ),
        (json!({ "model": "m", "input": "x", "previous_response_id": "resp_none" }), 400),
        (json!({ "model": "m", "input": "x", "stream": "yes" }), 400),
        (json!({ "model": "m", "input": "x", "store": false, "conversation": "conv_none" }), 400),
    ];
    for (body, status) in table {
        let refused = client.post("/v1/responses", &body);
        assert_eq!(refused.status, status, "{body}: {}", refused.text());
    }
    assert!(server.conversations().is_empty());
}

#[test]
fn items_are_named_by_their_ids() {
    let server = server("memory:", "anthropic", &[]);
    let client = server.client();
    let thought = [
        json!({ "type": "thinking", "thinking": "Hm.", "signature": "sig" }),
        json!({ "type": "text", "text": "one" }),
    ];
    server.answers(Reply::of_events(&Wire::Anthropic.events(&thought, 1)));
    let first = create(client, json!("1"), json!({}));
    sent(&server);
    let reference = |at: usize| json!({ "type": "item_reference", "id": first["output"][at]["id"] });
    server.answers(says(Wire::Anthropic, "two"));
    let input =
        json!([{ "role": "user", "content": "1" }, reference(0), reference(1), { "role": "user", "content": "2" }]);
    create(client, input, json!({}));
    let body: Value = serde_json::from_str(&sent(&server)).unwrap();
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert!(body["messages"][1].to_string().contains("\"sig\""), "{body}");
}

/// A client that keeps the history sends what it was given: the item of reasoning without the signature, which only the log has.
#[test]
fn an_item_that_comes_back_is_the_stored_one() {
    let server = server("memory:", "anthropic", &[]);
    let client = server.client();
    let answer = [
        json!({ "type": "thinking", "thinking": "Hm.", "signature": "sig" }),
        json!({ "type": "text", "text": "I look." }),
        json!({ "type": "tool_use", "id": "toolu_1", "name": "look", "input": { "at": 1 } }),
    ];
    server.answers(Reply::of_events(&Wire::Anthropic.events(&answer, 1)));
    let first = create(client, json!("1"), json!({}));
    sent(&server);
    let mut input = vec![json!({ "role": "user", "content": "1" })];
    input.extend(first["output"].as_array().unwrap().iter().cloned());
    input.push(json!({ "type": "function_call_output", "call_id": "toolu_1", "output": "2" }));
    server.answers(says(Wire::Anthropic, "two"));
    create(client, json!(input), json!({}));
    let body: Value = serde_json::from_str(&sent(&server)).unwrap();
    assert_eq!(body["messages"][1], json!({ "role": "assistant", "content": answer }));
    // What the client has changed is another item.
    input[2]["content"][0]["text"] = json!("I looked.");
    server.answers(says(Wire::Anthropic, "three"));
    create(client, json!(input), json!({}));
    let body = sent(&server);
    assert!(body.contains("I looked.") && !body.contains("I look."), "{body}");
}

#[test]
fn no_key_of_a_server_of_tools_is_stored_or_given_back() {
    let server = server("memory:", "openai-responses", &[]);
    let client = server.client();
    let tools = json!([{
        "type": "mcp", "server_label": "x", "server_url": "https://canary-user@h/mcp?token=canary-query",
        "authorization": "canary-token", "headers": { "x-key": "canary-header" },
    }]);
    server.answers(says(Wire::Responses, "one"));
    let first = create(client, json!("1"), json!({ "tools": tools }));
    assert!(sent(&server).contains("canary-token"), "the upstream needs it");
    let conversation = server.conversations()[0]["conversation"].as_str().unwrap().to_owned();
    let told = json!([first, client.get(&path(&first)).ok(), server.messages(&conversation)]).to_string();
    assert!(!told.contains("canary") && told.contains("@h/mcp"), "{told}");
}

#[test]
fn a_response_is_its_owners() {
    let server = server("memory:", "openai-chat", &["ada", "bob"]);
    let [ada, bob] = &server.clients[..] else { panic!() };
    server.answers(says(Wire::Chat, "one"));
    let first = create(ada, json!("1"), json!({}));
    assert!(!server.asked().0.contains("convo_"), "the key of this server goes nowhere");
    assert_eq!(bob.get(&path(&first)).status, 404);
    assert_eq!(bob.delete(&path(&first)).status, 404);
    assert_eq!(bob.post(&format!("{}/cancel", path(&first)), &json!({})).status, 404);
    assert_eq!(bob.get(&format!("{}/input_items", path(&first))).status, 404);
    let previous = json!({ "previous_response_id": first["id"] });
    assert_eq!(bob.post("/v1/responses", &request(json!("2"), previous)).code(400), "previous_response_not_found");
    let reference = json!([{ "type": "item_reference", "id": first["output"][0]["id"] }]);
    assert_eq!(bob.post("/v1/responses", &request(reference, json!({}))).status, 404);
    assert_eq!(ada.get(&path(&first)).ok(), first);
}

#[test]
fn a_deletion_ends_no_other_response() {
    let server = server("memory:", "openai-chat", &[]);
    let client = server.client();
    server.answers(says(Wire::Chat, "one"));
    let first = create(client, json!("1"), json!({}));
    let events = Wire::Chat.events(&Wire::Chat.text("one two three", 1), 1);
    let half = events.len() / 2;
    let begin = Reply::cut_after(&events, half).wait(1);
    server.answers(events[half..].iter().fold(begin, |reply, event| reply.then(event)).end());
    let second = create(client, json!("2"), json!({ "background": true, "previous_response_id": first["id"] }));
    client.delete(&path(&first)).ok();
    server.go_on();
    let last = followed(client, second["id"].as_str().unwrap(), None).pop().unwrap().data["response"].clone();
    assert_eq!((last["status"].as_str(), &*text(&last)), (Some("completed"), "one two three"));
}

#[test]
fn as_many_responses_are_deleted_as_there_are() {
    let server = server("memory:", "openai-chat", &[]);
    let client = server.client();
    let mut all: Vec<Value> = Vec::new();
    for _ in 0..40 {
        server.answers(says(Wire::Chat, "yes"));
        let previous = all.last().map_or(Value::Null, |last| last["id"].clone());
        all.push(create(client, json!("go"), json!({ "previous_response_id": previous })));
    }
    assert_eq!(server.conversations().len(), 1);
    for (at, response) in all.iter().enumerate() {
        assert_eq!(client.delete(&path(response)).ok()["deleted"], true, "{at}");
        assert_eq!(client.get(&path(response)).status, 404);
        assert!(all.get(at + 1).is_none_or(|next| client.get(&path(next)).status == 200));
    }
    assert!(server.conversations().is_empty());
}

#[test]
fn a_key_names_its_response_and_none_that_goes_on_from_it() {
    let mut server = server(DURABLE, "openai-chat", &[]);
    let ask = |server: &Recorder| {
        let body = request(json!("go"), json!({})).to_string();
        server.client().send("POST", "/v1/responses", &[("idempotency-key", "k")], body.as_bytes()).ok()
    };
    server.answers(says(Wire::Chat, "one"));
    let first = ask(&server);
    server.answers(says(Wire::Chat, "two"));
    create(server.client(), json!("more"), json!({ "previous_response_id": first["id"] }));
    assert_eq!(server.conversations().len(), 1);
    // What the server remembers is gone, and the log alone is left.
    server.kill_and_restart();
    assert_eq!(ask(&server), first);
}

/// Another server of the same store reads a response while it comes, each event once, and from anywhere.
#[cfg(all(feature = "postgres", unix))]
#[test]
fn another_server_of_the_store_follows() {
    let database = match crate::common::postgres::server() {
        Ok(database) => database,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let url = database.url();
    let first = server(&url, "openai-chat", &[]);
    let second = first.beside(&url);
    let events = Wire::Chat.events(&Wire::Chat.text("one two three", 1), 1);
    let half = events.len() / 2;
    let begin = Reply::cut_after(&events, half).wait(1);
    first.answers(events[half..].iter().fold(begin, |reply, event| reply.then(event)).end());
    let begun = create(first.client(), json!("go"), json!({ "background": true }));
    let id = begun["id"].as_str().unwrap().to_owned();
    let follow = |known: Option<u64>| {
        let (client, id) = (second.client().clone(), id.clone());
        std::thread::spawn(move || followed(&client, &id, known))
    };
    let (whole, rest) = (follow(None), follow(Some(1)));
    let read = second.client().get(&path(&begun)).ok();
    assert_eq!((&read["id"], &read["status"]), (&begun["id"], &json!("in_progress")));
    first.go_on();
    let (whole, rest) = (whole.join().unwrap(), rest.join().unwrap());
    are_whole(&whole);
    assert_eq!(rest, whole[2..]);
    assert_eq!(text(&whole.last().unwrap().data["response"]), "one two three");
    // What one server has begun goes on at the other.
    first.answers(says(Wire::Chat, "four"));
    let next = create(second.client(), json!("more"), json!({ "previous_response_id": id }));
    assert_eq!(text(&first.client().get(&path(&next)).ok()), "four");
    // Either of them ends what the other one is writing.
    first.answers(Reply::cut_after(&events, half).wait(9));
    let endless = create(first.client(), json!("go"), json!({ "background": true }));
    let cancelled = second.client().post(&format!("{}/cancel", path(&endless)), &json!({})).ok();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(first.client().get(&path(&endless)).ok(), cancelled);
}
