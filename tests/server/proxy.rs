//! What passes through the proxy, against an upstream of raw bytes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use crate::common::http::Client;
use crate::common::running::Running;

/// An upstream that gives one prepared answer a connection, and says what it was asked.
struct Upstream {
    address: String,
    asked: Receiver<(String, Vec<u8>)>,
}

impl Upstream {
    fn answering(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (say, asked) = channel();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = say.send(request(&mut stream));
                let _ = stream.write_all(&answer);
            }
        });
        Self { address, asked }
    }

    fn served(&self, more: &str) -> (Running, tempfile::TempDir) {
        let dir = crate::common::tempdir().unwrap();
        let file = dir.path().join("convo.toml");
        let settings = format!("[[upstream]]\nname = \"up\"\nurl = \"http://{}\"\n{more}", self.address);
        std::fs::write(&file, settings).unwrap();
        (Running::start("memory:", &["--config", file.to_str().unwrap()]), dir)
    }
}

/// The head of a request, in lower case, and its body.
fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut piece).unwrap();
        bytes.extend_from_slice(&piece[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let lower = head.to_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        if bytes.len() >= end + 4 + length || read == 0 {
            return (head, bytes[end + 4..].to_vec());
        }
    }
}

/// Sends raw bytes: all that comes back until the connection ends.
fn raw(client: &Client, bytes: &[u8]) -> Vec<u8> {
    let mut stream = client.connect().unwrap();
    stream.write_all(bytes).unwrap();
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    all
}

const STREAM: &str =
    "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi \u{20ac}\"}}]}\n\ndata: [DONE]\n\n";

fn chunked(body: &str) -> Vec<u8> {
    let mut all = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nset-cookie: a=b\r\nx-request-id: theirs\r\n\
        transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        .to_vec();
    for byte in body.as_bytes() {
        all.extend_from_slice(b"1\r\n");
        all.push(*byte);
        all.extend_from_slice(b"\r\n");
    }
    all.extend_from_slice(b"0\r\n\r\n");
    all
}

#[test]
fn bytes_pass_as_they_came_both_ways() {
    let upstream = Upstream::answering(vec![chunked(STREAM)]);
    let (running, _dir) = upstream.served("");
    let body = "{ \"model\" :\"m\",\n \"messages\":[{\"role\":\"user\",\"content\":\"\\u00e9 1.0\"}]}";
    let headers = [("authorization", "Bearer sk-1"), ("x-convo-key", "k"), ("cookie", "c=d"), ("x-request-id", "mine")];
    let answer = running.client.send("POST", "/proxy/up/v1/chat/completions?a=%20b&a", &headers, body.as_bytes());
    assert_eq!((answer.status, answer.text()), (200, STREAM.to_owned()));
    assert_eq!((answer.header("set-cookie"), answer.header("x-request-id")), (None, Some("theirs")));
    assert!(answer.header("x-convo-exchange").is_some());
    let (head, sent) = upstream.asked.recv().unwrap();
    assert_eq!(sent, body.as_bytes());
    assert!(head.starts_with("POST /v1/chat/completions?a=%20b&a HTTP/1.1\r\n"), "{head}");
    let lower = head.to_lowercase();
    assert!(lower.contains("authorization: bearer sk-1") && lower.contains("x-request-id: mine"), "{head}");
    assert!(lower.contains(&format!("host: {}", upstream.address)), "{head}");
    assert!(!lower.contains("x-convo") && !lower.contains("cookie"), "{head}");
}

#[test]
fn an_answer_that_is_cut_does_not_end_cleanly() {
    let whole = chunked("data: x\n\n");
    let head = whole.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let cuts: Vec<usize> = (head..whole.len()).collect();
    let upstream = Upstream::answering(cuts.iter().map(|cut| whole[..*cut].to_vec()).collect());
    let (running, _dir) = upstream.served("");
    for cut in cuts {
        let sent = running.client.head("POST", "/proxy/up/v1/chat/completions", &[("content-length", "2")]);
        let answer = raw(&running.client, format!("{sent}{{}}").as_bytes());
        assert!(!answer.ends_with(b"0\r\n\r\n"), "cut at {cut}: {}", String::from_utf8_lossy(&answer));
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_refused_and_goes_nowhere() {
    let upstream = Upstream::answering(Vec::new());
    let (running, _dir) = upstream.served("");
    let table = [
        (400, "/proxy/up/v1/../x", "content-length: 0\r\n"),
        (400, "/proxy/up/v1/%2e%2E/x", "content-length: 0\r\n"),
        (400, "/proxy/up//evil/x", "content-length: 0\r\n"),
        (400, "/proxy/up/a%2fb", "content-length: 0\r\n"),
        (400, "/proxy/up/v1/x", "content-length: 1\r\ncontent-length: 2\r\n"),
        (400, "/proxy/up/v1/x", "connection: x-api-key\r\nx-api-key: k\r\n"),
        (400, "/proxy/up/v1/x?key=convo_secret", ""),
        (426, "/proxy/up/v1/responses", "connection: upgrade\r\nupgrade: websocket\r\n"),
        (404, "/proxy/other/v1/x", ""),
        (404, "/v1/chat/completions", ""),
    ];
    for (status, path, headers) in table {
        let host = &running.client.address;
        let sent = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n");
        let mut stream = running.client.connect().unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(String::from_utf8_lossy(&start), format!("HTTP/1.1 {status}"), "{path} {headers}");
    }
    assert!(upstream.asked.try_recv().is_err());
}

#[test]
fn what_v1_does_not_serve_goes_to_the_default_upstream() {
    let answer =
        b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let upstream = Upstream::answering(vec![answer.to_vec()]);
    let (running, _dir) = upstream.served("default = true\n");
    let answer = running.client.get("/v1/models");
    assert_eq!((answer.status, answer.header("retry-after"), answer.text().as_str()), (429, Some("7"), "{}"));
    assert!(upstream.asked.recv().unwrap().0.starts_with("GET /v1/models HTTP/1.1"));
    assert_eq!(running.client.get("/v1/conversations/none").status, 404);
}

#[test]
fn an_upstream_that_is_not_there_is_a_clear_error() {
    let upstream = Upstream::answering(Vec::new());
    let (running, _dir) = upstream.served("");
    // The thread that listened has ended.
    let answer = running.client.post("/proxy/up/v1/chat/completions", &serde_json::json!({}));
    assert_eq!(answer.status, 502, "{}", answer.text());
    let answer = running.client.post("/proxy/up/v1/messages", &serde_json::json!({}));
    assert_eq!(answer.of(502)["type"], "error");
    // What has become of it can be asked.
    let exchange = answer.header("x-convo-exchange").unwrap();
    let found = || running.client.get(&format!("/api/v1/exchanges/{exchange}")).ok()["state"].clone();
    crate::pages::until("it is over", || found() != "started");
}
