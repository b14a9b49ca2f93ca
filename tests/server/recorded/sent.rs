//! Requests come back byte for byte, whatever they are written like.

use serde_json::{Value, json};

use super::answers::Wire;
use super::{Recorder, Reply, passed};

const PATH: &str = "/v1/messages";

/// A call of a session with these bytes, that is answered with a text: its exchange.
fn ask(recorder: &Recorder, session: &str, body: &str, answer: &str, number: usize) -> String {
    let wire = Wire::Anthropic;
    let reply = Reply::of_events(&wire.events(&wire.text(answer, number), number));
    let headers = [("x-session-id", session)];
    let mut open = recorder.begin(recorder.client(), PATH, &headers, body.as_bytes(), reply);
    assert!(open.end());
    let exchange = passed(open, true).exchange;
    assert_eq!(recorder.settled(&exchange)["state"], "complete", "{}", recorder.running.log());
    exchange
}

fn is_as_sent(recorder: &Recorder, exchange: &str, body: &str) {
    let (bytes, replaced) = recorder.request(exchange);
    assert_eq!((String::from_utf8(bytes).unwrap().as_str(), replaced), (body, None));
}

/// The turns of a session whose client writes each request in another way.
fn turns() -> Vec<String> {
    // One pixel, and more than a picture needs.
    let picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ".to_owned() + &"QUJD".repeat(1_000);
    let system = "You are an agent. ".repeat(200);
    vec![
        format!(
            "{{ \"model\":\"m\",\n \"system\" : \"{system}\",\"messages\":[ {{\"role\":\"user\",\"content\":\"h\\u00e9 \\/ there\"}} ] }}"
        ),
        // The order of the fields, escapes and marks of caches change.
        format!(
            "{{\"messages\":[{{\"content\":[{{\"type\":\"text\",\"text\":\"hé / there\",\"cache_control\":{{\"type\":\"ephemeral\"}}}}],\"role\":\"user\"}},\
             {{\"role\":\"assistant\",\"content\":\"yes 0\"}},{{\"role\":\"user\",\"content\":[{{\"type\":\"image\",\"source\":\
             {{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"{picture}\"}}}},{{\"type\":\"text\",\"text\":\"and this?\"}}]}}],\
             \"system\":\"{system}\",\"temperature\":1.0,\"model\":\"m\"}}\n"
        ),
        format!(
            "{{\"messages\":[{{\"content\":[{{\"type\":\"text\",\"text\":\"hé / there\"}}],\"role\":\"user\"}},\
             {{\"role\":\"assistant\",\"content\":\"yes 0\"}},{{\"role\":\"user\",\"content\":[{{\"type\":\"image\",\"source\":\
             {{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"{picture}\"}}}},{{\"type\":\"text\",\"text\":\"and this?\"}}]}},\
             {{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"yes 1\"}}]}},{{\"role\":\"user\",\"content\":\"thanks\"}}],\
             \"system\":\"{system}!\",\"temperature\":1,\"model\":\"m\",\"model\":\"m\"}}"
        ),
    ]
}

#[test]
fn a_request_comes_back_byte_for_byte() {
    let mut recorder = Recorder::with("sled:DIR/store?cache_mb=1", "", &[]);
    let turns = turns();
    let mut exchanges = Vec::new();
    for (number, body) in turns.iter().enumerate() {
        exchanges.push(ask(&recorder, "s", body, &format!("yes {number}"), number));
        // The next one is told from what is stored alone.
        recorder.kill_and_restart();
    }
    for (exchange, body) in exchanges.iter().zip(&turns) {
        is_as_sent(&recorder, exchange, body);
    }
    // Another answer to the second request: a fork.
    let again = ask(&recorder, "s", &turns[1], "no", 9);
    assert_eq!(recorder.settled(&again)["how"], "forked");
    is_as_sent(&recorder, &again, &turns[1]);
    // The messages cost what they cost once: the picture is not there again.
    let conversation = recorder.settled(&exchanges[1])["conversation"].as_str().unwrap().to_owned();
    let stored = recorder.messages(&conversation);
    let told = stored[3]["convo"]["sent"]["bytes"].as_str().unwrap();
    assert!(told.len() < 700, "{}: {told}", told.len());
    for (path, code) in [("none", "not_found"), ("0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b", "not_found")] {
        assert_eq!(recorder.client().get(&format!("/api/v1/exchanges/{path}/request")).code(404), code);
    }
}

/// Many clients write each field that they know, and some in lines.
#[test]
fn a_request_of_several_lines_with_nulls_is_as_it_was_sent() {
    let mut recorder = Recorder::with("sled:DIR/store", "", &[]);
    let user = |text: &str| json!({ "role": "user", "content": text });
    let tools = json!([{ "name": "t", "description": "a tool of some words", "input_schema": { "type": "object" } }]);
    let body = |messages: &[Value]| {
        let body = json!({ "model": "m", "stop": null, "temperature": null, "tools": tools, "messages": messages });
        serde_json::to_string_pretty(&body).unwrap()
    };
    let list = [user("hi"), json!({ "role": "assistant", "content": "yes 0" }), user("on")];
    let bodies = [body(&list[..1]), body(&list)];
    let exchanges: Vec<String> =
        bodies.iter().enumerate().map(|(at, body)| ask(&recorder, "s", body, &format!("yes {at}"), at)).collect();
    recorder.kill_and_restart();
    for (exchange, body) in exchanges.iter().zip(&bodies) {
        is_as_sent(&recorder, exchange, body);
    }
}

#[test]
fn what_was_redacted_is_in_no_request_any_more() {
    let recorder = Recorder::open();
    let user = |text: &str| json!({ "role": "user", "content": text });
    let model = |text: &str| json!({ "role": "assistant", "content": text });
    let body = |list: &[Value]| json!({ "model": "m", "messages": list }).to_string();
    let secret = "the s\u{e9}cret word";
    let list = [user("hi"), model("yes 0"), user(secret), model("yes 1"), user("on"), model("yes 2"), user("and on")];
    let bodies: Vec<String> = [1, 3, 5].iter().map(|count| body(&list[..*count])).collect();
    let exchanges: Vec<String> = bodies
        .iter()
        .enumerate()
        .map(|(number, body)| ask(&recorder, "s", body, &format!("yes {number}"), number))
        .collect();
    let conversation = recorder.settled(&exchanges[0])["conversation"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/conversations/{conversation}/messages/2/redact");
    recorder.client().post(&path, &json!({})).ok();
    let given = |exchange: &str| recorder.client().get(&format!("/api/v1/exchanges/{exchange}/request"));
    is_as_sent(&recorder, &exchanges[0], &bodies[0]);
    // The client sends it again and again.
    let again = [ask(&recorder, "s", &body(&list), "yes 3", 3), ask(&recorder, "s", &bodies[1], "no", 4)];
    for exchange in exchanges[1..].iter().chain(&again) {
        assert_eq!(given(exchange).code(404), "not_kept");
    }
}

/// A session goes on where there is no room for what its request could be compared with.
#[test]
fn a_request_is_answered_where_an_earlier_one_does_not_fit() {
    let mut recorder = Recorder::with("sled:DIR/store", "[limits]\nheld_bytes = 67108864\nbody_bytes = 4194304\n", &[]);
    let wire = Wire::Responses;
    let asks = |recorder: &Recorder, text: &str, previous: Value, number: usize| {
        let body =
            json!({ "model": "m", "input": [{ "role": "user", "content": text }], "previous_response_id": previous });
        let reply = Reply::json(&wire.whole(&wire.text("yes", number), number));
        let exchange = recorder.ask("/v1/responses", &[], &body, reply).exchange;
        (recorder.settled(&exchange), exchange)
    };
    let (first, exchange) = asks(&recorder, &"x".repeat(2 << 20), Value::Null, 1);
    recorder.request(&exchange);
    let (_, exchange) = asks(&recorder, "on", json!("resp_1"), 2);
    recorder.request(&exchange);
    recorder.running.kill();
    recorder.configure(|settings| settings.replace("67108864", "4194304"));
    recorder.restart();
    let (third, exchange) = asks(&recorder, "and on", json!("resp_2"), 3);
    let log = || recorder.running.log();
    assert_eq!((&third["state"], &third["how"]), (&json!("complete"), &json!("continued")), "{}", log());
    assert_eq!(third["conversation"], first["conversation"]);
    let request = recorder.client().get(&format!("/api/v1/exchanges/{exchange}/request"));
    assert_eq!(request.code(404), "not_kept");
}

#[test]
fn who_may_read_a_request() {
    let recorder = Recorder::with("memory:", "", &["ada", "bob"]);
    let wire = Wire::Anthropic;
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] }).to_string();
    let reply = Reply::json(&wire.whole(&wire.text("hello", 1), 1));
    let mut open = recorder.begin(&recorder.clients[0], PATH, &[], body.as_bytes(), reply);
    assert!(open.end());
    let exchange = passed(open, true).exchange;
    recorder.settled_of(&recorder.clients[0], &exchange);
    let path = format!("/api/v1/exchanges/{exchange}/request");
    assert_eq!(recorder.clients[0].get(&path).body, body.as_bytes());
    assert_eq!(recorder.clients[1].get(&path).code(404), "not_found");
}

/// What `convo prompt --at` shows for an answer says the same as what was sent for it.
#[test]
fn a_prompt_at_an_answer_says_what_was_sent() {
    let recorder = Recorder::open();
    let turns = turns();
    for (number, body) in turns.iter().enumerate() {
        let exchange = ask(&recorder, "s", body, &format!("yes {number}"), number);
        let settled = recorder.settled(&exchange);
        let conversation = settled["conversation"].as_str().unwrap();
        let path = format!("/api/v1/conversations/{conversation}");
        let answer = recorder.client().get(&format!("{path}/messages/{}", settled["message"])).ok();
        let at = answer["first_seq"].as_u64().unwrap() - 1;
        let prompt = recorder.client().get(&format!("{path}/prompt?for=anthropic&at={at}")).ok();
        let sent: Value = serde_json::from_slice(&recorder.request(&exchange).0).unwrap();
        let said = |request: &Value| super::said::by_items(Wire::Anthropic, request["messages"].as_array().unwrap());
        assert_eq!(said(&prompt["request"]), said(&sent), "{number}");
    }
}
