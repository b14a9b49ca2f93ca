//! Responses by WebSocket.

use serde_json::{Value, json};

use super::{DURABLE, is_in_files, path, request, says, sent, server, text};
use crate::common::http::Client;
use crate::recorded::Reply;
use crate::recorded::answers::Wire;

/// A connection by WebSocket.
struct Socket(tungstenite::WebSocket<std::net::TcpStream>);

impl Socket {
    fn open(client: &Client) -> Self {
        use tungstenite::client::IntoClientRequest;
        let mut request = format!("ws://{}/v1/responses", client.address).into_client_request().unwrap();
        if let Some(key) = &client.key {
            request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        }
        Self(tungstenite::client(request, client.connect().unwrap()).unwrap().0)
    }

    fn say(&mut self, input: &str, more: Value) {
        let mut body = request(json!(input), more);
        body["type"] = "response.create".into();
        self.0.send(body.to_string().into()).unwrap();
    }

    fn next(&mut self) -> Value {
        loop {
            let message = self.0.read().unwrap();
            if let tungstenite::Message::Text(text) = message {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// The last event of a request.
    fn ask(&mut self, input: &str, more: Value) -> Value {
        self.say(input, more);
        loop {
            let event = self.next();
            if ["response.completed", "response.failed", "error"].contains(&event["type"].as_str().unwrap()) {
                return event;
            }
        }
    }
}

#[test]
fn a_socket_has_what_is_not_stored_until_it_closes() {
    let server = server(DURABLE, "openai-chat", &["ada", "bob"]);
    let [ada, bob] = &server.clients[..] else { panic!() };
    let mut socket = Socket::open(ada);
    let unstored = || json!({ "store": false });
    let after = |id: &Value| json!({ "store": false, "previous_response_id": id });
    let say = |text: &str| server.answers(says(Wire::Chat, text));
    say("one");
    let first = socket.ask("canary-1", unstored())["response"].clone();
    assert_eq!(text(&first), "one");
    sent(&server);
    say("two");
    let second = socket.ask("canary-2", after(&first["id"]))["response"].clone();
    let upstream = sent(&server);
    assert!(upstream.contains("canary-1") && upstream.contains("one"), "{upstream}");
    // It is of this connection alone, and by HTTP it never was.
    for client in [ada, bob] {
        let refused = Socket::open(client).ask("3", after(&second["id"]));
        assert_eq!(
            (&refused["error"]["code"], &refused["status"]),
            (&json!("previous_response_not_found"), &json!(400))
        );
        assert_eq!(client.get(&path(&second)).status, 404);
    }
    // What failed is not gone on from again.
    server.answers(Reply::error(500, &json!({ "error": { "message": "no" } })));
    assert_eq!(socket.ask("3", after(&second["id"]))["error"]["code"], "upstream_error");
    assert_eq!(socket.ask("3", after(&second["id"]))["error"]["code"], "previous_response_not_found");
    for (sent, code) in [("{}", "invalid_value"), ("no", "invalid_json"), ("[1]", "invalid_type")] {
        socket.0.send(sent.into()).unwrap();
        assert_eq!(socket.next()["error"]["code"], code, "{sent}");
    }
    socket.0.send(tungstenite::Message::binary(vec![1])).unwrap();
    assert_eq!(socket.next()["error"]["code"], "invalid_message");
    // What is stored is there for all.
    say("three");
    let third = socket.ask("4", json!({}))["response"].clone();
    assert_eq!(ada.get(&path(&third)).ok(), third);
    assert_eq!(bob.get(&path(&third)).status, 404);
    assert!(!is_in_files(server.running.dir.path(), "canary"));
    assert_eq!(ada.get("/v1/responses").code(405), "method_not_allowed");
    let nobody = Client { key: None, ..ada.clone() };
    assert_eq!(nobody.get("/v1/responses").status, 401);
}

#[test]
fn a_socket_is_alive_while_it_answers() {
    let server = server("memory:", "openai-chat", &[]);
    let mut socket = Socket::open(server.client());
    let events = Wire::Chat.events(&Wire::Chat.text("one two three", 1), 1);
    let half = events.len() / 2;
    let begin = Reply::cut_after(&events, half).wait(1);
    server.answers(events[half..].iter().fold(begin, |reply, event| reply.then(event)).end());
    socket.say("1", json!({}));
    assert_eq!(socket.next()["type"], "response.created");
    // Clients take a connection for dead on which no ping is answered.
    socket.0.send(tungstenite::Message::Ping("are you there?".into())).unwrap();
    while !matches!(socket.0.read().unwrap(), tungstenite::Message::Pong(_)) {}
    // The next request waits for the end of this answer.
    socket.say("2", json!({}));
    server.answers(says(Wire::Chat, "four"));
    server.go_on();
    let mut ends = std::iter::repeat_with(|| socket.next()).filter(|event| event["type"] == "response.completed");
    assert_eq!(text(&ends.next().unwrap()["response"]), "one two three");
    assert_eq!(text(&ends.next().unwrap()["response"]), "four");
}
