//! One call: what of it is stored, however it ends, and what its exchange says.

use std::io::{BufReader, Read as _, Write};
use std::net::{Shutdown, TcpListener};
use std::time::Duration;

use serde_json::{Value, json};

use super::answers::{Wire, heard};
use super::{Passed, Recorder, Reply, Step, passed, said};
use crate::common::http::{Open, read};
use crate::common::uploads::Upload;

const PATHS: [(&str, Wire); 4] = [
    ("/v1/messages", Wire::Anthropic),
    ("/v1/chat/completions", Wire::Chat),
    ("/v1/responses", Wire::Responses),
    ("/v1beta/models/m:streamGenerateContent?alt=sse", Wire::Gemini),
];

/// A request that says hi.
fn hi(wire: Wire) -> Value {
    let list = match wire {
        Wire::Gemini => json!({ "role": "user", "parts": [{ "text": "hi" }] }),
        Wire::Anthropic | Wire::Chat | Wire::Responses => json!({ "role": "user", "content": "hi" }),
    };
    let name = match wire {
        Wire::Gemini => "contents",
        Wire::Responses => "input",
        Wire::Anthropic | Wire::Chat => "messages",
    };
    json!({ "model": "m", "stream": true, name: [list] })
}

/// An answer with a text and a call.
fn answer(wire: Wire) -> Vec<Value> {
    match wire {
        Wire::Anthropic => vec![
            json!({ "type": "text", "text": "I look. €" }),
            json!({ "type": "tool_use", "id": "t1", "name": "f", "input": { "a": [1, "b"] } }),
        ],
        Wire::Chat => vec![json!({ "role": "assistant", "content": "I look. €", "tool_calls": [{ "id": "t1",
            "type": "function", "function": { "name": "f", "arguments": "{\"a\":[1,\"b\"]}" } }] })],
        Wire::Responses => vec![
            Wire::Responses.text("I look. €", 1)[0].clone(),
            json!({ "type": "function_call", "id": "fc_1", "call_id": "t1", "name": "f", "status": "completed",
                "arguments": "{\"a\":[1,\"b\"]}" }),
        ],
        Wire::Gemini => {
            vec![json!({ "text": "I look. €" }), json!({ "functionCall": { "name": "f", "args": { "a": [1, "b"] } } })]
        }
    }
}

/// The stored answer of an exchange, as lines.
fn stored(recorder: &Recorder, settled: &Value) -> Vec<String> {
    match settled.get("message") {
        Some(_) => said::by_messages(&[settled_message(recorder, settled)]),
        None => Vec::new(),
    }
}

fn settled_message(recorder: &Recorder, settled: &Value) -> Value {
    let conversation = settled["conversation"].as_str().unwrap();
    recorder.client().get(&format!("/api/v1/conversations/{conversation}/messages/{}", settled["message"])).ok()
}

#[test]
fn what_a_client_got_is_what_is_stored_wherever_it_is_cut() {
    let recorder = Recorder::open();
    for (path, wire) in PATHS {
        let events = wire.events(&answer(wire), 1);
        for cut in 0..=events.len() {
            let is_whole = cut == events.len();
            let reply = if is_whole { Reply::of_events(&events) } else { Reply::cut_after(&events, cut) };
            let session = format!("{wire:?} {cut}");
            let got = recorder.ask(path, &[("x-session-id", &session)], &hi(wire), reply);
            assert_eq!((got.status, got.is_whole), (200, is_whole), "{session}");
            // No byte that the upstream sent before it broke off is lost on its way.
            let sent = events[..cut].concat();
            assert_eq!(String::from_utf8(got.body).unwrap(), sent, "{session}");
            let settled = recorder.settled(&got.exchange);
            assert_eq!(stored(&recorder, &settled), heard(wire, &events[..cut]), "{session}: {settled}");
            // Who has all that is said has a whole answer.
            let state = settled["state"].as_str().unwrap();
            let may_be_whole = events.len() - cut <= 2;
            assert!(state == "complete" && may_be_whole || state == "cut" && !is_whole, "{session}: {settled}");
        }
    }
}

/// An answer whose upstream waits after so many events, for the so many-th time.
fn waiting(events: &[String], count: usize, times: usize) -> Reply {
    let begun = events[..count].iter().fold(Reply::stream(), |reply, event| reply.then(event)).wait(times);
    events[count..].iter().fold(begun, |reply, event| reply.then(event)).end()
}

fn begin(recorder: &Recorder, session: &str, reply: Reply) -> Open {
    let body = hi(Wire::Anthropic).to_string();
    recorder.begin(recorder.client(), "/v1/messages", &[("x-session-id", session)], body.as_bytes(), reply)
}

#[test]
fn an_answer_whose_client_has_gone_is_read_to_its_end() {
    let recorder = Recorder::open();
    let events = Wire::Anthropic.events(&answer(Wire::Anthropic), 1);
    for count in 1..events.len() {
        let mut open = begin(&recorder, &count.to_string(), waiting(&events, count, count));
        open.until_length(events[..count].concat().len());
        let exchange = passed(open, false).exchange;
        recorder.go_on();
        let settled = recorder.settled(&exchange);
        assert_eq!(settled["state"], "complete", "{count}");
        assert_eq!(stored(&recorder, &settled), heard(Wire::Anthropic, &events), "{count}");
    }
}

/// A request that goes on from an answer to `hi`.
fn going_on(wire: Wire, mut body: Value, said: &[Value]) -> Value {
    let (name, echo): (_, Vec<Value>) = match wire {
        Wire::Gemini => ("contents", vec![json!({ "role": "model", "parts": said })]),
        Wire::Responses => ("input", said.to_vec()),
        Wire::Anthropic => ("messages", vec![json!({ "role": "assistant", "content": said })]),
        Wire::Chat => ("messages", said.to_vec()),
    };
    let list = body[name].as_array_mut().unwrap();
    let more = list[0].clone();
    list.extend(echo);
    list.push(more);
    body
}

/// The next request: it comes as soon as the client may send it, or once what has passed of the answer is stored; the client may
/// have rewritten what was said before.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    AtOnce,
    OnceStored,
    Rewritten,
}

#[test]
fn who_goes_on_from_an_answer_before_it_has_ended_stays_in_the_conversation() {
    let recorder = Recorder::open();
    let mut times = 0;
    for (path, wire) in PATHS {
        let said = wire.text("It is the third of the drawers on the left, below the lamp with the green shade.", 1);
        let events = wire.events(&said, 1);
        let cases = (0..events.len()).flat_map(|count| {
            let of_session = [Next::AtOnce, Next::OnceStored, Next::Rewritten].map(|next| (count, true, next));
            of_session.into_iter().chain([(count, false, Next::AtOnce)])
        });
        for (count, has_session, next) in cases {
            times += 1;
            let name = format!("{wire:?} {count} {has_session} {next:?}");
            let headers = [("x-session-id", &*name)];
            let headers = if has_session { &headers[..] } else { &[] };
            let body: Value = serde_json::from_str(&hi(wire).to_string().replace("hi", &name)).unwrap();
            let bytes = body.to_string().into_bytes();
            let mut open = recorder.begin(recorder.client(), path, headers, &bytes, waiting(&events, count, times));
            open.until_length(events[..count].concat().len());
            if next == Next::OnceStored {
                let exchange = open.answer.header("x-convo-exchange").unwrap().to_owned();
                let conversation = recorder.placed(&exchange);
                let heard = heard(wire, &events[..count]);
                while !heard.is_empty() && said::by_messages(&recorder.messages(&conversation)[1..]) != heard {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            // Such a client has the rest of the answer, which passes later here.
            let before = match next {
                Next::AtOnce | Next::OnceStored => body,
                Next::Rewritten => serde_json::from_str(&body.to_string().replace(&name, "cleared")).unwrap(),
            };
            let next = going_on(wire, before, &said);
            let second = recorder.ask(path, headers, &next, Reply::of_events(&wire.events(&wire.text("yes", 2), 2)));
            recorder.go_on();
            assert!(open.end());
            let first = recorder.settled(&passed(open, true).exchange);
            let second = recorder.settled(&second.exchange);
            assert_eq!(
                (&second["how"], &second["conversation"]),
                (&json!("continued"), &first["conversation"]),
                "{name}"
            );
        }
    }
}

#[test]
fn it_is_noted_that_the_client_had_gone() {
    let recorder = Recorder::open();
    // More than what connections hold on their way.
    let long = "x".repeat(64 * 1024);
    let said = vec![json!({ "type": "text", "text": long.repeat(256) })];
    let events = Wire::Anthropic.events(&said, 1);
    let mut open = begin(&recorder, "s", Reply::of_events(&events));
    open.until(b"message_start");
    let exchange = passed(open, false).exchange;
    let settled = recorder.settled(&exchange);
    assert_eq!(settled["state"], "complete");
    assert_eq!(settled_message(&recorder, &settled)["convo_end"]["delivered"], false);
    let got = recorder.ask("/v1/messages", &[], &hi(Wire::Anthropic), Reply::of_events(&events[..3]));
    let settled = recorder.settled(&got.exchange);
    assert_eq!(settled_message(&recorder, &settled)["convo_end"]["delivered"], true);
}

#[test]
fn an_answer_whose_client_has_gone_ends_if_that_is_wanted() {
    let recorder = Recorder::with("memory:", "on_disconnect = \"cancel\"\n", &[]);
    let events = Wire::Anthropic.events(&answer(Wire::Anthropic), 1);
    for count in 1..events.len() {
        let mut open = begin(&recorder, &count.to_string(), waiting(&events, count, 1));
        open.until_length(events[..count].concat().len());
        let exchange = passed(open, false).exchange;
        // The upstream still waits.
        let settled = recorder.settled(&exchange);
        let heard = heard(Wire::Anthropic, &events[..count]);
        assert_eq!(stored(&recorder, &settled), heard, "{count}");
        let is_whole = count + 1 == events.len();
        assert_eq!(settled["state"], if is_whole { "complete" } else { "cut" }, "{count}");
    }
}

#[test]
fn an_answer_is_stopped_from_anywhere() {
    let (recorder, wire) = (Recorder::open(), Wire::Anthropic);
    let events = wire.events(&answer(wire), 1);
    let mut open = begin(&recorder, "s", waiting(&events, 5, 1));
    open.until_length(events[..5].concat().len());
    let conversation = recorder.placed(open.answer.header("x-convo-exchange").unwrap());
    let path = format!("/api/v1/conversations/{conversation}/stop");
    let stopped = recorder.client().post(&path, &json!({})).ok();
    assert!(!open.end(), "the client sees that it is not whole");
    let exchange = passed(open, false).exchange;
    assert_eq!((&stopped["stopped"], &stopped["elsewhere"]), (&json!([exchange]), &json!([])));
    let settled = recorder.settled(&exchange);
    assert_eq!(settled["state"], "stopped");
    assert_eq!(stored(&recorder, &settled), heard(wire, &events[..5]));
    // Nothing runs any more; and what is not there has no answers.
    assert_eq!(recorder.client().post(&path, &json!({})).ok()["stopped"], json!([]));
    assert_eq!(recorder.client().post("/api/v1/conversations/none/stop", &json!({})).status, 404);
    // The next request has what was shown.
    let kept = json!({ "role": "assistant", "content": [{ "type": "text", "text": "I " }] });
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }, kept, { "role": "user", "content": "on" }] });
    let got = recorder.ask(
        "/v1/messages",
        &[("x-session-id", "s")],
        &body,
        Reply::json(&wire.whole(&wire.text("yes", 2), 2)),
    );
    let settled = recorder.settled(&got.exchange);
    assert_eq!((settled["how"].as_str(), settled["conversation"].as_str()), (Some("continued"), Some(&*conversation)));
}

/// Two servers of one store on PostgreSQL: what one writes, the other one stops.
#[cfg(all(feature = "postgres", unix))]
#[test]
fn an_answer_is_stopped_through_another_server() {
    let server = match crate::common::postgres::server() {
        Err(reason) => return println!("skipped: {reason}"),
        Ok(server) => server,
    };
    let url = server.url();
    let (recorder, wire) = (Recorder::with(&url, "", &[]), Wire::Anthropic);
    let other = recorder.beside(&url);
    let events = wire.events(&answer(wire), 1);
    for session in ["s", "t"] {
        let mut open = begin(&recorder, session, waiting(&events, 5, 1));
        open.until_length(events[..5].concat().len());
        let exchange = open.answer.header("x-convo-exchange").unwrap().to_owned();
        let conversation = recorder.placed(&exchange);
        let path = format!("/api/v1/conversations/{conversation}");
        // Once its message has begun, the other one sees it.
        let stopped = loop {
            let stopped = other.client().post(&format!("{path}/stop"), &json!({})).ok();
            if stopped["elsewhere"] != json!([]) {
                break stopped;
            }
        };
        assert_eq!((&stopped["stopped"], &stopped["elsewhere"]), (&json!([]), &json!([1])));
        assert!(!open.end(), "the client sees that it is not whole");
        assert_eq!(recorder.settled(&exchange)["state"], "stopped");
    }
    // An answer that is ingested through one is stopped through the other.
    let mut upload = Upload::begin(recorder.client(), "/api/v1/conversations/chat", &[]);
    upload.push("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"It is\"}}]}\n\n");
    let stop = |through: &Recorder| through.client().post("/api/v1/conversations/chat/stop", &json!({}));
    while stop(&other).status == 404 {}
    while stop(&other).ok()["elsewhere"] == json!([]) {}
    // The client has not ended it.
    assert_eq!(read(&mut BufReader::new(upload.0)).unwrap().ok()["finish_reason"], "interrupted");
    let stored = recorder.messages("chat");
    assert_eq!(
        (&stored[0]["state"], said::by_messages(&stored)),
        (&json!("interrupted"), vec!["assistant: It is".to_owned()])
    );
}

#[test]
fn an_error_of_the_upstream_is_an_attempt_without_an_answer() {
    let recorder = Recorder::open();
    let table =
        [(400, "invalid_request_error"), (401, "authentication_error"), (429, "rate_limit_error"), (529, "overloaded")];
    for (status, kind) in table {
        let error = json!({ "type": "error", "error": { "type": kind, "message": format!("No: {status}.") } });
        let got =
            recorder.ask("/v1/messages", &[("x-session-id", "s")], &hi(Wire::Anthropic), Reply::error(status, &error));
        assert_eq!((got.status, got.body), (status, error.to_string().into_bytes()));
        let settled = recorder.settled(&got.exchange);
        assert_eq!((settled["state"].as_str(), settled["status"].as_u64()), (Some("failed"), Some(u64::from(status))));
        assert_eq!(settled["error"], format!("No: {status}."));
        assert!(settled.get("message").is_none(), "{settled}");
    }
    let conversations = recorder.conversations();
    assert_eq!((conversations.len(), &conversations[0]["messages"]), (1, &json!(1)), "{conversations:?}");
    let unknown = "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b";
    for id in [unknown, "none"] {
        assert_eq!(recorder.client().get(&format!("/api/v1/exchanges/{id}")).status, 404);
    }
}

#[test]
fn a_call_without_an_answer_is_a_failed_attempt() {
    // Nothing listens at this port; one that was free may be given to another server.
    let more = "answer_seconds = 1\n[[upstream]]\nname = \"gone\"\nurl = \"http://127.0.0.1:9\"\n";
    let recorder = Recorder::with("memory:", more, &[]);
    let wire = Wire::Anthropic;
    // A body that does not come with its head, and is long.
    let mut body = hi(wire);
    body["system"] = json!("x".repeat(1024 * 1024));
    let table = [
        ("gone", None, 502, "upstream gone cannot be reached"),
        ("up", Some(Reply::default()), 502, "upstream up ended the connection before it answered"),
        ("up", Some(Reply::default().wait(1)), 504, "upstream up did not begin to answer within 1 seconds"),
    ];
    for (number, (upstream, reply, status, error)) in table.into_iter().enumerate() {
        let session = number.to_string();
        let headers = [("x-session-id", &*session)];
        let bytes = body.to_string().into_bytes();
        let (client, path) = (recorder.client(), format!("/proxy/{upstream}/v1/messages"));
        let mut open = match reply {
            Some(reply) => recorder.begin(client, "/v1/messages", &headers, &bytes, reply),
            None => client.open("POST", &path, &headers, &bytes),
        };
        assert!(open.end());
        assert_eq!(open.answer.status, status, "{error}");
        let settled = recorder.settled(&passed(open, true).exchange);
        assert_eq!(settled["state"], "failed", "{settled}");
        assert!(settled["error"].as_str().unwrap().starts_with(error), "{settled}");
        let conversation = settled["conversation"].as_str().unwrap();
        assert_eq!(said::by_messages(&recorder.messages(conversation)), ["user: hi"], "{error}");
        // The client asks again.
        let again = recorder.ask("/v1/messages", &headers, &body, Reply::json(&wire.whole(&wire.text("yes", 1), 1)));
        let again = recorder.settled(&again.exchange);
        assert_eq!((&again["how"], &again["conversation"]), (&json!("attempt"), &settled["conversation"]), "{error}");
    }
}

#[test]
fn owners_with_one_session_id_see_nothing_of_each_other() {
    let recorder = Recorder::with("memory:", "", &["ada", "bob", "eve"]);
    let wire = Wire::Anthropic;
    let ask = |owner: usize, list: &Value, text: &str| {
        let body = json!({ "model": "m", "messages": list }).to_string();
        let reply = Reply::json(&wire.whole(&wire.text(text, owner), owner));
        let client = &recorder.clients[owner];
        let mut open = recorder.begin(client, "/v1/messages", &[("x-session-id", "s")], body.as_bytes(), reply);
        assert!(open.end());
        let exchange = passed(open, true).exchange;
        let settled = recorder.settled_of(client, &exchange);
        // Nobody else knows the exchange.
        let other = &recorder.clients[(owner + 1) % 2];
        assert_eq!(other.get(&format!("/api/v1/exchanges/{exchange}")).status, 404);
        settled
    };
    let user = |text: &str| json!({ "role": "user", "content": text });
    let hello = json!({ "role": "assistant", "content": "hello" });
    let first = [0, 1].map(|owner| ask(owner, &json!([user("hi")]), "hello"));
    assert!(first.iter().all(|settled| settled["state"] == "complete"), "{first:?}: {}", recorder.running.log());
    assert_ne!(first[0]["conversation"], first[1]["conversation"]);
    for owner in [0, 1] {
        let on = ask(owner, &json!([user("hi"), hello, user("on")]), "yes");
        assert_eq!((&on["how"], &on["conversation"]), (&json!("continued"), &first[owner]["conversation"]));
        let list = recorder.clients[owner].get("/api/v1/conversations").ok();
        assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
        let other = first[1 - owner]["conversation"].as_str().unwrap();
        assert_eq!(recorder.clients[owner].get(&format!("/api/v1/conversations/{other}")).status, 404);
    }
    assert_eq!(recorder.clients[2].get("/api/v1/conversations").ok()["items"], json!([]));
    // What the server keeps of calls is no conversation of anybody.
    let mut names = vec!["owner ada".to_owned()];
    names.extend(first.iter().map(|settled| settled["conversation"].as_str().unwrap().to_owned()));
    for name in names {
        assert_eq!(recorder.clients[2].get(&format!("/api/v1/conversations/{}", name.replace(' ', "%20"))).status, 404);
    }
    let keys = recorder.running.keys();
    let (code, _, error) = crate::common::running::run(
        &["keys", "create", "--keys", keys.to_str().unwrap(), "--owner", "convo:proxy", "--scopes", "read"],
        &[],
    );
    assert_eq!(code, Some(2), "{error}");
}

#[test]
fn agents_that_speak_at_one_time_do_not_mix() {
    const AGENTS: usize = 8;
    const TURNS: usize = 5;
    let recorder = Recorder::open();
    let wire = Wire::Anthropic;
    let of_agent = |agent: usize| {
        let name = format!("agent {agent}");
        let headers = [("x-claude-code-session-id", "s"), ("x-claude-code-agent-id", &*name)];
        let mut list = vec![json!({ "role": "user", "content": format!("Do the part. {}", agent % 2) })];
        let mut conversations = Vec::new();
        for turn in 0..TURNS {
            let answer = wire.text(&format!("done {turn}"), agent * TURNS + turn);
            let body = json!({ "model": "m", "stream": true, "messages": list });
            let got = recorder.ask("/v1/messages", &headers, &body, Reply::of_events(&wire.events(&answer, turn)));
            list.push(json!({ "role": "assistant", "content": answer }));
            list.push(json!({ "role": "user", "content": format!("{agent}: and {turn}") }));
            conversations.push(recorder.settled(&got.exchange)["conversation"].as_str().unwrap().to_owned());
        }
        conversations.dedup();
        assert_eq!(conversations.len(), 1, "agent {agent}: {conversations:?}");
        list.pop();
        assert_eq!(said::by_messages(&recorder.messages(&conversations[0])), said::by_items(wire, &list));
    };
    std::thread::scope(|scope| {
        for agent in 0..AGENTS {
            scope.spawn(move || of_agent(agent));
        }
    });
    assert_eq!(recorder.conversations().len(), AGENTS);
}

#[test]
fn the_first_calls_of_an_owner_may_come_at_one_time() {
    let owners: Vec<String> = (0..12).map(|owner| format!("owner{owner}")).collect();
    let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
    let recorder = Recorder::with("memory:", "", &owners);
    let wire = Wire::Anthropic;
    let ask = |owner: usize, number: usize| {
        let client = &recorder.clients[owner];
        let reply = Reply::json(&wire.whole(&wire.text("hello", number), number));
        let session = number.to_string();
        let body = hi(wire).to_string();
        let mut open = recorder.begin(client, "/v1/messages", &[("x-session-id", &session)], body.as_bytes(), reply);
        assert!(open.end());
        let settled = recorder.settled_of(client, &passed(open, true).exchange);
        assert_eq!(settled["state"], "complete", "{settled}: {}", recorder.running.log());
    };
    for owner in 0..owners.len() {
        std::thread::scope(|scope| {
            for number in 0..6 {
                scope.spawn(move || ask(owner, number));
            }
        });
    }
}

/// Bytes of all keys and values of the store: a backup has them, in frames that state how long they are before they are compressed.
fn durable_bytes(recorder: &Recorder) -> usize {
    let backup = recorder.client().get("/api/v1/admin/backup");
    assert_eq!(backup.status, 200);
    let (mut at, mut bytes) = (12, 0);
    while at < backup.body.len() {
        let number = |at: usize| u32::from_be_bytes(backup.body[at..at + 4].try_into().unwrap()) as usize;
        bytes += number(at);
        at += 12 + number(at + 4);
    }
    bytes
}

#[test]
fn an_answer_is_waited_for_though_another_session_has_the_same() {
    let (recorder, wire, path) = (Recorder::open(), Wire::Anthropic, "/v1/messages");
    let said = wire.text("It is the third of the drawers on the left, below the lamp with the green shade.", 1);
    let events = wire.events(&said, 1);
    let whole = recorder.ask(path, &[("x-session-id", "s")], &hi(wire), Reply::of_events(&events));
    assert_eq!(recorder.settled(&whole.exchange)["state"], "complete");
    // All words have passed, and the end has not.
    let count = events.len() - 1;
    let mut open = begin(&recorder, "t", waiting(&events, count, 1));
    open.until_length(events[..count].concat().len());
    let next = going_on(wire, hi(wire), &said);
    let yes = Reply::of_events(&wire.events(&wire.text("yes", 2), 2));
    let second = recorder.ask(path, &[("x-session-id", "t")], &next, yes);
    recorder.go_on();
    assert!(open.end());
    let first = recorder.settled(&passed(open, true).exchange);
    let second = recorder.settled(&second.exchange);
    assert_eq!((&second["how"], &second["conversation"]), (&json!("continued"), &first["conversation"]));
}

#[test]
fn an_answer_that_ends_after_its_call_was_repeated_is_hidden() {
    let (wire, path, of) = (Wire::Anthropic, "/v1/messages", [("x-session-id", "s")]);
    let events = |text: &str| wire.events(&wire.text(text, 1), 1);
    let said = |role: &str, text: &str| json!({ "role": role, "content": text });
    // Before its first word, and after it.
    for count in [1, 4] {
        let recorder = Recorder::open();
        let first = events("The first answer.");
        let mut open = begin(&recorder, "s", waiting(&first, count, 1));
        open.until_length(first[..count].concat().len());
        if count > 1 {
            recorder.until_shown(&open, "\"Th\"");
        }
        // The client goes, and asks again; the first answer still comes.
        let first = passed(open, false).exchange;
        let mut list = vec![said("user", "hi")];
        let mut ask = |more: Option<(&str, &str)>, answer: &str| {
            list.extend(more.into_iter().flat_map(|(got, asked)| [said("assistant", got), said("user", asked)]));
            let body = json!({ "model": "m", "stream": true, "messages": list });
            let got = recorder.ask(path, &of, &body, Reply::of_events(&events(answer)));
            let settled = recorder.settled(&got.exchange);
            (settled["how"].as_str().unwrap().to_owned(), settled["conversation"].as_str().unwrap().to_owned())
        };
        assert_eq!(ask(None, "The second answer.").0, "attempt", "{count}");
        assert_eq!(ask(Some(("The second answer.", "on")), "yes").0, "continued", "{count}");
        recorder.go_on();
        assert_eq!(recorder.settled(&first)["state"], "complete");
        let (how, conversation) = ask(Some(("yes", "more")), "no");
        assert_eq!(how, "continued", "{count}");
        let wanted =
            ["user: hi", "assistant: The second answer.", "user: on", "assistant: yes", "user: more", "assistant: no"];
        assert_eq!(said::by_messages(&recorder.messages(&conversation)), wanted, "{count}");
    }
}

#[test]
fn an_answer_stays_if_its_repetition_got_none() {
    let (recorder, wire) = (Recorder::open(), Wire::Anthropic);
    let events = wire.events(&wire.text("The first answer.", 1), 1);
    let mut open = begin(&recorder, "s", waiting(&events, 4, 1));
    open.until_length(events[..4].concat().len());
    recorder.until_shown(&open, "\"Th\"");
    let first = passed(open, false).exchange;
    let overloaded =
        Reply::error(529, &json!({ "type": "error", "error": { "type": "overloaded_error", "message": "No." } }));
    let again = recorder.ask("/v1/messages", &[("x-session-id", "s")], &hi(wire), overloaded);
    assert_eq!(recorder.settled(&again.exchange)["how"], "attempt");
    recorder.go_on();
    let first = recorder.settled(&first);
    assert_eq!(first["state"], "complete");
    assert_eq!(stored(&recorder, &first), heard(wire, &events));
    let messages = recorder.messages(first["conversation"].as_str().unwrap());
    assert_eq!(said::by_messages(&messages), ["user: hi", "assistant: The first answer."]);
}

/// The client asks at once: what it got is not all stored yet.
#[test]
fn the_turn_after_a_retry_that_begins_like_the_cut_answer_is_recorded() {
    let recorder = Recorder::with("sled:DIR/store", "", &[]);
    let wire = Wire::Anthropic;
    let events = |text: &str| wire.events(&wire.text(text, 1), 1);
    let said = |role: &str, text: &str| json!({ "role": role, "content": text });
    for number in 0..20 {
        let of = [("x-claude-code-session-id", &*format!("s{number}"))];
        let mut list = vec![said("user", "hi")];
        let mut exchanges = Vec::new();
        for turn in 0..3 {
            let words = format!("I'll look at the files of turn {turn}.");
            let body = json!({ "model": "m", "stream": true, "messages": list });
            let cut = Reply::cut_after(&events("I'll look at it."), 4);
            exchanges.push(recorder.ask("/v1/messages", &of, &body, cut).exchange);
            exchanges.push(recorder.ask("/v1/messages", &of, &body, Reply::of_events(&events(&words))).exchange);
            list.extend([said("assistant", &words), said("user", "on")]);
        }
        let settled: Vec<Value> = exchanges.iter().map(|exchange| recorder.settled(exchange)).collect();
        let hows: Vec<&str> = settled.iter().map(|settled| settled["how"].as_str().unwrap_or("none")).collect();
        assert_eq!(hows, ["new", "attempt", "continued", "attempt", "continued", "attempt"], "{settled:?}");
        let states: Vec<&str> = settled.iter().map(|settled| settled["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["cut", "complete", "cut", "complete", "cut", "complete"]);
        // Of the cut answers nothing is shown.
        let messages = recorder.messages(settled[0]["conversation"].as_str().unwrap());
        list.pop();
        assert_eq!(said::by_messages(&messages), said::by_items(wire, &list));
    }
}

/// A session of an agent with 76 KB around its messages: each turn is a call of a tool and its result.
fn session_of_turns(clears: bool) -> (usize, usize) {
    const TURNS: usize = 100;
    let (recorder, wire) = (Recorder::open(), Wire::Anthropic);
    let system = "You are an agent. ".repeat(330);
    let tools: Vec<Value> = (0..24)
        .map(|at| json!({ "name": format!("tool{at}"), "description": "It does this and that. ".repeat(125), "input_schema": {} }))
        .collect();
    let mut list = vec![json!({ "role": "user", "content": "Fix the build." })];
    let mut conversations = Vec::new();
    let mut said = list[0].to_string().len();
    for turn in 0..TURNS {
        let id = format!("t{turn}");
        let call =
            json!({ "type": "tool_use", "id": id, "name": "tool1", "input": { "path": format!("src/{turn}.rs") } });
        let result = json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id,
            "content": format!("{turn}: {}", "fn main() {} // a line of a file\n".repeat(30)) }] });
        let body = json!({ "model": "m", "system": system, "tools": tools, "messages": list });
        let answer = vec![json!({ "type": "text", "text": "I read the next file. " }), call];
        let got =
            recorder.ask("/v1/messages", &[("x-session-id", "s")], &body, Reply::json(&wire.whole(&answer, turn)));
        conversations.push(recorder.settled(&got.exchange)["conversation"].as_str().unwrap().to_owned());
        let answer = json!({ "role": "assistant", "content": answer });
        said += answer.to_string().len() + result.to_string().len();
        list.extend([answer, result]);
        if clears && turn >= 3 {
            list[2 * (turn - 3) + 2]["content"][0]["content"] = json!("[Old tool result content cleared]");
        }
    }
    conversations.dedup();
    assert_eq!(conversations.len(), 1);
    (durable_bytes(&recorder), said)
}

#[test]
fn a_long_session_takes_less_than_three_times_its_messages() {
    for clears in [false, true] {
        let (stored, said) = session_of_turns(clears);
        println!("cleared {clears}: {stored} bytes stored, {said} said");
        assert!(stored < 3 * said, "cleared {clears}: {stored} bytes for {said}");
    }
}

#[test]
fn no_key_is_stored_or_logged() {
    let recorder = Recorder::with("sled:DIR/store?cache_mb=1", "", &[]);
    let body = json!({
        "model": "m",
        "messages": [{ "role": "user", "content": "hi" }],
        "mcp_servers": [{ "type": "url", "url": "https://x/?sig=canary-url", "name": "x", "authorization_token": "canary-mcp" }],
        "tools": [
            { "type": "mcp", "server_label": "y", "authorization": "canary-tool", "headers": { "x-key": "canary-header-of-tool" } },
            { "type": "mcp", "server_url": "https://canary-user@y/mcp", "Authorization": "canary-capital" },
        ],
        "client_metadata": { "api_key": "canary-of-client" },
        "extra_headers": { "x-key": "canary-extra" },
        "extra_body": { "aws_secret_access_key": "canary-aws" },
        "metadata": { "user_id": "{\"device_id\":\"canary-device\",\"session_id\":\"s\"}" },
    });
    let keys = [
        ("authorization", "Bearer canary-bearer"),
        ("x-api-key", "canary-x-api-key"),
        ("x-goog-api-key", "canary-goog"),
        ("api-key", "canary-azure"),
        ("x-some-token", "canary-token"),
        ("cookie", "canary-cookie"),
    ];
    let path = "/v1/messages?key=canary-query&beta=true&access_token=canary-access&sig=canary-sig";
    // Servers of models say which key was wrong.
    let echo = json!({ "error": { "message": "Incorrect API key provided: canary-bearer, canary-x-api-key or canary-query.", "type": "x" } });
    let wire = Wire::Anthropic;
    let whole = Reply::json(&wire.whole(&wire.text("hello", 1), 1));
    let mut told = String::new();
    let event = format!("event: error\ndata: {}\n\n", json!({ "type": "error", "error": echo["error"] }));
    for reply in [Reply::error(401, &echo), Reply::stream().then(&event).end(), whole] {
        let got = recorder.ask(path, &keys, &body, reply);
        let settled = recorder.settled(&got.exchange);
        told += &settled.to_string();
        told += &json!(recorder.messages(settled["conversation"].as_str().unwrap())).to_string();
        if settled["state"] == "complete" {
            let (bytes, replaced) = recorder.request(&got.exchange);
            assert_eq!(
                replaced.as_deref(),
                Some("client_metadata, extra_body, extra_headers, mcp_servers, metadata, tools")
            );
            told += &String::from_utf8(bytes).unwrap();
        }
        let (head, _) = recorder.asked();
        assert!(head.contains("canary-bearer") && head.contains("key=canary-query"), "{head}");
    }
    let refused = recorder.client().send("POST", "/proxy/none/v1/messages", &keys, b"{}");
    told += &refused.text();
    told += &recorder.client().get("/metrics").text();
    told += &recorder.running.log_so_far();
    assert!(!told.contains("canary"), "{told}");
    assert!(told.contains("Incorrect API key provided: "), "{told}");
    let mut files = 0;
    let mut folders = vec![recorder.running.dir.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(6).any(|window| window == b"canary"), "{}", path.display());
        }
    }
    assert!(files > 2);
}

#[test]
fn what_is_durable_after_a_kill_is_a_beginning_of_what_happened() {
    let mut recorder = Recorder::with("sled:DIR/store?cache_mb=1", "", &[]);
    let wire = Wire::Anthropic;
    let events = wire.events(&answer(wire), 1);
    for (round, count) in (1..events.len()).step_by(3).enumerate() {
        let session = round.to_string();
        let mut open = begin(&recorder, &session, waiting(&events, count, round + 1));
        open.until_length(events[..count].concat().len());
        // At once, once the request is stored, and once words are.
        let exchange = open.answer.header("x-convo-exchange").unwrap().to_owned();
        let has_words = events[..count].iter().any(|event| event.contains("text_delta"));
        match round % 3 {
            0 => {}
            2 if has_words => {
                recorder.until_shown(&open, heard(wire, &events[..count])[0].trim_start_matches("assistant: "))
            }
            _ => drop(recorder.placed(&exchange)),
        }
        drop(open);
        recorder.kill_and_restart();
        recorder.go_on();
        let found = recorder.client().get(&format!("/api/v1/exchanges/{exchange}"));
        let all = heard(wire, &events[..count]);
        if found.status == 200 {
            let found = found.json();
            let messages = recorder.messages(found["conversation"].as_str().unwrap());
            let kept = said::by_messages(&messages);
            assert_eq!(kept[0], "user: hi", "{count}: an answer never stands alone");
            let is_beginning = kept[1..].iter().zip(&all).all(|(kept, said)| said.starts_with(&**kept) || kept == said);
            assert!(is_beginning && kept.len() <= all.len() + 1, "{count}: {kept:?} of {all:?}");
            assert!(kept.len() > 1 || !(round % 3 == 2 && has_words), "{count}: stored words are gone");
        } else {
            assert_eq!(round % 3, 0, "{count}: a stored request is gone");
        }
        // The client has what it got, which may be more than what is stored.
        let mut list = vec![json!({ "role": "user", "content": "hi" })];
        if has_words {
            let shown: String = all.iter().filter_map(|line| line.strip_prefix("assistant: ")).collect();
            list.push(json!({ "role": "assistant", "content": shown }));
            list.push(json!({ "role": "user", "content": "on" }));
        }
        let body = json!({ "model": "m", "messages": list });
        let reply = Reply::json(&wire.whole(&wire.text("yes", 2), 2));
        let next = recorder.ask("/v1/messages", &[("x-session-id", &session)], &body, reply);
        let settled = recorder.settled(&next.exchange);
        if found.status == 200 {
            assert_ne!(settled["how"], "forked", "{count}: {settled}");
            assert_eq!(settled["conversation"], found.json()["conversation"], "{count}: {settled}");
        }
        let shown = said::by_messages(&recorder.messages(settled["conversation"].as_str().unwrap()));
        let mut wanted = said::by_items(wire, &list);
        wanted.push("assistant: yes".to_owned());
        assert_eq!(shown, wanted, "{count}: {settled}");
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn an_encoded_request_is_read_and_passes_as_it_came() {
    for record in ["yes", "required"] {
        let recorder = Recorder::with("memory:", &format!("record = \"{record}\"\n"), &[]);
        let wire = Wire::Anthropic;
        let events = wire.events(&answer(wire), 1);
        let body = gzip(&hi(wire).to_string());
        let ask = |coding: &str| {
            let headers = [("x-session-id", "s"), ("content-encoding", coding)];
            let reply = Reply::of_events(&events);
            let mut open = recorder.begin(recorder.client(), "/v1/messages", &headers, &body, reply);
            let is_whole = open.end();
            passed(open, is_whole)
        };
        let got = ask("gzip");
        let (head, sent) = recorder.asked();
        assert!(head.contains("content-encoding: gzip") && sent == body, "{head}");
        let settled = recorder.settled(&got.exchange);
        assert_eq!((settled["state"].as_str(), stored(&recorder, &settled)), (Some("complete"), heard(wire, &events)));
        // It is kept as the client wrote it.
        assert_eq!(recorder.request(&got.exchange).0, hi(wire).to_string().as_bytes());
        for coding in ["deflate", "compress"] {
            let got = ask(coding);
            if record == "required" {
                assert_eq!(got.status, 415, "{coding}: {}", String::from_utf8_lossy(&got.body));
            } else {
                assert_eq!(recorder.settled(&got.exchange)["state"], "unreadable", "{coding}");
            }
        }
    }
}

#[test]
fn an_encoded_answer_is_read_and_passes_as_it_came() {
    let (recorder, wire) = (Recorder::open(), Wire::Anthropic);
    let events = wire.events(&answer(wire), 1);
    let encode = gzip;
    // Each event is encoded for itself: a client reads it when it comes.
    let encoded: Vec<Vec<u8>> = events.iter().map(|event| encode(event)).collect();
    for count in [4, events.len()] {
        let begun = Reply::stream().with_header("content-encoding: gzip");
        let mut reply = encoded[..count].iter().fold(begun, |reply, piece| reply.then_bytes(piece));
        if count == events.len() {
            reply = reply.end();
        }
        let session = count.to_string();
        let got =
            recorder.ask("/v1/messages", &[("x-session-id", &session), ("accept-encoding", "gzip")], &hi(wire), reply);
        assert_eq!(got.body, encoded[..count].concat());
        assert!(recorder.asked().0.contains("accept-encoding: gzip"));
        let settled = recorder.settled(&got.exchange);
        assert_eq!(settled["state"], if count == events.len() { "complete" } else { "cut" });
        assert_eq!(stored(&recorder, &settled), heard(wire, &events[..count]));
    }
    let whole = encode(&wire.whole(&answer(wire), 2).to_string());
    let reply = Reply::whole("200 OK", "application/json", &whole).with_header("content-encoding: gzip");
    let settled =
        recorder.settled(&recorder.ask("/v1/messages", &[("x-session-id", "whole")], &hi(wire), reply).exchange);
    assert_eq!((settled["state"].as_str(), stored(&recorder, &settled)), (Some("complete"), heard(wire, &events)));
    // An error's words are read, too; and what cannot be read passes all the same.
    let error = encode(&json!({ "type": "error", "error": { "type": "x", "message": "No." } }).to_string());
    let reply = Reply::whole("429 No", "application/json", &error).with_header("content-encoding: gzip");
    let settled =
        recorder.settled(&recorder.ask("/v1/messages", &[("x-session-id", "error")], &hi(wire), reply).exchange);
    assert_eq!((settled["state"].as_str(), settled["error"].as_str()), (Some("failed"), Some("No.")));
    for coding in ["gzip", "compress"] {
        let reply = Reply::whole("200 OK", "application/json", b"no such coding");
        let reply = reply.with_header(&format!("content-encoding: {coding}"));
        let got = recorder.ask("/v1/messages", &[("x-session-id", coding)], &hi(wire), reply);
        assert_eq!((got.is_whole, got.body.as_slice()), (true, &b"no such coding"[..]));
        assert_eq!(recorder.settled(&got.exchange)["state"], "unreadable");
    }
}

#[test]
fn a_server_that_ends_waits_for_answers_whose_clients_have_gone() {
    let mut recorder = Recorder::with("sled:DIR/store?cache_mb=1", "[server]\ndrain_seconds = 0\n", &[]);
    let wire = Wire::Anthropic;
    let events = wire.events(&answer(wire), 1);
    let mut open = begin(&recorder, "s", waiting(&events, 4, 1));
    open.until_length(events[..4].concat().len());
    let exchange = passed(open, false).exchange;
    recorder.placed(&exchange);
    recorder.running.signal("TERM");
    while !recorder.running.log().contains("ending: no new requests") {
        std::thread::sleep(Duration::from_millis(2));
    }
    recorder.go_on();
    assert_eq!(recorder.running.wait(), Some(0), "{}", recorder.running.log());
    recorder.restart();
    let settled = recorder.settled(&exchange);
    assert_eq!((settled["state"].as_str(), stored(&recorder, &settled)), (Some("complete"), heard(wire, &events)));
}

#[test]
fn what_must_be_recorded_is_durable_before_it_is_sent() {
    let recorder = Recorder::with("memory:", "record = \"required\"\n[limits]\nbody_bytes = 2000\n", &[]);
    let wire = Wire::Anthropic;
    let events = wire.events(&answer(wire), 1);
    let reply = Reply::default().wait(1);
    let reply = Reply::of_events(&events).after(reply);
    let body = hi(wire).to_string();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            let mut open = recorder.begin(recorder.client(), "/v1/messages", &[], body.as_bytes(), reply);
            let is_whole = open.end();
            passed(open, is_whole)
        });
        let (_, sent) = recorder.asked();
        assert_eq!(sent, body.as_bytes());
        // The upstream has not answered yet.
        let conversations = recorder.conversations();
        assert_eq!(conversations[0]["messages"], 1, "{conversations:?}");
        recorder.go_on();
        let got = call.join().unwrap();
        assert!(got.is_whole);
        assert_eq!(recorder.settled(&got.exchange)["state"], "complete");
    });
    let long = json!({ "model": "m", "messages": [{ "role": "user", "content": "x".repeat(3_000) }] });
    let answer = recorder.client().post("/proxy/up/v1/messages", &long);
    assert_eq!(answer.status, 413, "{}", answer.text());
    let unread = recorder.client().send("POST", "/proxy/up/v1/messages", &[], b"no json");
    assert_eq!(unread.status, 415, "{}", unread.text());
    assert!(recorder.asked.lock().unwrap().recv_timeout(Duration::from_millis(1)).is_err(), "nothing was sent");
}

#[test]
fn many_answers_at_one_time_are_each_what_they_are() {
    const CALLS: usize = 512;
    let (recorder, wire) = (Recorder::open(), Wire::Anthropic);
    let said =
        |number: usize| vec![json!({ "type": "text", "text": format!("This is the answer {number}. ").repeat(20) })];
    let exchanges = std::thread::scope(|scope| {
        let ask = |number: usize| {
            let (recorder, said) = (&recorder, &said);
            move || {
                let events = wire.events(&said(number), number);
                let mut open = begin(recorder, &number.to_string(), waiting(&events, 4, 1));
                assert!(open.end(), "{number}");
                let passed = passed(open, true);
                assert_eq!(passed.body, events.concat().into_bytes(), "{number}");
                passed.exchange
            }
        };
        let mut calls = Vec::new();
        for number in 0..CALLS {
            calls.push(scope.spawn(ask(number)));
            // No more connections begin at one time than a listener keeps waiting.
            if number >= 64 {
                recorder.asked();
            }
        }
        // All of them wait in the middle of their answers.
        (0..64).for_each(|_| drop(recorder.asked()));
        recorder.go_on();
        calls.into_iter().map(|call| call.join().unwrap()).collect::<Vec<_>>()
    });
    for (number, exchange) in exchanges.iter().enumerate() {
        let settled = recorder.settled(exchange);
        assert_eq!(settled["state"], "complete", "{number}: {settled}");
        assert_eq!(stored(&recorder, &settled), heard(wire, &wire.events(&said(number), number)), "{number}");
    }
    assert_eq!(recorder.conversations().len(), CALLS);
}

/// What there is no room for is not stored; the client has all of it.
#[test]
fn an_answer_that_comes_faster_than_it_is_stored_passes_whole() {
    const HELD: usize = 4 * 1024 * 1024;
    let limits = format!("[limits]\nheld_bytes = {HELD}\nbody_bytes = {HELD}\n");
    let recorder = Recorder::with("memory:", &limits, &[]);
    let wire = Wire::Anthropic;
    let events = wire.events(&[json!({ "type": "text", "text": "long ".repeat(400_000) })], 1);
    let mut open = begin(&recorder, "s", waiting(&events, 3, 1));
    open.until_length(events[..3].concat().len());
    let conversation = recorder.placed(open.answer.header("x-convo-exchange").unwrap());
    let is_begun = |message: &Value| message["chunks"][0]["text"].as_str().is_some_and(|text| text.starts_with("long"));
    let begun = std::time::Instant::now();
    while !recorder.messages(&conversation).iter().any(is_begun) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the beginning of the answer is not stored");
    }
    // Another request holds nearly all that requests may hold: twice what has come of it.
    let body = vec![b' '; (HELD - 48 * 1024) / 2];
    let length = (HELD).to_string();
    let path = "/api/v1/conversations/other/messages";
    let mut upload = recorder.client().connect().unwrap();
    upload.write_all(recorder.client().head("POST", path, &[("content-length", &length)]).as_bytes()).unwrap();
    upload.write_all(&body).unwrap();
    let held = || {
        let metrics = recorder.client().get("/metrics").text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("convo_held_bytes "));
        line.unwrap().parse::<usize>().unwrap()
    };
    let begun = std::time::Instant::now();
    while held() < HELD - 64 * 1024 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} bytes are held", held());
    }
    recorder.go_on();
    assert!(open.end());
    let Passed { exchange, body, .. } = passed(open, true);
    assert!(body == events.concat().into_bytes());
    let settled = recorder.settled(&exchange);
    assert_eq!(settled["state"], "too_fast", "{settled}");
    drop(upload);
    let stored = settled_message(&recorder, &settled);
    let text = stored["chunks"][0]["text"].as_str().unwrap();
    assert!(!text.is_empty() && "long ".repeat(400_000).starts_with(text) && stored["finish_reason"] == "interrupted");
    let got = recorder.ask(
        "/v1/messages",
        &[("x-session-id", "t")],
        &hi(wire),
        Reply::json(&wire.whole(&wire.text("yes", 1), 1)),
    );
    assert_eq!(recorder.settled(&got.exchange)["state"], "complete");
}

/// A client has an answer's last word before HTTP ends it: its next request may name the answer then.
#[test]
fn an_answer_is_named_before_it_has_ended() {
    let (recorder, wire) = (Recorder::open(), Wire::Responses);
    let events = wire.events(&wire.text("yes", 1), 1);
    let mut open = recorder.begin(
        recorder.client(),
        "/v1/responses",
        &[],
        hi(wire).to_string().as_bytes(),
        waiting(&events, events.len(), 1),
    );
    open.until(b"response.completed");
    let next =
        json!({ "model": "m", "input": [{ "role": "user", "content": "on" }], "previous_response_id": "resp_1" });
    let next = recorder.ask("/v1/responses", &[], &next, Reply::json(&wire.whole(&wire.text("and on", 2), 2)));
    recorder.go_on();
    assert!(open.end());
    let first = recorder.settled(&passed(open, true).exchange);
    let settled = recorder.settled(&next.exchange);
    assert_eq!((&settled["how"], &settled["conversation"]), (&json!("continued"), &first["conversation"]));
}

/// Some upstreams answer while they read.
#[test]
fn an_answer_may_begin_before_its_request_has_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = format!("[[upstream]]\nname = \"early\"\nurl = \"http://{}\"\n", listener.local_addr().unwrap());
    let recorder = Recorder::with("memory:", &settings, &[]);
    let body = hi(Wire::Anthropic).to_string();
    let (first, rest) = body.split_at(body.len() / 2);
    let length = body.len().to_string();
    // When the rest of it comes: before the answer's end, after it when the upstream has gone, or never.
    for (when, state) in [("before", "complete"), ("after", "complete"), ("never", "cut")] {
        let client = recorder.client();
        let mut stream = client.connect().unwrap();
        let head = client.head("POST", "/proxy/early/v1/messages", &[("content-length", &length)]);
        stream.write_all(format!("{head}{first}").as_bytes()).unwrap();
        let (mut upstream, _) = listener.accept().unwrap();
        let mut come = Vec::new();
        let mut until = |end: &str| {
            while !come.ends_with(end.as_bytes()) {
                let mut piece = [0; 4096];
                let length = upstream.read(&mut piece).unwrap();
                assert!(length > 0, "{}", String::from_utf8_lossy(&come));
                come.extend_from_slice(&piece[..length]);
            }
            upstream.try_clone().unwrap()
        };
        let mut answers = until(first);
        let mut steps = Reply::of_events(&Wire::Anthropic.events(&answer(Wire::Anthropic), 1)).0.into_iter();
        let mut say = |count: usize| {
            for step in steps.by_ref().take(count) {
                let Step::Send(bytes) = step else { panic!("it waits") };
                answers.write_all(&bytes).unwrap();
            }
        };
        say(2);
        // The answer has come, and the request has not ended.
        assert!(stream.peek(&mut [0]).unwrap() > 0);
        if when == "before" {
            stream.write_all(rest.as_bytes()).unwrap();
            until(rest);
        }
        say(usize::MAX);
        if when == "after" {
            answers.shutdown(Shutdown::Both).unwrap();
            stream.write_all(rest.as_bytes()).unwrap();
        }
        let come = read(&mut BufReader::new(&stream)).unwrap();
        let exchange = come.header("x-convo-exchange").unwrap().to_owned();
        drop(stream);
        let settled = recorder.settled(&exchange);
        assert_eq!(settled["state"], state, "{settled}");
        assert_eq!(settled["message"].is_u64(), when != "never", "{settled}");
    }
}

/// That is no fault of the upstream's.
#[test]
fn a_body_that_does_not_come_is_the_clients_fault() {
    let recorder = Recorder::with("memory:", "[limits]\nidle_seconds = 1\n", &[]);
    let client = recorder.client();
    for path in ["/proxy/up/v1/messages", "/proxy/up/v1/embeddings"] {
        let mut stream = client.connect().unwrap();
        let head = client.head("POST", path, &[("content-length", "1000")]);
        stream.write_all(format!("{head}{{\"model\":").as_bytes()).unwrap();
        let refused = read(&mut BufReader::new(&stream)).unwrap();
        let code = &refused.json()["error"]["code"];
        assert_eq!((refused.status, code), (400, &json!("broken_body")), "{}", refused.text());
        if path.ends_with("messages") {
            let settled = recorder.settled(refused.header("x-convo-exchange").unwrap());
            assert_eq!(settled["state"], "cut", "{settled}");
        }
    }
}
