//! Connections that are cut: what a write's caller learns, and what is repeated.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{AppendOptions, Error, Store, Tail};

use super::frame;
use crate::common::running::Running;

/// What becomes of an answer to a request; nothing, if it is lost.
type Change = dyn Fn(&[u8], Vec<u8>) -> Option<Vec<u8>>;

/// A way to the server at that address, which sees requests, and changes answers or loses them. Each request has a connection.
pub(crate) fn through(
    address: &str,
    change: impl Fn(&[u8], Vec<u8>) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (change, to) = (Arc::new(change), address.to_owned());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (change, to) = (Arc::clone(&change), to.clone());
            thread::spawn(move || pass(stream.unwrap(), &to, &*change));
        }
    });
    url
}

/// A way to a server that loses answers: the next ones, as many as the counter has.
fn losing(server: &Running) -> (String, Arc<AtomicUsize>) {
    let lost = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&lost);
    (through(&server.client.address, move |_, answer| if takes_one(&counter) { None } else { Some(answer) }), lost)
}

fn takes_one(counter: &AtomicUsize) -> bool {
    counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok()
}

/// Passes one connection on, request by request.
fn pass(mut client: TcpStream, to: &str, change: &Change) -> Option<()> {
    let mut server = TcpStream::connect(to).ok()?;
    let mut buffer = vec![0; 1024 * 1024];
    loop {
        let mut request = Vec::new();
        while !is_whole(&request) {
            let read = client.read(&mut buffer).ok().filter(|read| *read > 0)?;
            request.extend_from_slice(&buffer[..read]);
        }
        server.write_all(&request).ok()?;
        let mut answer = Vec::new();
        while !is_whole(&answer) {
            let read = server.read(&mut buffer).ok().filter(|read| *read > 0)?;
            answer.extend_from_slice(&buffer[..read]);
        }
        client.write_all(&change(&request, answer)?).ok()?;
    }
}

/// Whether a head and its body have come.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    bytes.len() >= end + 4 + length
}

fn said(store: &Store) -> usize {
    store.load("chat").unwrap().messages().len()
}

#[test]
fn a_write_whose_answer_is_lost_is_unknown_or_repeated() {
    let server = Running::durable(&[]);
    let (url, lost) = losing(&server);
    let store = Store::open(&url).unwrap();
    let lose = |answers| lost.store(answers, Ordering::Release);
    let hello = [Message::user("hello")];
    lose(1);
    let unknown = store.append("chat", &hello);
    assert!(matches!(unknown, Err(Error::OutcomeUnknown { .. })), "{unknown:?}");
    assert_eq!(said(&store), 1, "it was taken once");
    // With a key it is repeated, and answered as the repetition that it is.
    let key = AppendOptions::new().with_idempotency_key("k");
    lose(2);
    let receipt = store.append_with("chat", &hello, &key).unwrap();
    assert!(receipt.duplicate && receipt.first_seq == 2);
    lose(3);
    let error = store.append_with("chat", &hello, &key);
    assert!(matches!(error, Err(Error::OutcomeUnknown { .. })), "{error:?}");
    assert_eq!(said(&store), 2);
    // What only reads is repeated.
    lose(2);
    assert_eq!(said(&store), 2);
    lose(1);
    let unknown = store.begin("chat", Role::Assistant, Metadata::default());
    assert!(matches!(unknown, Err(Error::OutcomeUnknown { .. })), "{unknown:?}");
}

/// The answer of HTTP with this status and body.
fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// What answers in the server's place says nothing of the write.
#[test]
fn a_write_that_a_proxy_answers_is_unknown_or_repeated() {
    let server = Running::durable(&[]);
    let strange = [
        answer("502 Bad Gateway", b"<h1>502</h1>"),
        answer("504 Gateway Timeout", b"{\"error\":{\"message\":\"upstream\"}}"),
        answer("500 Internal Server Error", b"{\"error\":{\"code\":\"internal\",\"message\":\"it failed\"}}"),
        answer("302 Found", b""),
        answer("200 OK", b"<h1>Welcome</h1>"),
        answer("200 OK", b""),
    ];
    let (at, counter) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let url = through(&server.client.address, {
        let (strange, at, counter) = (strange.clone(), Arc::clone(&at), Arc::clone(&counter));
        move |_, right| Some(if takes_one(&counter) { strange[at.load(Ordering::Acquire)].clone() } else { right })
    });
    let store = Store::open(&url).unwrap();
    let change = |answers| counter.store(answers, Ordering::Release);
    let hello = [Message::user("hello")];
    for (number, strange) in strange.iter().enumerate() {
        let shown = String::from_utf8_lossy(strange);
        at.store(number, Ordering::Release);
        let before = store.load_raw("chat").map_or(0, |messages| messages.len());
        let key = AppendOptions::new().with_idempotency_key(number.to_string());
        change(1);
        let unknown = store.append("chat", &hello);
        assert!(matches!(unknown, Err(Error::OutcomeUnknown { .. })), "{shown}: {unknown:?}");
        change(1);
        let unknown = store.begin("chat", Role::Assistant, Metadata::default());
        assert!(matches!(unknown, Err(Error::OutcomeUnknown { .. })), "{shown}: {unknown:?}");
        change(2);
        assert!(store.append_with("chat", &hello, &key).unwrap().duplicate, "{shown}");
        change(3);
        let unknown = store.append_with("chat", &hello, &key);
        assert!(matches!(unknown, Err(Error::OutcomeUnknown { .. })), "{shown}: {unknown:?}");
        change(2);
        assert_eq!(store.load_raw("chat").unwrap().len(), before + 3, "{shown}");
    }
    // What refuses a request does not pass it on.
    let url = through(&server.client.address, |request, right| {
        Some(if request.starts_with(b"POST /api/v1/log/append") {
            answer("413 Too Large", b"<h1>413</h1>")
        } else {
            right
        })
    });
    let refused = Store::open(&url).unwrap().append("chat", &hello);
    assert!(matches!(refused, Err(Error::InvalidInput(_))), "{refused:?}");
}

/// Answers that never come to an end do.
#[test]
fn a_reading_that_makes_no_progress_ends() {
    let server = Running::durable(&[]);
    let there = Store::open(&format!("http://{}", server.client.address)).unwrap();
    (0..3).for_each(|at| drop(there.append("chat", &[Message::user(at.to_string())]).unwrap()));
    for kind in ["damaged", "stray"] {
        let url = through(&server.client.address, move |request, right| {
            let head = format!("{{\"readings\":[{{\"{kind}\":{{\"message\":\"x\"}}}}],\"has_more\":true}}");
            let is_read = request.starts_with(b"POST /api/v1/log/read");
            Some(if is_read { answer("200 OK", &frame(head.as_bytes(), b"")) } else { right })
        });
        let read = Store::open(&url).unwrap().load("chat");
        assert!(matches!(read, Err(Error::Io { .. })), "{kind}: {read:?}");
    }
}

#[test]
fn a_delta_whose_answer_is_lost_is_taken_once() {
    let server = Running::durable(&[]);
    let (url, lost) = losing(&server);
    let store = Store::open(&url).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    for piece in ["a", "b", "c", "d"] {
        lost.store(1, Ordering::Release);
        writer.push(0, Chunk::text(piece)).unwrap();
    }
    lost.store(1, Ordering::Release);
    let receipt = writer.finish(None, None).unwrap();
    assert_eq!(store.load_raw("chat").unwrap()[0].message.chunks, [Chunk::text("abcd")]);
    assert_eq!(store.describe("chat").unwrap().last_seq, receipt.last_seq);
}

/// No answer comes at all: a repetition is a repetition, and another delta is another one.
#[test]
fn a_delta_without_an_answer_is_in_nobodys_way() {
    let server = Running::durable(&[]);
    let (url, lost) = losing(&server);
    let store = Store::open(&url).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("a")).unwrap();
    for _ in 0..2 {
        lost.store(3, Ordering::Release);
        let unknown = writer.push(0, Chunk::text("b"));
        assert!(matches!(unknown, Err(Error::OutcomeUnknown { .. })), "{unknown:?}");
    }
    writer.push(0, Chunk::text("b")).unwrap();
    lost.store(3, Ordering::Release);
    writer.push(0, Chunk::text("c")).unwrap_err();
    writer.push(0, Chunk::text("d")).unwrap();
    writer.finish(None, None).unwrap();
    assert_eq!(store.load_raw("chat").unwrap()[0].message.chunks, [Chunk::text("abcd")]);
}

/// The server was restarted meanwhile: whether it had taken the end before, nobody knows.
#[test]
fn a_repeated_end_that_the_server_does_not_know_is_unknown() {
    let server = Running::durable(&[]);
    let ends = AtomicUsize::new(0);
    let url = through(&server.client.address, move |request, right| {
        const GONE: &[u8] =
            br#"{"error":{"code":"not_found","message":"the writer not found","details":{"what":"the writer"}}}"#;
        Some(match () {
            () if !request.starts_with(b"POST /api/v1/log/finish") => right,
            () if ends.fetch_add(1, Ordering::AcqRel) == 0 => answer("502 Bad Gateway", b""),
            () => answer("404 Not Found", GONE),
        })
    });
    let store = Store::open(&url).unwrap();
    let writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let unknown = writer.finish(None, None);
    assert!(matches!(unknown, Err(Error::OutcomeUnknown { .. })), "{unknown:?}");
}

/// A follower that could not be served ends with the reason. Those that come later are served.
#[test]
fn followers_go_on_after_a_failure() {
    let server = Running::durable(&[]);
    let (url, lost) = losing(&server);
    let store = Store::open(&url).unwrap();
    let there = Store::open(&format!("http://{}", server.client.address)).unwrap();
    there.append("chat", &[Message::user("first")]).unwrap();
    let mut tails = [store.tail("chat", 0).unwrap(), store.tail("chat", 0).unwrap()];
    let poll = |tail: &mut Tail| {
        let begun = Instant::now();
        loop {
            match tail.poll_next(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(news) => return news.unwrap().map(|news| news.len()),
                Poll::Pending => assert!(begun.elapsed() < Duration::from_secs(60), "no news"),
            }
            thread::sleep(Duration::from_millis(10));
        }
    };
    for tail in &mut tails {
        assert_eq!(poll(tail).unwrap(), 1);
    }
    for tail in &mut tails {
        assert!(tail.poll_next(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    lost.store(1_000, Ordering::Release);
    there.append("chat", &[Message::user("second")]).unwrap();
    let failed = poll(&mut tails[0]).unwrap_err();
    assert!(matches!(failed, Error::Io { .. }), "{failed}");
    lost.store(0, Ordering::Release);
    let mut later = store.tail("chat", 2).unwrap();
    assert!(later.poll_next(&mut Context::from_waker(Waker::noop())).is_pending());
    there.append("chat", &[Message::user("third")]).unwrap();
    assert_eq!(poll(&mut later).unwrap(), 1);
    assert_eq!(poll(&mut store.tail("chat", 1).unwrap()).unwrap(), 2);
}
