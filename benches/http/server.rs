//! A server in a process of its own, and requests to it on connections that stay open.

use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A server on a store of its own.
pub(crate) struct Server {
    pub(crate) address: String,
    child: Child,
    _dir: TempDir,
}

/// A new directory where the stores are.
pub(crate) fn directory() -> TempDir {
    std::env::var_os("CONVO_BENCH_DIR").map_or_else(tempfile::tempdir, tempfile::tempdir_in).unwrap()
}

impl Server {
    pub(crate) fn start() -> Self {
        let dir = directory();
        let store = format!("sled:{}", dir.path().join("store").display());
        let mut child = Command::new(env!("CARGO_BIN_EXE_convo"))
            .args(["--store", &store, "--json", "serve", "--listen", "127.0.0.1:0"])
            .env("CONVO_LOG__LEVEL", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("://").nth(1).unwrap().split('"').next().unwrap().to_owned();
        Self { address, child, _dir: dir }
    }

    /// A number from its `/proc/PID/status`.
    pub(crate) fn status(&self, field: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
}

impl Connection {
    pub(crate) fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), address: address.to_owned() }
    }

    /// Appends a message, durably.
    pub(crate) fn append(&mut self, conversation: &str, text: &str) {
        let body = format!(r#"{{"role":"user","chunks":[{{"type":"text","text":"{text}"}}]}}"#);
        let more = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        self.call("POST", conversation, &more, &body);
    }

    /// Reads the messages.
    pub(crate) fn read(&mut self, conversation: &str) {
        self.call("GET", conversation, "", "");
    }

    fn call(&mut self, method: &str, conversation: &str, headers: &str, body: &str) {
        let path = format!("/api/v1/conversations/{conversation}/messages");
        let request = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n{headers}\r\n{body}", self.address);
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut line, mut length) = (String::new(), 0);
        self.stream.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        while line != "\r\n" {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
    }
}
