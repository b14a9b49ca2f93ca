//! What is recorded of the calls that pass: a server, an upstream whose answers a test writes, and clients.
//!
//! - `answers`: what a model says, as each wire says it. `said`: what a request, or a stored conversation, says, for comparing.
//! - `sent`: requests byte for byte. `calls`: one call, however it ends. `fetched`: an answer that comes by a later one.
//!   `misuse`: what clients and upstreams should not do.
//! - `traffic`: the requests of real programs, in their order. `requirements`: the points of what makes a conversation. `echoes`: what
//!   clients make of an answer before they send it again.

pub(crate) mod answers;
mod calls;
mod echoes;
mod fetched;
mod misuse;
mod requirements;
mod said;
mod sent;
mod traffic;

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::http::{Client, Open};
use crate::common::running::Running;

/// The header that tells the upstream which answer a request gets.
const ANSWER: &str = "x-answer";

/// What the upstream does, one after the other.
#[derive(Clone, Debug)]
enum Step {
    Send(Vec<u8>),
    /// Waits until the test goes on.
    Wait(usize),
}

/// An answer that the upstream gives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply(VecDeque<Step>);

impl Reply {
    fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self([Step::Send(bytes.into())].into())
    }

    pub(crate) fn whole(status: &str, content_type: &str, body: &[u8]) -> Self {
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nrequest-id: req_theirs\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n",
            body.len()
        );
        Self::raw([head.as_bytes(), body].concat())
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::whole("200 OK", "application/json", body.to_string().as_bytes())
    }

    pub(crate) fn error(status: u16, body: &Value) -> Self {
        Self::whole(&format!("{status} No"), "application/json", body.to_string().as_bytes())
    }

    /// The beginning of a stream: its head.
    pub(crate) fn stream() -> Self {
        Self::raw(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_theirs\r\n\
             transfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        )
    }

    /// With a header more.
    pub(crate) fn with_header(mut self, header: &str) -> Self {
        if let Some(Step::Send(head)) = self.0.front_mut() {
            let end = head.windows(2).position(|window| window == b"\r\n").unwrap();
            head.splice(end..end, format!("\r\n{header}").into_bytes());
        }
        self
    }

    pub(crate) fn then(self, text: &str) -> Self {
        self.then_bytes(text.as_bytes())
    }

    pub(crate) fn then_bytes(mut self, bytes: &[u8]) -> Self {
        let length = format!("{:x}\r\n", bytes.len());
        self.0.push_back(Step::Send([length.as_bytes(), bytes, b"\r\n"].concat()));
        self
    }

    /// Waits until [`Recorder::go_on`] has been called so often.
    pub(crate) fn wait(mut self, times: usize) -> Self {
        self.0.push_back(Step::Wait(times));
        self
    }

    /// The end of a stream, as HTTP ends one. Without it the connection is cut.
    pub(crate) fn end(mut self) -> Self {
        self.0.push_back(Step::Send(b"0\r\n\r\n".to_vec()));
        self
    }

    /// After what another one does.
    pub(crate) fn after(self, first: Self) -> Self {
        Self(first.0.into_iter().chain(self.0).collect())
    }

    pub(crate) fn of_events(events: &[String]) -> Self {
        events.iter().fold(Self::stream(), |reply, event| reply.then(event)).end()
    }

    pub(crate) fn cut_after(events: &[String], count: usize) -> Self {
        events.iter().take(count).fold(Self::stream(), |reply, event| reply.then(event))
    }
}

type Replies = Arc<Mutex<HashMap<String, Reply>>>;
/// The answers of requests that this server makes itself, in their order.
type Next = Arc<Mutex<VecDeque<Reply>>>;
/// The head of a request, in lower case, and its body.
type Request = (String, Vec<u8>);

/// A server with an upstream `up`.
pub(crate) struct Recorder {
    pub(crate) running: Running,
    pub(crate) clients: Vec<Client>,
    replies: Replies,
    next: Next,
    asked: Arc<Mutex<Receiver<Request>>>,
    passed: Arc<(Mutex<usize>, std::sync::Condvar)>,
    dir: Arc<tempfile::TempDir>,
}

/// A call that has passed.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    pub(crate) exchange: String,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Whether the answer ended as HTTP ends one.
    pub(crate) is_whole: bool,
}

impl Recorder {
    pub(crate) fn open() -> Self {
        Self::with("memory:", "", &[])
    }

    /// With more lines for the upstream, and a client for each owner; without owners no key is needed.
    pub(crate) fn with(url: &str, more: &str, owners: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (replies, next) = (Replies::default(), Next::default());
        let passed = Arc::new((Mutex::new(0), std::sync::Condvar::new()));
        let (say, asked) = channel();
        let (given, following, gate) = (Arc::clone(&replies), Arc::clone(&next), Arc::clone(&passed));
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (replies, next) = (Arc::clone(&given), Arc::clone(&following));
                let (say, gate) = (say.clone(), Arc::clone(&gate));
                std::thread::spawn(move || answer(stream, &replies, &next, &say, &gate));
            }
        });
        let dir = crate::common::tempdir().unwrap();
        let file = dir.path().join("convo.toml");
        std::fs::write(&file, format!("[[upstream]]\nname = \"up\"\nurl = \"http://{address}\"\n{more}")).unwrap();
        let args = ["--config", file.to_str().unwrap()];
        let (running, clients) = if owners.is_empty() {
            let running = Running::start(url, &args);
            let client = running.client.clone();
            (running, vec![client])
        } else {
            let keys: Vec<_> = owners.iter().map(|owner| (*owner, "read,append,delete")).collect();
            Running::with_keys_on(url, &keys, &args)
        };
        Self { running, clients, replies, next, asked: Arc::new(Mutex::new(asked)), passed, dir: Arc::new(dir) }
    }

    /// Another server of the same store and upstream.
    pub(crate) fn beside(&self, url: &str) -> Self {
        let file = self.dir.path().join("convo.toml");
        let running = Running::start(url, &["--config", file.to_str().unwrap()]);
        let (replies, next, passed) = (Arc::clone(&self.replies), Arc::clone(&self.next), Arc::clone(&self.passed));
        let clients = vec![running.client.clone()];
        Self { running, clients, replies, next, asked: Arc::clone(&self.asked), passed, dir: Arc::clone(&self.dir) }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.clients[0]
    }

    /// What the upstream answers to a request that this server makes itself, after those it was told before.
    pub(crate) fn answers(&self, reply: Reply) {
        self.next.lock().unwrap().push_back(reply);
    }

    /// What the upstream was asked next: the head, in lower case, and the body.
    pub(crate) fn asked(&self) -> Request {
        self.asked.lock().unwrap().recv_timeout(Duration::from_secs(60)).unwrap()
    }

    /// Lets the upstream go on where it waits.
    pub(crate) fn go_on(&self) {
        *self.passed.0.lock().unwrap() += 1;
        self.passed.1.notify_all();
    }

    /// Sends a call whose answer is `reply`: the answer as it comes.
    pub(crate) fn begin(
        &self,
        client: &Client,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        reply: Reply,
    ) -> Open {
        self.begin_with("POST", client, path, headers, body, reply)
    }

    fn begin_with(
        &self,
        method: &str,
        client: &Client,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        reply: Reply,
    ) -> Open {
        let number = {
            let mut replies = self.replies.lock().unwrap();
            let number = replies.len().to_string();
            replies.insert(number.clone(), reply);
            number
        };
        let all: Vec<_> = [(ANSWER, &*number), ("content-type", "application/json")]
            .into_iter()
            .chain(headers.iter().copied())
            .collect();
        client.open(method, &format!("/proxy/up{path}"), &all, body)
    }

    /// Sends a call, and reads its answer.
    pub(crate) fn ask(&self, path: &str, headers: &[(&str, &str)], body: &Value, reply: Reply) -> Passed {
        let mut open = self.begin(self.client(), path, headers, body.to_string().as_bytes(), reply);
        let is_whole = open.end();
        passed(open, is_whole)
    }

    /// What has become of a call, once it is over.
    pub(crate) fn settled(&self, exchange: &str) -> Value {
        self.settled_of(self.client(), exchange)
    }

    pub(crate) fn settled_of(&self, client: &Client, exchange: &str) -> Value {
        let begun = Instant::now();
        loop {
            let found = client.get(&format!("/api/v1/exchanges/{exchange}")).ok();
            if found["state"] != "started" {
                return found;
            }
            // A call may wait for room some times before it is recorded, or is not.
            assert!(begun.elapsed() < Duration::from_secs(180), "{found}: {}", self.running.log());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The conversation of a call that may still run, once its request is stored.
    pub(crate) fn placed(&self, exchange: &str) -> String {
        let begun = Instant::now();
        loop {
            let found = self.client().get(&format!("/api/v1/exchanges/{exchange}")).ok();
            if let Some(conversation) = found["conversation"].as_str() {
                return conversation.to_owned();
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{found}: {}", self.running.log());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns once words of an answer that still comes are stored.
    pub(crate) fn until_shown(&self, open: &Open, words: &str) {
        let conversation = self.placed(open.answer.header("x-convo-exchange").unwrap());
        let begun = Instant::now();
        while !self.messages(&conversation).iter().any(|message| message.to_string().contains(words)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", self.running.log());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends the server as a power cut would end its process, and starts it again.
    pub(crate) fn kill_and_restart(&mut self) {
        self.running.kill();
        self.restart();
    }

    /// Changes the settings, for when it is started again.
    fn configure(&self, change: impl FnOnce(String) -> String) {
        let file = self.dir.path().join("convo.toml");
        let settings = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, change(settings)).unwrap();
    }

    pub(crate) fn restart(&mut self) {
        self.running.restart();
        self.clients = vec![self.running.client.clone()];
    }

    /// The request of a call, as it is given, and the fields of it in which something is replaced.
    pub(crate) fn request(&self, exchange: &str) -> (Vec<u8>, Option<String>) {
        let answer = self.client().get(&format!("/api/v1/exchanges/{exchange}/request"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let replaced = answer.header("x-convo-replaced").map(str::to_owned);
        (answer.body, replaced)
    }

    /// The messages of a conversation, as they are shown.
    pub(crate) fn messages(&self, conversation: &str) -> Vec<Value> {
        let path = format!("/api/v1/conversations/{conversation}/messages?limit=1000");
        self.client().get(&path).ok()["messages"].as_array().unwrap().clone()
    }

    /// The conversations of the owner, the newest first.
    pub(crate) fn conversations(&self) -> Vec<Value> {
        let list = self.client().get("/api/v1/conversations?limit=1000").ok();
        list["items"].as_array().unwrap().clone()
    }
}

pub(crate) fn passed(open: Open, is_whole: bool) -> Passed {
    let answer = open.answer;
    let exchange = answer.header("x-convo-exchange").unwrap_or_else(|| panic!("{answer:?}")).to_owned();
    Passed { exchange, status: answer.status, body: answer.body, is_whole }
}

fn answer(
    mut stream: TcpStream,
    replies: &Replies,
    next: &Next,
    say: &Sender<Request>,
    passed: &(Mutex<usize>, std::sync::Condvar),
) {
    let Some((head, body)) = request(&mut stream) else { return };
    let number = head.lines().find_map(|line| line.strip_prefix(&format!("{ANSWER}: "))).map(str::to_owned);
    let reply = match number {
        Some(number) => replies.lock().unwrap().get(&number).cloned(),
        None => next.lock().unwrap().pop_front(),
    };
    let _ = say.send((head, body));
    for step in reply.unwrap_or_default().0 {
        match step {
            Step::Send(bytes) => {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
            Step::Wait(times) => {
                let count = passed.0.lock().unwrap();
                drop(passed.1.wait_while(count, |count| *count < times).unwrap());
            }
        }
    }
}

fn request(stream: &mut TcpStream) -> Option<Request> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 65_536]);
    loop {
        let read = stream.read(&mut piece).ok()?;
        bytes.extend_from_slice(&piece[..read]);
        if read == 0 {
            return None;
        }
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        if bytes.len() >= end + 4 + length {
            return Some((head, bytes[end + 4..].to_vec()));
        }
    }
}
