//! A provider's answers that are uploaded piece by piece, cut, and sent again.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{Answer, Client, Events, read};

pub(crate) const END: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

pub(crate) fn delta(text: &str) -> String {
    format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }))
}

/// An upload.
pub(crate) struct Upload(pub(crate) TcpStream);

impl Upload {
    pub(crate) fn begin(client: &Client, conversation: &str, headers: &[(&str, &str)]) -> Self {
        let mut stream = client.connect().unwrap();
        let all = [&[("transfer-encoding", "chunked"), ("connection", "close")], headers].concat();
        let head = client.head("POST", &format!("{conversation}/ingest?from=openai-chat"), &all);
        stream.write_all(head.as_bytes()).unwrap();
        Self(stream)
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.0.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).unwrap();
    }

    pub(crate) fn answer(mut self) -> Answer {
        // A server that refuses it has closed the connection.
        let _ = self.0.write_all(b"0\r\n\r\n");
        read(&mut BufReader::new(self.0)).unwrap()
    }

    pub(crate) fn finish(self) -> Value {
        self.answer().ok()
    }
}

/// Waits until a text has come.
pub(crate) fn has_come(events: &mut Events, text: &str) {
    while !events.next().unwrap().data["chunk"]["text"].as_str().is_some_and(|came| came.contains(text)) {}
}

/// An upload to `first` is cut by `cut`, and `second` sends it again.
pub(crate) fn is_cut_and_comes_again(first: &Client, second: impl Fn() -> Client, cut: impl FnOnce(Upload)) {
    let made = first.post("/v1/conversations", &json!({})).ok();
    let items = format!("/v1/conversations/{}/items", made["id"].as_str().unwrap());
    let chat = format!("/api/v1/conversations/{}", made["id"].as_str().unwrap());
    let say = json!({ "role": "user", "chunks": [{ "type": "text", "text": "When?" }] });
    let asked = first.post(&format!("{chat}/messages"), &say).ok()["last_seq"].as_u64().unwrap();
    let key = [("idempotency-key", "k")];
    let send = |client: &Client, texts: &[&str]| {
        let body = texts.iter().map(|text| delta(text)).collect::<String>() + END;
        client.send("POST", &format!("{chat}/ingest?from=openai-chat&expect={asked}"), &key, body.as_bytes())
    };
    let mut events = first.follow(&format!("{chat}/events?since={asked}"), &[]);
    let mut upload = Upload::begin(first, &chat, &key);
    upload.push(&delta("It is "));
    has_come(&mut events, "It is ");
    let busy = send(&second(), &["It is ", "noon"]);
    assert_eq!((busy.code(409), busy.header("retry-after")), ("being_written".to_owned(), Some("1")));
    cut(upload);
    let client = second();
    let begun = Instant::now();
    while client.get(&format!("{chat}/messages/1")).ok()["state"] != "interrupted" {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", client.get(&format!("{chat}/messages/1")));
        std::thread::sleep(Duration::from_millis(20));
    }
    let unfinished = client.get("/api/v1/unfinished").ok()["messages"].clone();
    assert_eq!((&unfinished[0]["message_index"], &unfinished[0]["state"]), (&json!(1), &json!("interrupted")));
    assert_eq!(client.get(&format!("{items}?order=asc")).ok()["data"][1]["status"], "incomplete");

    // It comes again: all of it is stored, and what was cut is hidden.
    let stored = send(&client, &["It is ", "noon"]).ok();
    assert_eq!(
        (&stored["duplicate"], &stored["finish_reason"], &stored["message_indexes"]),
        (&json!(false), &json!("stop"), &json!([2]))
    );
    // Whatever its pieces are.
    for pieces in [&["It is ", "noon"][..], &["It", " is noon"]] {
        let again = send(&client, pieces).ok();
        assert_eq!(
            (&again["duplicate"], &again["finish_reason"], &again["message_indexes"], &again["last_seq"]),
            (&json!(true), &json!("stop"), &json!([2]), &stored["last_seq"])
        );
    }
    for others in [&["It is ", "nine"][..], &["It is ", "noon."], &["It is "], &[""]] {
        assert_eq!(send(&client, others).code(422), "key_reused", "{others:?}");
    }
    let messages = client.get(&format!("{chat}/messages")).ok();
    let seen =
        |at: usize| (messages["messages"][at]["index"].clone(), messages["messages"][at]["chunks"][0]["text"].clone());
    assert_eq!((seen(0), seen(1)), ((json!(0), json!("When?")), (json!(2), json!("It is noon"))));
    assert_eq!(client.get(&chat).ok()["messages"], 2);
    assert_eq!(client.get("/api/v1/unfinished").ok()["messages"], json!([]));
    assert_eq!(client.get(&format!("{items}?order=asc")).ok()["data"][1]["status"], "completed");
    assert_eq!(client.post("/api/v1/admin/verify", &json!({})).ok()["problems"], json!([]));
}
