//! Followers: how long after an append its event is there, and what each costs the server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::at;
use crate::server::{Connection, Server};

const CONVERSATIONS: usize = 100;
const FOLLOWERS: usize = 10_000;
const APPENDS: usize = 1_000;
/// The pause between two appends.
const PAUSE: Duration = Duration::from_millis(20);

/// What the followers have seen, and when.
#[derive(Default)]
struct Seen {
    ready: AtomicUsize,
    events: AtomicUsize,
    times: Mutex<Vec<Duration>>,
}

/// Follows a conversation until its connection ends. The text of an entry has the time at which it was sent.
async fn follow(address: String, conversation: usize, begun: Instant, seen: Arc<Seen>) {
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let path = format!("/api/v1/conversations/chat-{conversation}/events?since=1");
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes()).await.unwrap();
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    let mut is_ready = false;
    loop {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(read) => text.push_str(std::str::from_utf8(&piece[..read]).unwrap()),
        }
        let now = begun.elapsed();
        if !is_ready && text.contains(": following") {
            is_ready = true;
            seen.ready.fetch_add(1, Ordering::AcqRel);
        }
        while let Some((event, rest)) = text.split_once("}\n\n") {
            let sent = event.split("sent at ").nth(1).and_then(|sent| sent.split(' ').next());
            if let Some(sent) = sent.and_then(|sent| sent.parse().ok()) {
                seen.times.lock().unwrap().push(now.saturating_sub(Duration::from_nanos(sent)));
                seen.events.fetch_add(1, Ordering::AcqRel);
            }
            text = rest.to_owned();
        }
    }
}

fn wait(what: &str, count: impl Fn() -> usize, wanted: usize) {
    let begun = Instant::now();
    while count() < wanted {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}: {} of {wanted}", count());
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn run() {
    let (server, begun, seen) = (Server::start(), Instant::now(), Arc::<Seen>::default());
    let mut connection = Connection::open(&server.address);
    (0..CONVERSATIONS).for_each(|conversation| _ = connection.append(&format!("chat-{conversation}"), "hello"));
    let before = server.status("VmRSS");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for follower in 0..FOLLOWERS {
        runtime.spawn(follow(server.address.clone(), follower % CONVERSATIONS, begun, Arc::clone(&seen)));
        if follower % 100 == 99 {
            wait("followers", || seen.ready.load(Ordering::Acquire), follower + 1);
        }
    }
    let (after, threads) = (server.status("VmRSS"), server.status("Threads"));
    for append in 0..APPENDS {
        let text = format!("sent at {} ns", begun.elapsed().as_nanos());
        connection.append(&format!("chat-{}", append % CONVERSATIONS), &text);
        std::thread::sleep(PAUSE);
    }
    wait("events", || seen.events.load(Ordering::Acquire), APPENDS * FOLLOWERS / CONVERSATIONS);
    let mut times = seen.times.lock().unwrap().clone();
    times.sort_unstable();
    println!("followers            {FOLLOWERS} on {CONVERSATIONS} conversations, {} events", times.len());
    println!(
        "server               {threads} threads, {} KiB of memory for each follower",
        (after - before) / FOLLOWERS as u64
    );
    println!(
        "append to event      p50 {:.1?}, p99 {:.1?}, longest {:.1?}",
        at(&times, 0.5),
        at(&times, 0.99),
        at(&times, 1.0)
    );
}
