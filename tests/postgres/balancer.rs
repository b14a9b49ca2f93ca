//! A way to several servers: each request goes to the next one, and some answers are lost.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// To all servers in turn.
const ALL: usize = usize::MAX;
/// After so many bytes of an answer that has no end, its connection is cut, once nothing comes for a moment.
const ENDLESS: usize = 600;
const PIECE: Duration = Duration::from_millis(2);

/// A balancer.
pub(crate) struct Balancer {
    pub(crate) address: String,
    shared: Arc<Shared>,
}

struct Shared {
    servers: Vec<String>,
    turn: AtomicUsize,
    /// The server that gets everything, or [`ALL`].
    only: AtomicUsize,
    /// The next so many answers are lost.
    loses: AtomicUsize,
    /// Each so many-th answer is lost; 0: none.
    every: AtomicUsize,
    answers: AtomicUsize,
    lost: AtomicUsize,
}

impl Balancer {
    /// Starts one before servers at these addresses.
    pub(crate) fn start(servers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let number = |number| AtomicUsize::new(number);
        let (turn, only, loses, every) = (number(0), number(ALL), number(0), number(0));
        let shared = Arc::new(Shared { servers, turn, only, loses, every, answers: number(0), lost: number(0) });
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                for client in listener.incoming().map_while(Result::ok) {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || while shared.pass(&client).is_some() {});
                }
            }
        });
        Self { address, shared }
    }

    /// Sends everything to one server from now on.
    pub(crate) fn only(&self, server: usize) {
        self.shared.only.store(server, Ordering::SeqCst);
    }

    /// Loses the next answers.
    pub(crate) fn lose(&self, answers: usize) {
        self.shared.loses.store(answers, Ordering::SeqCst);
    }

    /// Loses each so many-th answer.
    pub(crate) fn lose_every(&self, answers: usize) {
        self.shared.every.store(answers, Ordering::SeqCst);
    }

    /// How many answers were lost.
    pub(crate) fn lost(&self) -> usize {
        self.shared.lost.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn server(&self) -> &str {
        let only = self.only.load(Ordering::SeqCst);
        let at = if only == ALL { self.turn.fetch_add(1, Ordering::SeqCst) % self.servers.len() } else { only };
        &self.servers[at]
    }

    /// Whether the answer that has come now is lost.
    fn loses(&self) -> bool {
        let at = self.answers.fetch_add(1, Ordering::SeqCst) + 1;
        let every = self.every.load(Ordering::SeqCst);
        let is_next = self.loses.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        let is_lost = is_next || (every > 0 && at.is_multiple_of(every));
        self.lost.fetch_add(usize::from(is_lost), Ordering::SeqCst);
        is_lost
    }

    /// Passes one request on, and its answer back. Nothing: the connection has ended, or is cut now.
    fn pass(&self, client: &TcpStream) -> Option<()> {
        let mut client = client;
        let request = whole(client)?;
        let mut server = TcpStream::connect(self.server()).ok()?;
        server.write_all(&request).ok()?;
        let passed = if request.windows(7).any(|part| part == b"/events") {
            endless(&server, client);
            None
        } else {
            whole(&server).filter(|_| !self.loses()).and_then(|answer| client.write_all(&answer).ok())
        };
        if passed.is_none() {
            let _ = client.shutdown(Shutdown::Both);
        }
        passed
    }
}

/// Passes the beginning of an answer on that has no end: so much, and what comes with it, as events come in pieces that a
/// client reads as a whole.
fn endless(mut server: &TcpStream, mut client: &TcpStream) {
    server.set_read_timeout(Some(PIECE)).unwrap();
    let (mut buffer, mut passed) = (vec![0; 64 * 1024], 0);
    loop {
        match server.read(&mut buffer) {
            Ok(read @ 1..) if client.write_all(&buffer[..read]).is_ok() => passed += read,
            Err(error) if is_silence(&error) && passed < ENDLESS => {}
            _ => return,
        }
    }
}

fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// A request or an answer: its head and its body.
fn whole(mut from: &TcpStream) -> Option<Vec<u8>> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    while !is_whole(&bytes) {
        let read = from.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
    }
    Some(bytes)
}

fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    bytes.len() >= end + 4 + length
}
