//! Connections: what clients that say nothing, or too little, take from others.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// The limits of connections are those of HTTP/1.1.
#[test]
fn no_other_version_is_spoken() {
    let server = Running::open();
    let mut stream = server.client.connect().unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&answer));
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

/// A server on fjall that may have 256 file handles, and a client of it.
struct Few {
    process: Child,
    client: Client,
    _dir: tempfile::TempDir,
}

impl Few {
    fn start(args: &[&str]) -> Self {
        let dir = crate::common::tempdir().unwrap();
        let store = format!("fjall:{}", dir.path().join("store").display());
        let mut process = Command::new("sh")
            .args(["-c", "ulimit -n 256 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_convo")])
            .args(["--json", "--store", &store, "serve", "--listen", "127.0.0.1:0"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let listening: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = listening["listening"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { process, client: Client { address, key: None }, _dir: dir }
    }

    fn ask(stream: &mut TcpStream, head: &str, body: &str) -> std::io::Result<crate::common::http::Answer> {
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        read(&mut BufReader::new(stream.try_clone()?))
    }

    /// Writes more than fjall keeps in memory: it opens files.
    fn write_much(&self, kept: &mut TcpStream) {
        let text = "x".repeat(4 * 1024 * 1024);
        let message = json!({ "role": "user", "chunks": [{ "type": "text", "text": text }] }).to_string();
        let length = message.len().to_string();
        let headers = [("content-type", "application/json"), ("content-length", &*length)];
        let post = self.client.head("POST", "/api/v1/conversations/chat/messages", &headers);
        for _ in 0..40 {
            Self::ask(kept, &post, &message).unwrap().ok();
        }
    }
}

impl Drop for Few {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The store has file handles of its own: connections take no more than the rest.
#[test]
fn a_store_has_its_file_handles() {
    let server = Few::start(&[]);
    let livez = server.client.head("GET", "/livez", &[]);
    let mut kept = server.client.connect().unwrap();
    Few::ask(&mut kept, &livez, "").unwrap().ok();
    // Connections that have asked once, and stay: as many as get an answer.
    let mut idle = Vec::new();
    loop {
        let mut stream = server.client.connect().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let is_served = Few::ask(&mut stream, &livez, "").is_ok();
        idle.push(stream);
        if !is_served {
            break;
        }
    }
    server.write_much(&mut kept);
}

/// A call has a connection to its upstream also when its client has gone.
#[test]
fn calls_whose_clients_have_gone_leave_the_store_its_file_handles() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings =
        config(&format!("[[upstream]]\nname = \"up\"\nurl = \"http://{}\"\n", upstream.local_addr().unwrap()));
    let reached = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reached);
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = upstream.accept() {
            kept.push(stream);
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let server = Few::start(&["--config", &settings]);
    let mut kept = server.client.connect().unwrap();
    Few::ask(&mut kept, &server.client.head("GET", "/livez", &[]), "").unwrap().ok();
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] }).to_string();
    let length = body.len().to_string();
    let headers = [("content-type", "application/json"), ("content-length", &*length)];
    let head = server.client.head("POST", "/proxy/up/v1/chat/completions", &headers);
    let refused = std::cell::Cell::new(0);
    for _ in 0..250 {
        let before = reached.load(Ordering::SeqCst);
        let mut stream = server.client.connect().unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        until("it is sent, or refused", || {
            let is_refused = stream.peek(&mut [0; 12]).is_ok_and(|length| length > 0);
            refused.set(refused.get() + usize::from(is_refused));
            is_refused || reached.load(Ordering::SeqCst) > before
        });
    }
    assert!(refused.get() > 0 && reached.load(Ordering::SeqCst) > 20, "{} refused", refused.get());
    server.write_much(&mut kept);
}
