//! What clients and upstreams do that they should not: whatever that is, others go on as before.

use std::io::Write as _;
use std::time::{Duration, Instant};

use conversation_store::Store;
use conversation_store::model::{ConversationId, Message, Name};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::answers::Wire;
use super::{Recorder, Reply, passed};
use crate::common::http::Client;
use crate::common::running::run;

const MIB: u64 = 1024 * 1024;
const CHAT: &str = "/v1/chat/completions";
/// What a process takes beside what is counted: the store, threads, what the allocator keeps.
const BESIDE: u64 = 192 * MIB;

/// A server whose requests may make it hold so many MiB.
fn bounded(held: u64, more: &str) -> Recorder {
    Recorder::with("memory:", &format!("{more}\n[limits]\nheld_bytes = {}\n", held * MIB), &[])
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn model(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

fn request(list: &Value) -> Value {
    json!({ "model": "m", "stream": true, "messages": list })
}

fn yes(number: usize) -> Reply {
    says("yes", number)
}

fn says(text: &str, number: usize) -> Reply {
    Reply::of_events(&Wire::Chat.events(&Wire::Chat.text(text, number), number))
}

/// Makes a call of an owner: what has become of it.
fn call(recorder: &Recorder, client: &Client, headers: &[(&str, &str)], body: &Value, reply: Reply) -> Value {
    let mut open = recorder.begin(client, CHAT, headers, body.to_string().as_bytes(), reply);
    let is_whole = open.end();
    recorder.settled_of(client, &passed(open, is_whole).exchange)
}

fn held(client: &Client) -> u64 {
    let metrics = client.get("/metrics").text();
    metrics.lines().find_map(|line| line.strip_prefix("convo_held_bytes ")?.parse().ok()).unwrap()
}

fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The id of a key can be computed by anybody who knows it and its owner.
#[test]
fn no_client_takes_the_id_of_another_owners_key() {
    let recorder = Recorder::with("memory:", "", &["ada", "grace"]);
    let [ada, grace] = &recorder.clients[..] else { panic!() };
    let of_grace = Name::from("chat").with_owner("grace").id();
    let book_of_grace = Name::from("owner grace").with_owner("convo:proxy").id();
    let hi = request(&json!([user("hi")]));
    for (number, id) in [of_grace, book_of_grace].into_iter().enumerate() {
        let wanted = id.to_string();
        let settled = call(&recorder, ada, &[("x-convo-conversation", &wanted)], &hi, yes(number));
        assert_eq!(settled["state"], "complete");
        assert_ne!(settled["conversation"], json!(wanted));
        assert_eq!(ada.get(&format!("/api/v1/conversations/{wanted}")).status, 404);
    }
    let message = json!({ "role": "user", "chunks": [{ "type": "text", "text": "hi" }] });
    grace.post("/api/v1/conversations/chat/messages", &message).ok();
    let settled = call(&recorder, grace, &[], &hi, yes(3));
    assert_eq!(settled["state"], "complete");
    // An id that is taken is told from one that is not by nothing.
    let taken = settled["conversation"].as_str().unwrap();
    let settled = call(&recorder, ada, &[("x-convo-conversation", taken)], &hi, yes(4));
    assert_eq!((&settled["state"], &settled["how"]), (&json!("complete"), &json!("new")));
}

#[test]
fn a_session_has_a_name_of_any_length() {
    let recorder = Recorder::open();
    for length in [10, 600, 5_000] {
        let mut body = json!({ "model": "m", "input": [user("hi")], "conversation": "c".repeat(length) });
        for number in 0..2 {
            let reply = Reply::of_events(&Wire::Responses.events(&Wire::Responses.text("yes", number), number));
            let asked = recorder.ask("/v1/responses", &[], &body, reply);
            let settled = recorder.settled(&asked.exchange);
            let how = if number == 0 { "new" } else { "continued" };
            assert_eq!((&settled["state"], &settled["how"]), (&json!("complete"), &json!(how)), "{length}");
            body["input"] = json!([user("on")]);
        }
    }
}

/// A value is written with two bytes, and takes hundreds.
#[test]
fn requests_of_very_many_values_are_neither_parsed_nor_repaired() {
    let many = format!("{{\"messages\":[{}]}}", vec!["{}"; 1_000_000].join(","));
    for repair in ["never", "refused", "always"] {
        let recorder = bounded(192, &format!("repair = \"{repair}\"\n"));
        let reply =
            if repair == "refused" { Reply::error(400, &json!({ "error": { "message": "no" } })) } else { yes(0) };
        let mut state = Value::Null;
        let grown = recorder.running.growth(|| {
            let mut open = recorder.begin(recorder.client(), CHAT, &[], many.as_bytes(), reply);
            let is_whole = open.end();
            state = recorder.settled(&passed(open, is_whole).exchange)["state"].clone();
        });
        println!("{repair}: {} MiB", grown / MIB);
        assert_eq!(state, "too_large", "{repair}");
        assert!(grown < BESIDE, "{repair}: {} MiB", grown / MIB);
        assert_eq!(recorder.asked().1.len(), many.len());
        let settled = call(&recorder, recorder.client(), &[], &request(&json!([user("hi")])), yes(1));
        assert_eq!(settled["state"], "complete");
        until("nothing is held", || held(recorder.client()) == 0);
    }
}

/// Results are compared with the calls that they answer, and not each with all.
#[test]
fn many_results_take_no_more_work_than_their_number() {
    let recorder = Recorder::open();
    let took = |count: usize, is_of_one_id: bool| {
        let id = |at: usize| if is_of_one_id { "same".to_owned() } else { format!("call {at}") };
        let called = |at| json!({ "id": id(at), "type": "function", "function": { "name": "f", "arguments": "{}" } });
        let calls: Vec<Value> = (0..count).map(called).collect();
        let mut list = vec![user("hi"), json!({ "role": "assistant", "content": null, "tool_calls": calls })];
        // The last one comes first: each is the last of those that are looked at.
        list.extend(
            (0..count).rev().map(|at| json!({ "role": "tool", "tool_call_id": id(at), "content": format!("{at}") })),
        );
        let before = recorder.running.processor_time();
        let settled = call(&recorder, recorder.client(), &[], &request(&json!(list)), yes(count));
        assert_eq!(settled["state"], "complete");
        recorder.running.processor_time() - before
    };
    for is_of_one_id in [false, true] {
        took(100, is_of_one_id);
        // What else runs on the machine only adds to it.
        let mut measured = (0..3).map(|_| (took(4_000, is_of_one_id), took(32_000, is_of_one_id)));
        let is_linear = |(few, many): (u64, u64)| {
            println!("eight times as many: {few}, {many} hundredths of a second");
            many < few.max(5) * 24
        };
        assert!(measured.any(is_linear));
    }
}

#[test]
fn a_request_is_held_until_it_is_stored_and_no_longer() {
    let recorder = Recorder::open();
    let events = Wire::Chat.events(&Wire::Chat.text("yes", 1), 1);
    let reply = Reply::stream().then(&events[0]).wait(1);
    let body = request(&json!([user(&"x".repeat(4 * 1024 * 1024))])).to_string();
    let mut open = recorder.begin(recorder.client(), CHAT, &[], body.as_bytes(), reply);
    open.until_length(events[0].len());
    recorder.placed(open.answer.header("x-convo-exchange").unwrap());
    until("its answer alone is held", || held(recorder.client()) < MIB);
}

/// An event without an end, whatever it is encoded with; and for each of many choices.
#[test]
fn answers_without_an_end_stay_within_the_bound() {
    let event = |mib: u64| [b"data: ".as_slice(), &vec![b'x'; usize::try_from(mib * MIB).unwrap()]].concat();
    let encoded = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let plain = || Reply::stream().then_bytes(&event(24)).end();
    let bomb = encoded(&event(60));
    let packed = || {
        let reply = Reply::stream().with_header("content-encoding: gzip");
        bomb.chunks(16_000).fold(reply, Reply::then_bytes).end()
    };
    let replies: [(&str, &dyn Fn() -> Reply); 2] = [("plain", &plain), ("packed", &packed)];
    for (name, reply) in replies {
        let recorder = bounded(128, "");
        let mut states = Vec::new();
        let grown = recorder.running.growth(|| {
            let body = json!({ "model": "m", "n": 16, "messages": [user("hi")] });
            states = std::thread::scope(|scope| {
                let calls: Vec<_> = (0..6)
                    .map(|at| {
                        let (recorder, body, reply) = (&recorder, &body, reply());
                        let session = at.to_string();
                        scope.spawn(move || {
                            call(recorder, recorder.client(), &[("x-session-id", &session)], body, reply)["state"]
                                .clone()
                        })
                    })
                    .collect();
                calls.into_iter().map(|call| call.join().unwrap()).collect()
            });
        });
        println!("{name}: {} MiB, {states:?}", grown / MIB);
        assert!(grown < 128 * MIB + BESIDE, "{name}: {} MiB", grown / MIB);
        assert!(states.iter().all(|state| state == "too_fast" || state == "unreadable"), "{name}: {states:?}");
        let settled = call(&recorder, recorder.client(), &[], &request(&json!([user("hi")])), yes(1));
        assert_eq!(settled["state"], "complete");
        until("nothing is held", || held(recorder.client()) == 0);
    }
}

/// A piece of one byte takes more than a byte.
#[test]
fn small_pieces_count_for_what_they_take() {
    let recorder = bounded(16, "");
    let begun = Wire::Chat.events(&Wire::Chat.text("hello and more", 1), 1);
    let mut running = recorder.begin(
        recorder.client(),
        CHAT,
        &[("x-session-id", "s")],
        request(&json!([user("hi")])).to_string().as_bytes(),
        Reply::stream().then(&begun[0]).then(&begun[1]).wait(1),
    );
    running.until_length(begun[0].len() + begun[1].len());
    recorder.until_shown(&running, "hel");
    // It may echo the answer that is not over yet: so its own waits to be stored.
    let answer = Wire::Chat.text(&"x".repeat(100_000), 2);
    let events = Wire::Chat.events(&answer, 2).concat();
    let reply = events.bytes().fold(Reply::stream(), |reply, byte| reply.then_bytes(&[byte])).end();
    let list = json!([user("hi"), model("hello and more than was stored"), user("on")]);
    let settled = call(&recorder, recorder.client(), &[("x-session-id", "s")], &request(&list), reply);
    assert_eq!(settled["state"], "too_fast");
    recorder.go_on();
}

/// Who rewrites the past of long conversations makes nobody read them whole at one time.
#[test]
fn what_is_read_to_find_a_place_stays_within_the_bound() {
    const SESSIONS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let limits = format!("[limits]\nheld_bytes = {}\n", 128 * MIB);
    let mut recorder = Recorder::with("sled:DIR/store?cache_mb=1", &limits, &[]);
    let conversations = [0, 1, 2, 3, 4, 5].map(|at| {
        let hi = request(&json!([user("hi")]));
        let settled = call(&recorder, recorder.client(), &[("x-session-id", SESSIONS[at])], &hi, yes(at));
        settled["conversation"].as_str().unwrap().parse::<ConversationId>().unwrap()
    });
    // They become long while no server runs, which takes less time.
    recorder.running.kill();
    let store = Store::open(&format!("sled:{}", recorder.running.dir.path().join("store").display())).unwrap();
    let long = [Message::user("x".repeat(usize::try_from(MIB).unwrap()))];
    for conversation in conversations {
        for _ in 0..120 {
            store.append(conversation, &long).unwrap();
        }
    }
    store.close().unwrap();
    drop(store);
    recorder.restart();
    let grown = recorder.running.growth(|| {
        std::thread::scope(|scope| {
            for (at, session) in SESSIONS.into_iter().enumerate() {
                let recorder = &recorder;
                scope.spawn(move || {
                    let list = request(&json!([user("other"), model("never said"), user("on")]));
                    let settled = call(recorder, recorder.client(), &[("x-session-id", session)], &list, yes(at + 10));
                    assert_eq!((&settled["state"], &settled["how"]), (&json!("complete"), &json!("new")));
                });
            }
        });
    });
    println!("{} MiB", grown / MIB);
    assert!(grown < 128 * MIB + 2 * BESIDE, "{} MiB", grown / MIB);
}

#[test]
fn an_upstream_says_nothing_in_the_name_of_this_server() {
    let recorder = Recorder::open();
    let reply = yes(0).with_header("x-convo-recorded: no; reason=off").with_header("x-convo-exchange: theirs");
    let mut open = recorder.begin(
        recorder.client(),
        "/v1/chat/completions?%6bey=a%2Dcanary&alt=sse",
        &[],
        request(&json!([user("hi")])).to_string().as_bytes(),
        reply,
    );
    assert!(open.end());
    assert_eq!(open.answer.header("x-convo-recorded"), Some("started"));
    let settled = recorder.settled(&passed(open, true).exchange);
    assert_eq!(settled["state"], "complete");
    assert!(recorder.asked().0.contains("?%6bey=a%2dcanary&alt=sse"));
    let conversation = settled["conversation"].as_str().unwrap();
    let answer = recorder.client().get(&format!("/api/v1/conversations/{conversation}/messages/1")).text();
    assert!(answer.contains("alt=sse") && !answer.contains("canary"), "{answer}");
    // What an upstream would answer with the request itself.
    assert_eq!(recorder.client().send("TRACE", "/proxy/up/v1/models", &[], b"").status, 405);
}

/// An upstream's words for an error may quote what was said: they go with it, whoever erases it.
#[test]
fn words_for_an_error_go_with_what_they_may_quote() {
    const SECRET: &str = "zq7xk9vw";
    let error = Reply::error(400, &json!({ "error": { "message": format!("No: {SECRET}.") } }));
    let hi = request(&json!([user(SECRET)]));
    for way in ["redact", "delete", "openai", "program"] {
        let mut recorder = Recorder::with("sled:DIR/store?cache_mb=1", "", &[]);
        let asked = recorder.ask(CHAT, &[("x-session-id", "s")], &hi, error.clone());
        let settled = recorder.settled(&asked.exchange);
        assert_eq!(settled["error"], format!("No: {SECRET}."));
        let id = settled["conversation"].as_str().unwrap();
        let path = format!("/api/v1/conversations/{id}");
        match way {
            "redact" => _ = recorder.client().post(&format!("{path}/messages/0/redact"), &json!({})).ok(),
            "delete" => _ = recorder.client().delete(&path).ok(),
            "openai" => {
                _ = recorder.client().delete(&format!("/v1/conversations/conv_{}", id.replace('-', ""))).ok();
            }
            _ => {
                recorder.running.signal("TERM");
                recorder.running.wait();
                let store = format!("sled:{}/store?cache_mb=1", recorder.running.dir.path().display());
                let (code, _, said) = run(&["--store", &store, "redact", id, "0", "--yes"], &[]);
                assert_eq!(code, Some(0), "{said}");
                recorder.restart();
            }
        }
        let left = recorder.settled(&asked.exchange);
        assert_eq!(
            (&left["state"], &left["status"], left.get("error")),
            (&json!("failed"), &json!(400), None),
            "{way}"
        );
        // What another call says later is there.
        let asked = recorder.ask(CHAT, &[("x-session-id", "s")], &hi, error.clone());
        assert_eq!(recorder.settled(&asked.exchange)["error"], format!("No: {SECRET}."), "{way}");
    }
}

/// What a client sends in the place of an earlier message is kept with the answer: a redaction of the message names it.
#[test]
fn a_redaction_names_the_answers_whose_requests_may_quote_it() {
    let recorder = Recorder::open();
    let session = [("x-session-id", "s")];
    // It is the only thing that the two have in common.
    let answer = "An answer that is long enough to be nobody else's, whoever it is that asks.";
    let ask = |list: &Value, number: usize| {
        call(&recorder, recorder.client(), &session, &request(list), says(answer, number))
    };
    let first = ask(&json!([user("zq7xk9vw and more")]), 0);
    let second = ask(&json!([user("zq7xk9vw alone"), model(answer), user("on")]), 1);
    assert_eq!((&second["how"], &second["conversation"]), (&json!("continued"), &first["conversation"]));
    let path = format!("/api/v1/conversations/{}", first["conversation"].as_str().unwrap());
    let redact = |message: u64| recorder.client().post(&format!("{path}/messages/{message}/redact"), &json!({})).ok();
    let sent = format!("/api/v1/exchanges/{}/request", second["exchange"].as_str().unwrap());
    let shows = |path: &str| recorder.client().get(path).text().contains("zq7xk9vw");
    assert!(shows(&sent), "else this shows nothing");
    assert_eq!(redact(0)["answers"], json!([3]));
    // What is sealed with the message is not read without it.
    assert!(!shows(&sent) && !shows(&format!("{path}/messages?limit=100")));
    assert_eq!(redact(3)["answers"], Value::Null);
}

/// What a client left out of an answer is hidden by few entries, however many chunks that is.
#[test]
fn an_answer_of_many_chunks_is_hidden_by_few_entries() {
    let recorder = Recorder::open();
    let session = [("x-session-id", "s")];
    let ask = |list: &Value, reply| call(&recorder, recorder.client(), &session, &request(list), reply);
    let failed = ask(&json!([user("hi")]), Reply::error(500, &json!({ "error": { "message": "no" } })));
    let path = format!("/api/v1/conversations/{}", failed["conversation"].as_str().unwrap());
    // In the place of its answer, one that a client appends itself.
    let chunks: Vec<Value> = (0..2_000).map(|at| json!({ "type": "text", "text": format!("{at} ") })).collect();
    let answer = json!({ "role": "assistant", "id": failed["exchange"], "finish_reason": "error", "chunks": chunks });
    recorder.client().post(&format!("{path}/messages"), &answer).ok();
    let last_seq = || recorder.client().get(&path).ok()["last_seq"].as_u64().unwrap();
    let before = last_seq();
    let part = (0..500).map(|at| format!("{at} ")).collect::<String>();
    let settled = ask(&json!([user("hi"), model(&part), user("on")]), yes(1));
    assert_eq!((&settled["how"], &settled["conversation"]), (&json!("continued"), &failed["conversation"]));
    assert!(last_seq() < before + 520, "{}", last_seq() - before);
    let shown = recorder.messages(failed["conversation"].as_str().unwrap());
    let texts = |message: &Value| -> String {
        message["chunks"].as_array().unwrap().iter().map(|chunk| chunk["text"].as_str().unwrap()).collect()
    };
    let said: Vec<String> = shown.iter().map(|message| texts(message).trim_end().to_owned()).collect();
    assert_eq!(said, ["hi", part.trim_end(), "on", "yes"]);
}

/// A proxy before this server would take it for a tunnel.
#[test]
fn an_upstream_switches_to_no_other_protocol() {
    let recorder = Recorder::open();
    let head = "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n";
    let open = recorder.begin(
        recorder.client(),
        CHAT,
        &[],
        request(&json!([user("hi")])).to_string().as_bytes(),
        Reply::raw(head),
    );
    assert_eq!(open.answer.status, 502);
}

/// What is kept of calls counts for their owner: who is at the limit does not go past it by calls that fail.
#[test]
fn calls_keep_no_more_of_an_owner_than_it_may_store() {
    let recorder = Recorder::with("memory:", "[limits]\nowner_bytes = 20000\n", &["ada", "grace"]);
    let [ada, grace] = &recorder.clients[..] else { panic!() };
    let error = Reply::error(400, &json!({ "error": { "message": "x".repeat(900) } }));
    let hi = request(&json!([user("hi")])).to_string();
    let ask = |client: &Client| {
        let mut open = recorder.begin(client, CHAT, &[("x-session-id", "s")], hi.as_bytes(), error.clone());
        assert!(open.end());
        assert_eq!(open.answer.status, 400);
        passed(open, true).exchange
    };
    // Fewer than 20,000 bytes, a sixteenth of them, and 64 KiB would hold.
    let exchanges: Vec<String> = (0..120).map(|_| ask(ada)).collect();
    let find = |exchange: &str| ada.get(&format!("/api/v1/exchanges/{exchange}"));
    until("they are over", || exchanges.iter().all(|exchange| find(exchange).json()["state"] != "started"));
    // Of most it is noted that they failed; of a part, in which words.
    let has_words = exchanges.iter().filter(|exchange| find(exchange).json()["error"].is_string()).count();
    assert!((20..=100).contains(&has_words), "{has_words}");
    let message = json!({ "role": "user", "chunks": [{ "type": "text", "text": "hi" }] });
    assert_eq!(ada.post("/api/v1/conversations/chat/messages", &message).code(413), "limit_exceeded");
    assert_eq!(recorder.settled_of(grace, &ask(grace))["state"], "failed");
}
