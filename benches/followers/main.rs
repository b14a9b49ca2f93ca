//! What followers cost: `cargo bench --bench followers`. 10,000 of them on 100 conversations of one store in memory, woken
//! by a single thread, without a runtime: how many threads the process has, the memory for each follower, and how long after
//! an append is durable the last of those who follow its conversation has read it.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::Message;
use conversation_store::{Store, Tail};

const CONVERSATIONS: usize = 100;
const FOLLOWERS: usize = 10_000;
const APPENDS: usize = 2_000;
/// The pause between two appends.
const PAUSE: Duration = Duration::from_millis(2);

/// Puts a follower into the queue of those that look again.
struct Turn {
    follower: usize,
    ready: Mutex<Sender<usize>>,
}

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        let _ = self.ready.lock().unwrap().send(self.follower);
    }
}

fn name(conversation: usize) -> String {
    format!("chat {conversation}")
}

/// A number from `/proc/self/status`.
fn status(field: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn main() {
    let url = std::env::args().skip(1).find(|argument| argument.contains(':'));
    let store = Store::open(url.as_deref().unwrap_or("memory:")).unwrap();
    for conversation in 0..CONVERSATIONS {
        store.append(name(conversation), &[Message::user("hello")]).unwrap();
    }
    let (ready, turns) = channel();
    let before = (status("VmRSS"), status("Threads"));
    let mut tails: Vec<(Tail, Waker)> = (0..FOLLOWERS)
        .map(|follower| {
            let tail = store.tail(name(follower % CONVERSATIONS), 1).unwrap();
            (tail, Waker::from(Arc::new(Turn { follower, ready: Mutex::new(ready.clone()) })))
        })
        .collect();
    for (tail, waker) in &mut tails {
        assert!(tail.poll_next(&mut Context::from_waker(waker)).is_pending());
    }
    let after = (status("VmRSS"), status("Threads"));
    let (done, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let writer = thread::spawn({
        let (store, begun, done) = (store.clone(), Arc::clone(&begun), Arc::clone(&done));
        move || {
            for append in 0..APPENDS {
                let receipt = store.append(name(append % CONVERSATIONS), &[Message::user("news")]).unwrap();
                begun.lock().unwrap().push((append % CONVERSATIONS, receipt.last_seq, Instant::now()));
                thread::sleep(PAUSE);
            }
            done.store(true, Ordering::Release);
        }
    });
    let mut seen = Vec::with_capacity(APPENDS * FOLLOWERS / CONVERSATIONS);
    while !done.load(Ordering::Acquire) || seen.len() < APPENDS * FOLLOWERS / CONVERSATIONS {
        let Ok(follower) = turns.recv_timeout(Duration::from_millis(100)) else { continue };
        let (tail, waker) = &mut tails[follower];
        while let Poll::Ready(entries) = tail.poll_next(&mut Context::from_waker(waker)) {
            let now = Instant::now();
            seen.extend(entries.unwrap().unwrap().iter().map(|entry| (follower % CONVERSATIONS, entry.seq, now)));
        }
    }
    writer.join().unwrap();
    let appended = begun.lock().unwrap();
    let durable = |conversation: usize, seq: u64| {
        appended.iter().find(|(of, at, _)| (*of, *at) == (conversation, seq)).map(|(_, _, when)| *when).unwrap()
    };
    let mut durable_at = std::collections::HashMap::new();
    let mut latencies: Vec<Duration> = seen
        .iter()
        .map(|(conversation, seq, when)| {
            let at = durable_at.entry((*conversation, *seq)).or_insert_with(|| durable(*conversation, *seq));
            when.saturating_duration_since(*at)
        })
        .collect();
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    println!("followers            {FOLLOWERS} on {CONVERSATIONS} conversations");
    println!("threads              {} before, {} with them", before.1, after.1);
    println!("memory for each      {} bytes", (after.0 - before.0) * 1024 / FOLLOWERS as u64);
    println!("entries read         {} ({APPENDS} appends)", latencies.len());
    println!("latency after the append returned: median {:?}, p99 {:?}, longest {:?}", at(0.5), at(0.99), at(1.0));
}
