//! Streams, in both directions.

use std::io::{BufReader, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::http::{Client, Event, Events, read};
use crate::common::running::{Running, create_key};
use crate::common::uploads::{END, Upload, delta, is_cut_and_comes_again};
use crate::pages::{revoke_all, until};

const CHAT: &str = "/api/v1/conversations/chat-42";

fn say(client: &Client, text: &str) {
    let message = json!({ "role": "user", "chunks": [{ "type": "text", "text": text }] });
    client.post(&format!("{CHAT}/messages"), &message).ok();
}

fn texts(events: &mut Events, wanted: &str) -> Vec<Event> {
    let mut seen = Vec::new();
    while !seen
        .iter()
        .any(|event: &Event| event.data["chunk"]["text"].as_str().is_some_and(|text| text.contains(wanted)))
    {
        seen.push(events.next().unwrap());
    }
    seen
}

#[test]
fn an_answer_is_durable_while_it_comes() {
    let mut server = Running::durable(&[]);
    say(&server.client, "hello");
    let mut events = server.client.follow(&format!("{CHAT}/events?since=1"), &[]);
    let mut ingest = Upload::begin(&server.client, CHAT, &[]);
    ingest.push(&delta("It is "));
    let seen = texts(&mut events, "It is ");
    assert_eq!((seen[0].data["kind"].as_str(), seen[0].id), (Some("begin"), Some(2)));
    // What a follower has seen is on disk.
    server.kill_and_restart();
    let message = server.client.get(&format!("{CHAT}/messages/1")).ok();
    assert_eq!((&message["state"], &message["chunks"][0]["text"]), (&json!("interrupted"), &json!("It is ")));

    let mut ingest = Upload::begin(&server.client, CHAT, &[]);
    ingest.push(&delta("noon"));
    say(&server.client, "meanwhile");
    ingest.push(END);
    let receipt = ingest.finish();
    assert_eq!((&receipt["finish_reason"], &receipt["durable"]), (&json!("stop"), &json!(true)));
    let message = server.client.get(&format!("{CHAT}/messages/{}", receipt["message_indexes"][0])).ok();
    assert_eq!(
        (&message["state"], &message["chunks"][0]["text"], &message["finish_reason"]),
        (&json!("complete"), &json!("noon"), &json!("stop"))
    );
}

#[test]
fn a_broken_pipe_leaves_an_interrupted_message() {
    let server = Running::open();
    say(&server.client, "hello");
    let mut events = server.client.follow(&format!("{CHAT}/events?since=1"), &[]);
    let mut ingest = Upload::begin(&server.client, CHAT, &[]);
    ingest.push(&delta("It is "));
    texts(&mut events, "It is ");
    drop(ingest);
    let mut last = events.next().unwrap();
    while last.data["kind"] != "finish" && last.data["kind"] != "interrupt" {
        last = events.next().unwrap();
    }
    let message = server.client.get(&format!("{CHAT}/messages/1")).ok();
    assert_eq!(message["chunks"][0]["text"], "It is ");
    assert!(message["finish_reason"] == "interrupted" || message["state"] == "interrupted", "{message}");
    // It is not continued: what comes is a new message.
    assert_eq!(server.client.get(&format!("{CHAT}/next")).ok()["step"], "continue_text");
    // Bytes that end before the answer does are the same.
    let mut ingest = Upload::begin(&server.client, CHAT, &[]);
    ingest.push(&delta("half"));
    assert_eq!(ingest.finish()["finish_reason"], "interrupted");
}

#[test]
fn an_answer_that_is_none_leaves_nothing() {
    let server = Running::open();
    say(&server.client, "hello");
    for body in ["", "\n\n", "data: [DONE]\n\n"] {
        let answer = server.client.send("POST", &format!("{CHAT}/ingest?from=openai-chat"), &[], body.as_bytes());
        assert_eq!(answer.code(422), "no_answer", "{body:?}");
    }
    for query in ["", "?from=x", "?from=openai-chat&fro=x"] {
        server.client.send("POST", &format!("{CHAT}/ingest{query}"), &[], b"").code(400);
    }
    assert_eq!(server.client.get(CHAT).ok()["messages"], 1);
    // An error of the provider is an answer: people see it, no model does.
    let error = br#"{"error":{"message":"overloaded","type":"server_error","code":null}}"#;
    let stored = server.client.send("POST", &format!("{CHAT}/ingest?from=openai-chat"), &[], error).ok();
    assert_eq!(stored["finish_reason"], "error");
}

#[test]
fn an_ingest_is_repeated_by_its_key() {
    let server = Running::open();
    let body = delta("Hi") + END;
    let send = || {
        server
            .client
            .send("POST", &format!("{CHAT}/ingest?from=openai-chat"), &[("idempotency-key", "k")], body.as_bytes())
            .ok()
    };
    assert_eq!(send()["duplicate"], false);
    let again = send();
    assert_eq!(
        (&again["duplicate"], &again["message_indexes"], &again["finish_reason"]),
        (&json!(true), &json!([0]), &json!("stop"))
    );
    assert_eq!(server.client.get(CHAT).ok()["messages"], 1);
    let path = format!("{CHAT}/ingest?from=openai-chat");
    let other_end = body.replace("stop", "length");
    let refused = server.client.send("POST", &path, &[("idempotency-key", "k")], other_end.as_bytes());
    assert_eq!(refused.code(422), "key_reused");
    // What was redacted since may have been the same.
    server.client.post(&format!("{CHAT}/messages/0/redact"), &json!({})).ok();
    assert_eq!(send()["duplicate"], true);
}

/// Whether more was on its way, nobody knows.
#[test]
fn an_ingest_that_http_does_not_end_comes_again() {
    let server = Running::open();
    let (key, body) = ([("idempotency-key", "k")], delta("It is noon") + END);
    let mut upload = Upload::begin(&server.client, CHAT, &key);
    upload.push(&body);
    drop(upload);
    let message = || server.client.get(&format!("{CHAT}/messages/0"));
    until("it is stored", || message().status == 200 && message().ok()["state"] != "streaming");
    assert_eq!(message().ok()["state"], "interrupted");
    let again = server.client.send("POST", &format!("{CHAT}/ingest?from=openai-chat"), &key, body.as_bytes()).ok();
    assert_eq!((&again["duplicate"], &again["finish_reason"]), (&json!(false), &json!("stop")));
    assert_eq!(server.client.get(CHAT).ok()["messages"], 1);
}

/// A cut upload is no success, and its repetition is stored whole.
#[test]
fn an_ingest_that_was_cut_comes_again() {
    let server = Running::durable(&[]);
    is_cut_and_comes_again(&server.client, || server.client.clone(), drop);
    // Of another log, through a server.
    let through = Running::start(&format!("http://{}", server.client.address), &[]);
    is_cut_and_comes_again(&through.client, || through.client.clone(), drop);
}

/// The same, where the server was killed.
#[test]
fn an_ingest_whose_server_was_killed_comes_again() {
    let server = std::cell::RefCell::new(Running::durable(&[]));
    let first = server.borrow().client.clone();
    is_cut_and_comes_again(
        &first,
        || server.borrow().client.clone(),
        |upload| {
            server.borrow_mut().kill_and_restart();
            drop(upload);
        },
    );
}

/// Whatever an answer holds, it is known again.
#[test]
fn recorded_answers_are_known_again() {
    let server = Running::open();
    let folders = |path: &Path| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let cases = folders(Path::new("tests/fixtures/providers")).filter(|wire| wire.is_dir());
    let cases: Vec<_> = cases.flat_map(|wire| folders(&wire).collect::<Vec<_>>()).collect();
    let mut answers = 0;
    for (case, file) in cases.iter().flat_map(|case| ["response.json", "stream.txt"].map(|file| (case, file))) {
        let Ok(body) = std::fs::read(case.join(file)) else { continue };
        let wire = case.parent().unwrap().file_name().unwrap().to_str().unwrap().replace('_', "-");
        let target = std::fs::read_to_string(case.join("target")).map_or(wire, |target| target.trim().to_owned());
        let path = format!("/api/v1/conversations/{answers}/ingest?from={target}");
        let send = || server.client.send("POST", &path, &[("idempotency-key", "k")], &body).ok();
        let (first, again) = (send(), send());
        let is_whole = first["finish_reason"] != "interrupted";
        assert_eq!((&first["duplicate"], &again["duplicate"]), (&json!(false), &json!(is_whole)), "{case:?}: {first}");
        assert_eq!(first["message_indexes"] == again["message_indexes"], is_whole, "{case:?}");
        answers += 1;
    }
    assert!(answers > 20);
}

/// However often it is cut, it is there once. Where the caller expects a seq, it does not come after what others wrote.
#[test]
fn an_ingest_that_is_cut_again_and_again_is_stored_once() {
    let mut server = Running::durable(&[]);
    let key = [("idempotency-key", "k")];
    let send = |client: &Client, expected: &str| {
        let body = delta("It is noon") + END;
        client.send("POST", &format!("{CHAT}/ingest?from=openai-chat{expected}"), &key, body.as_bytes())
    };
    say(&server.client, "When?");
    for text in ["It is ", "It is n", "It is no"] {
        let mut events = server.client.follow(&format!("{CHAT}/events"), &[]);
        let mut upload = Upload::begin(&server.client, CHAT, &key);
        upload.push(&delta(text));
        texts(&mut events, text);
        server.kill_and_restart();
    }
    say(&server.client, "Well?");
    assert_eq!(send(&server.client, "&expect=1").code(412), "stale_head");
    assert_eq!(send(&server.client, "").ok()["duplicate"], false);
    assert_eq!(send(&server.client, "&expect=1").ok()["duplicate"], true);
    let messages = server.client.get(&format!("{CHAT}/messages")).ok();
    let seen: Vec<_> = messages["messages"].as_array().unwrap().iter().map(|message| &message["index"]).collect();
    assert_eq!(seen, [0, 4, 5]);
}

#[test]
fn an_ingest_ends_with_its_key() {
    let (server, clients) = Running::with_keys(&[("ada", "read,append")]);
    say(&clients[0], "hello");
    let mut events = clients[0].follow(&format!("{CHAT}/events?since=1"), &[]);
    let mut ingest = Upload::begin(&clients[0], CHAT, &[]);
    ingest.push(&delta("before"));
    texts(&mut events, "before");
    revoke_all(&server);
    until("the key is still valid", || clients[0].get("/v1/conversations").status == 401);
    ingest.push(&delta(" and after"));
    let refused = read(&mut BufReader::new(ingest.0)).unwrap();
    assert_eq!(refused.code(401), "invalid_api_key");
    let other = server.client.with_key(&create_key(&server.keys(), "ada", "read"));
    until("the key is not noticed", || other.get("/v1/conversations").status == 200);
    let message = other.get(&format!("{CHAT}/messages/1")).ok();
    assert_eq!((&message["chunks"][0]["text"], &message["finish_reason"]), (&json!("before"), &json!("interrupted")));
}

#[test]
fn a_follower_sees_all_once() {
    let server = Running::open();
    (0..2_500).collect::<Vec<_>>().chunks(500).for_each(|numbers| {
        let messages: Vec<Value> = numbers
            .iter()
            .map(|at| json!({ "role": "user", "chunks": [{ "type": "text", "text": at.to_string() }] }))
            .collect();
        server.client.post(&format!("{CHAT}/messages"), &Value::from(messages)).ok();
    });
    let followers: Vec<_> = (0..16)
        .map(|at| {
            let client = server.client.clone();
            std::thread::spawn(move || {
                let since = at * 100;
                let mut events = client.follow(&format!("{CHAT}/events?since={since}"), &[]);
                let ids: Vec<u64> = events.take(2_600 - since).iter().map(|event| event.id.unwrap()).collect();
                assert_eq!(ids, (since as u64 + 1..=2_600).collect::<Vec<_>>());
            })
        })
        .collect();
    (0..100).for_each(|at| say(&server.client, &at.to_string()));
    followers.into_iter().for_each(|follower| follower.join().unwrap());
    assert_eq!(
        server.client.send("GET", &format!("{CHAT}/events"), &[("last-event-id", "9999")], b"").code(410),
        "cursor_out_of_range"
    );
    server.client.send("GET", &format!("{CHAT}/events?since=x"), &[], b"").code(400);
    server.client.get("/api/v1/conversations/none/events").code(404);
}

#[test]
fn a_cursor_is_not_read_on_in_another_conversation_of_the_name() {
    let server = Running::open();
    ["a", "b", "c"].into_iter().for_each(|text| say(&server.client, text));
    let page = server.client.get(&format!("{CHAT}/entries?since=1&limit=1")).ok();
    let cursor = page["cursor"].as_str().unwrap().to_owned();
    assert!(cursor.starts_with("2-"), "{cursor}");
    let follow =
        |headers: &[(&str, &str)]| server.client.send("GET", &format!("{CHAT}/events?since={cursor}"), headers, b"");
    let rest = server.client.get(&format!("{CHAT}/entries?since={cursor}")).ok();
    assert_eq!(rest["entries"].as_array().unwrap().len(), 1);
    server.client.send("DELETE", CHAT, &[], b"").ok();
    ["d", "e", "f", "g"].into_iter().for_each(|text| say(&server.client, text));
    assert_eq!(server.client.get(&format!("{CHAT}/entries?since={cursor}")).code(410), "stale_cursor");
    assert_eq!(follow(&[]).code(410), "stale_cursor");
    // As a browser comes back: with the address that it was given, and the last seq.
    assert_eq!(follow(&[("last-event-id", "3")]).code(410), "stale_cursor");
}

/// A follower whose server is killed comes back with the last id that it saw. `CONVO_KILLS` is how often.
#[test]
fn followers_resume_over_restarts() {
    let mut server = Running::durable(&[]);
    say(&server.client, "first");
    let (mut seen, mut said) = (Vec::new(), 1);
    for _ in 0..std::env::var("CONVO_KILLS").map_or(4, |kills| kills.parse().unwrap()) {
        let last = seen.last().copied().unwrap_or(0_u64).to_string();
        let mut events = server.client.follow(&format!("{CHAT}/events"), &[("last-event-id", &last)]);
        let client = server.client.clone();
        let writer = std::thread::spawn(move || {
            let mut acknowledged = 0;
            let message = json!({ "role": "user", "chunks": [{ "type": "text", "text": "x" }] }).to_string();
            while client
                .try_send("POST", &format!("{CHAT}/messages"), &[], message.as_bytes())
                .is_ok_and(|answer| answer.status == 200)
            {
                acknowledged += 1;
            }
            acknowledged
        });
        for event in events.take(30) {
            seen.push(event.id.unwrap());
        }
        server.kill();
        said += writer.join().unwrap();
        // What was sent before the end still counts.
        while let Some(event) = events.next() {
            seen.push(event.id.unwrap());
        }
        server.restart();
    }
    let last_seq = server.client.get(CHAT).ok()["last_seq"].as_u64().unwrap();
    assert!(last_seq >= said, "{last_seq} entries, {said} acknowledged");
    let last = seen.last().copied().unwrap();
    let mut events = server.client.follow(&format!("{CHAT}/events"), &[("last-event-id", &last.to_string())]);
    seen.extend(events.take(usize::try_from(last_seq - last).unwrap()).iter().map(|event| event.id.unwrap()));
    assert_eq!(seen, (1..=last_seq).collect::<Vec<_>>(), "no gap, no repetition");
}

#[test]
fn followers_are_told_of_the_end() {
    let mut server = Running::durable(&[]);
    say(&server.client, "first");
    let mut deleted = server.client.follow(&format!("{CHAT}/events"), &[]);
    deleted.next().unwrap();
    server.client.delete(CHAT).ok();
    let Event { name, id, data } = deleted.next().unwrap();
    assert_eq!((name.as_str(), id, &data["reason"], &data["last_seq"]), ("close", None, &json!("deleted"), &json!(1)));
    assert!(data["cursor"].as_str().unwrap().starts_with("1-"), "{data}");
    assert_eq!(deleted.next(), None);

    say(&server.client, "again");
    let mut events = server.client.follow(&format!("{CHAT}/events"), &[]);
    events.next().unwrap();
    let mut ingest = Upload::begin(&server.client, CHAT, &[]);
    ingest.push(&delta("half"));
    texts(&mut events, "half");
    server.signal("TERM");
    let mut last = events.next().unwrap();
    while last.name != "close" {
        last = events.next().unwrap();
    }
    assert_eq!(last.data["reason"], "shutdown");
    assert_eq!(events.next(), None);
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    server.restart();
    let message = server.client.get(&format!("{CHAT}/messages/1")).ok();
    assert_eq!(message["chunks"][0]["text"], "half");
}

#[test]
fn a_follower_is_kept_alive() {
    let server = Running::start("memory:", &["--config", &config("[limits]\nkeep_alive_seconds = 1\n")]);
    say(&server.client, "first");
    let mut stream = server.client.connect().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(server.client.head("GET", &format!("{CHAT}/events"), &[]).as_bytes()).unwrap();
    let mut text = String::new();
    while !text.contains(": alive") {
        let mut bytes = [0; 1024];
        let read = std::io::Read::read(&mut stream, &mut bytes).unwrap();
        assert!(read > 0);
        text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
    }
}

/// A file of settings that stays for as long as the tests run.
pub(crate) fn config(text: &str) -> String {
    let dir = crate::common::tempdir().unwrap().keep();
    let file = dir.join("convo.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// It costs its connection, not memory: what it does not take is not read for it.
#[test]
fn a_follower_that_never_reads_is_dropped() {
    let server = Running::start("memory:", &["--config", &config("[limits]\nidle_seconds = 1\n")]);
    let text = "x".repeat(1024 * 1024);
    (0..24).for_each(|_| say(&server.client, &text));
    let mut stuck = server.client.connect().unwrap();
    stuck.write_all(server.client.head("GET", &format!("{CHAT}/events"), &[]).as_bytes()).unwrap();
    let followers = || {
        let metrics = server.client.get("/metrics").text();
        metrics.lines().find_map(|line| line.strip_prefix("convo_followers ")).unwrap().to_owned()
    };
    let begun = std::time::Instant::now();
    while followers() != "1" {
        assert!(begun.elapsed() < Duration::from_secs(30), "it never began");
    }
    while followers() != "0" {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is still served");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Others go on.
    assert_eq!(server.client.follow(&format!("{CHAT}/events"), &[]).take(24).len(), 24);
}

/// 32 of them on 64 MB of entries: the server holds a piece of each, not all of it.
#[test]
fn followers_that_never_read_take_little_memory() {
    let mut server = Running::durable(&["--config", &config("[limits]\nidle_seconds = 600\n")]);
    let text = "x".repeat(1024 * 1024);
    (0..64).for_each(|_| say(&server.client, &text));
    // What was written is not in its memory any more.
    server.kill_and_restart();
    let before = server.resident();
    let stuck: Vec<_> = (0..32)
        .map(|_| {
            let mut stream = server.client.connect().unwrap();
            stream.write_all(server.client.head("GET", &format!("{CHAT}/events"), &[]).as_bytes()).unwrap();
            stream
        })
        .collect();
    let begun = std::time::Instant::now();
    while !server.client.get("/metrics").text().contains("convo_followers 32") {
        assert!(begun.elapsed() < Duration::from_secs(60), "they never began");
    }
    // Their sockets are full once the server has nothing more to do for them.
    let (mut last, mut same) = (0, 0);
    while same < 10 {
        let now = server.resident();
        same = if now.abs_diff(last) < 1_000_000 { same + 1 } else { 0 };
        last = now;
        std::thread::sleep(Duration::from_millis(50));
        assert!(begun.elapsed() < Duration::from_secs(60), "its memory does not settle");
    }
    let each = last.saturating_sub(before) / stuck.len() as u64;
    println!("{each} bytes for each");
    assert!(each < 12 * 1024 * 1024, "{each} bytes for each of those that never read");
}

#[test]
fn streams_are_bounded() {
    let server = Running::start("memory:", &["--config", &config("[limits]\nstreams_per_key = 2\n")]);
    say(&server.client, "first");
    let follow = || server.client.follow(&format!("{CHAT}/events"), &[]);
    let (first, _second) = (follow(), follow());
    let refused = server.client.get(&format!("{CHAT}/events"));
    assert_eq!((refused.code(429).as_str(), refused.header("retry-after")), ("too_many_streams", Some("5")));
    drop(first);
    let begun = std::time::Instant::now();
    while server.client.get("/metrics").text().contains("convo_followers 2") {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
    follow();
}
