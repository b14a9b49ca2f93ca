//! A server in a process of its own, and requests to it on connections that stay open.

use std::convert::Infallible;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tempfile::TempDir;

/// Set in the process of the bare server: how many bytes it answers.
pub(crate) const BARE: &str = "CONVO_BENCH_BARE";

/// A server on a store of its own, or a bare one.
pub(crate) struct Server {
    pub(crate) address: String,
    child: Child,
    _dir: Option<TempDir>,
}

/// A new directory where the stores are.
pub(crate) fn directory() -> TempDir {
    std::env::var_os("CONVO_BENCH_DIR").map_or_else(tempfile::tempdir, tempfile::tempdir_in).unwrap()
}

impl Server {
    pub(crate) fn start() -> Self {
        let dir = directory();
        let store = format!("sled:{}", dir.path().join("store").display());
        let mut convo = Command::new(env!("CARGO_BIN_EXE_convo"));
        convo.args(["--store", &store, "--json", "serve", "--listen", "127.0.0.1:0"]).env("CONVO_LOG__LEVEL", "warn");
        Self::listening(&mut convo, Some(dir))
    }

    /// One of the same library that reads a request and answers so many bytes, and does nothing else.
    pub(crate) fn bare(bytes: usize) -> Self {
        Self::listening(Command::new(std::env::current_exe().unwrap()).env(BARE, bytes.to_string()), None)
    }

    /// Its first line names its address.
    fn listening(command: &mut Command, dir: Option<TempDir>) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
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

/// Answers so many bytes to each request, until the process is ended.
pub(crate) async fn answer(bytes: usize) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}\"", listener.local_addr().unwrap());
    let body = Bytes::from(vec![b' '; bytes]);
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let body = body.clone();
        let answered = service_fn(move |request: Request<Incoming>| {
            let body = body.clone();
            async move {
                request.into_body().collect().await.unwrap();
                Ok::<_, Infallible>(Response::new(Full::new(body)))
            }
        });
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answered));
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

    /// Appends a message, durably. Returns the bytes of the answer.
    pub(crate) fn append(&mut self, conversation: &str, text: &str) -> usize {
        let body = format!(r#"{{"role":"user","chunks":[{{"type":"text","text":"{text}"}}]}}"#);
        let more = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        self.call("POST", conversation, &more, &body)
    }

    /// Reads the messages. Returns the bytes of the answer.
    pub(crate) fn read(&mut self, conversation: &str) -> usize {
        self.call("GET", conversation, "", "")
    }

    fn call(&mut self, method: &str, conversation: &str, headers: &str, body: &str) -> usize {
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
        length
    }
}
