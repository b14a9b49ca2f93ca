//! Connections: what clients that say nothing, or too little, take from others.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::common::http::{Client, read};
use crate::common::running::Running;
use crate::pages::until;
use crate::streams::config;

const HALF: &[u8] = b"GET /v1/conversations HTTP/1.1\r\nx-half: ";

/// New clients do not wait for those that do not finish their head.
#[test]
fn half_a_head_takes_no_room_from_others() {
    let limits = "[limits]\nconnections = 16\nfirst_head_seconds = 3600\nheader_seconds = 3600\n";
    let server = Running::start("memory:", &["--config", &config(limits)]);
    let (mut kept, mut half) = (server.client.connect().unwrap(), Vec::new());
    let head = server.client.head("GET", "/livez", &[]);
    kept.write_all(head.as_bytes()).unwrap();
    read(&mut BufReader::new(kept.try_clone().unwrap())).unwrap().ok();
    for _ in 0..100 {
        let mut stream = server.client.connect().unwrap();
        stream.write_all(HALF).unwrap();
        half.push(stream);
    }
    server.client.get("/v1/conversations").ok();
    // The newest of them, and those that have asked before, go on.
    let mut newest = half.pop().unwrap();
    newest.write_all(b"x\r\nhost: localhost\r\n\r\n").unwrap();
    read(&mut BufReader::new(newest)).unwrap().ok();
    kept.write_all(head.as_bytes()).unwrap();
    read(&mut BufReader::new(kept)).unwrap().ok();
}

#[test]
fn a_first_head_arrives_soon() {
    let server = Running::start("memory:", &["--config", &config("[limits]\nfirst_head_seconds = 1\n")]);
    let mut kept = server.client.connect().unwrap();
    let head = server.client.head("GET", "/livez", &[]);
    kept.write_all(head.as_bytes()).unwrap();
    read(&mut BufReader::new(kept.try_clone().unwrap())).unwrap().ok();
    for begin in [HALF, b""] {
        let mut stream = server.client.connect().unwrap();
        stream.write_all(begin).unwrap();
        let ended = stream.read(&mut [0; 1]);
        assert!(
            matches!(&ended, Ok(0)) || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }
    kept.write_all(head.as_bytes()).unwrap();
    read(&mut BufReader::new(kept)).unwrap().ok();
}

/// Who does not log in takes no room from who does.
#[test]
fn forms_that_do_not_arrive_stop_no_login() {
    let (server, _) = Running::with_keys_on("memory:", &[("ada", "read")], &["--admin-listen", "127.0.0.1:0"]);
    let form = [("content-length", "100"), ("sec-fetch-site", "same-origin")];
    let stalled: Vec<_> = (0..80)
        .map(|_| {
            let mut stream = server.client.connect().unwrap();
            stream.write_all(server.client.head("POST", "/pages/login", &form).as_bytes()).unwrap();
            stream
        })
        .collect();
    let metrics = || server.admin.as_ref().unwrap().get("/metrics").text();
    until("they are being read", || metrics().contains("convo_requests_in_flight 81\n"));
    assert_eq!(server.client.get("/pages/login").status, 200);
    assert_eq!(server.client.get("/pages/assets/style.css").status, 200);
    drop(stalled);
}

/// The store has file handles of its own: connections take no more than the rest.
#[test]
fn a_store_has_its_file_handles() {
    let dir = crate::common::tempdir().unwrap();
    let store = format!("fjall:{}", dir.path().join("store").display());
    let mut server = Command::new("sh")
        .args(["-c", "ulimit -n 256 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_convo")])
        .args(["--json", "--store", &store, "serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let listening: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = listening["listening"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let client = Client { address, key: None };
    let ask = |stream: &mut TcpStream, head: &str, body: &str| {
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        read(&mut BufReader::new(stream.try_clone()?))
    };
    let livez = client.head("GET", "/livez", &[]);
    let mut kept = client.connect().unwrap();
    ask(&mut kept, &livez, "").unwrap().ok();
    // Connections that have asked once, and stay: as many as get an answer.
    let mut idle = Vec::new();
    loop {
        let mut stream = client.connect().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let is_served = ask(&mut stream, &livez, "").is_ok();
        idle.push(stream);
        if !is_served {
            break;
        }
    }
    // More than fjall keeps in memory: it opens files.
    let text = "x".repeat(4 * 1024 * 1024);
    let message = json!({ "role": "user", "chunks": [{ "type": "text", "text": text }] }).to_string();
    let length = message.len().to_string();
    let headers = [("content-type", "application/json"), ("content-length", &*length)];
    let post = client.head("POST", "/api/v1/conversations/chat/messages", &headers);
    for _ in 0..40 {
        ask(&mut kept, &post, &message).unwrap().ok();
    }
    drop(idle);
    server.kill().unwrap();
    server.wait().unwrap();
}
