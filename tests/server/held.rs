//! What requests make the server hold: one bound for all, whatever a client does or leaves undone.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::http::{Client, read};
use crate::common::running::Running;
use crate::streams::config;

const MIB: u64 = 1024 * 1024;
const CHAT: &str = "/api/v1/conversations/chat";
/// What a process takes beside what is counted: the store, threads, what the allocator keeps.
const BESIDE: u64 = 192 * MIB;

fn metric(client: &Client, name: &str) -> u64 {
    let metrics = client.get("/metrics").text();
    metrics.lines().filter_map(|line| line.strip_prefix(name)?.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server with a store of its own, whose owners may make it hold so many MiB, and a client of each of two owners, and of an admin.
fn bounded(held: u64) -> (Running, [Client; 3]) {
    let limits = config(&format!("[limits]\nheld_bytes = {}\nidle_seconds = 600\n", held * MIB));
    let owners = [("ada", "read,append"), ("grace", "read,append"), ("root", "admin")];
    let (server, clients) = Running::with_keys_on("sled:DIR/store?cache_mb=1", &owners, &["--config", &limits]);
    (server, clients.try_into().unwrap())
}

fn say(client: &Client, bytes: u64) {
    let text = "x".repeat(usize::try_from(bytes).unwrap());
    client
        .post(&format!("{CHAT}/messages"), &json!({ "role": "user", "chunks": [{ "type": "text", "text": text }] }))
        .ok();
}

fn ask(client: &Client, path: &str) -> TcpStream {
    let mut stream = client.connect().unwrap();
    stream.write_all(client.head("GET", path, &[]).as_bytes()).unwrap();
    stream
}

#[test]
fn answers_that_nobody_reads_stay_within_the_bound() {
    let (server, [ada, grace, root]) = bounded(192);
    (0..20).for_each(|_| say(&ada, MIB));
    say(&grace, 10);
    let path = format!("{CHAT}/messages?limit=100");
    let mut stuck = Vec::new();
    let answered = |status: &str| {
        let row = format!(
            "convo_requests_total{{route=\"GET {}/messages\",status=\"{status}\"}}",
            CHAT.replace("chat", "{conversation}")
        );
        metric(&root, &row)
    };
    let grown = server.growth(|| {
        stuck.extend((0..60).map(|_| ask(&ada, &path)));
        until("they are answered", || answered("200") + answered("503") >= 60);
        // One owner cannot take all.
        assert_eq!(grace.get(&path).ok()["messages"].as_array().unwrap().len(), 1);
    });
    println!("{} MiB", grown / MIB);
    assert!(grown < 192 * MIB + BESIDE, "{} MiB", grown / MIB);
    assert!(answered("503") > 0);
    let (held, whole) = (metric(&root, "convo_held_bytes "), answered("200") - 1);
    assert!(held >= 16 * MIB * whole, "{held} bytes of {whole} answers count");
    let is_refused = |stream: &&TcpStream| {
        let mut status = [0; 12];
        stream.peek(&mut status).is_ok() && status.ends_with(b"503")
    };
    let refused = stuck.iter().find(is_refused).unwrap().try_clone().unwrap();
    let refused = read(&mut BufReader::new(refused)).unwrap();
    assert_eq!((refused.code(503).as_str(), refused.header("retry-after")), ("busy", Some("1")));
    // The values of a body take much more than it is written with.
    let many = format!("{{\"messages\":[{}]}}", vec!["{}"; 500_000].join(","));
    // It is more than one owner may hold; while others hold something, it is refused before that is known.
    let refused = ada.send("POST", "/api/v1/check?for=openai-chat", &[], many.as_bytes());
    assert!([(503, "busy"), (413, "limit_exceeded")].contains(&(refused.status, &*refused.code(refused.status))));
    // What nobody waits for any more is given back.
    drop(stuck);
    until("the room comes back", || ada.get(&path).status == 200);
    until("nothing is held", || metric(&root, "convo_held_bytes ") == 0);
}

#[test]
fn followers_of_a_large_entry_stay_within_the_bound() {
    let (server, [ada, grace, root]) = bounded(256);
    say(&ada, 24 * MIB);
    say(&grace, 10);
    let path = format!("{CHAT}/events");
    let mut stuck = Vec::new();
    let has_come = |stream: &&TcpStream| stream.peek(&mut [0; 8192]).is_ok_and(|came| came == 8192);
    let grown = server.growth(|| {
        stuck.extend((0..30).map(|_| ask(&ada, &path)));
        until("they follow", || metric(&root, "convo_followers ") == 30);
        // What was read for it counts no longer once it is delivered, so that there is room for more than two.
        until("it comes to more than two", || stuck.iter().filter(has_come).count() > 3);
        let (mut last, mut same) = (0, 0);
        let begun = Instant::now();
        while same < 20 {
            let now = server.resident();
            same = if now.abs_diff(last) < MIB { same + 1 } else { 0 };
            last = now;
            std::thread::sleep(Duration::from_millis(50));
            assert!(begun.elapsed() < Duration::from_secs(60), "its memory does not settle");
        }
        assert_eq!(grace.follow(&path, &[]).take(1).len(), 1);
    });
    println!("{} MiB", grown / MIB);
    // The entry itself is read by two threads for each processor, and by 16 at most, before it is known how large it is.
    let reads = (2 * available_parallelism().unwrap().get() as u64).min(16);
    assert!(grown < (256 + reads * 24) * MIB + BESIDE, "{} MiB", grown / MIB);
    drop(stuck);
    assert_eq!(ada.follow(&path, &[]).take(1).len(), 1);
}

#[test]
fn ingested_events_without_an_end_stay_within_the_bound() {
    let (server, [ada, grace, root]) = bounded(128);
    let path = format!("{CHAT}/ingest?from=openai-chat");
    let mut refused = 0;
    let grown = server.growth(|| {
        let streams: Vec<_> = (0..12)
            .map(|_| {
                let ada = ada.clone();
                let head = ada.head("POST", &path, &[("content-length", "100000000")]);
                std::thread::spawn(move || {
                    let mut stream = ada.connect().unwrap();
                    stream.write_all(head.as_bytes()).unwrap();
                    let _ = stream.write_all(b"data: ");
                    // The server may refuse it before its end.
                    let line = vec![b'x'; 1024 * 1024];
                    let all = (0..12).all(|_| stream.write_all(&line).is_ok());
                    (stream, all)
                })
            })
            .collect();
        let streams: Vec<_> = streams.into_iter().map(|stream| stream.join().unwrap()).collect();
        until("some are refused", || metric(&root, "convo_ingests ") < 12);
        let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        assert_eq!(grace.send("POST", &path, &[], body.as_bytes()).ok()["finish_reason"], "stop");
        for (stream, _) in streams.into_iter().filter(|(_, all)| !all) {
            if read(&mut BufReader::new(stream)).is_ok_and(|answer| answer.code(503) == "busy") {
                refused += 1;
            }
        }
    });
    println!("{} MiB, {refused} were told", grown / MIB);
    assert!(grown < 128 * MIB + BESIDE, "{} MiB", grown / MIB);
    until("nothing is held", || metric(&root, "convo_held_bytes ") == 0);
}

/// A value is written with two bytes, and takes hundreds: what is judged is bounded by its values.
#[test]
fn requests_of_very_many_values_are_refused_before_they_are_parsed() {
    let (server, [ada, _, root]) = bounded(192);
    let request = |count: usize| format!("{{\"messages\":[{}]}}", vec!["{}"; count].join(","));
    let (many, few) = (request(1_000_000), request(5_000));
    let grown = server.growth(|| {
        for path in ["/api/v1/check?for=openai-chat", "/api/v1/repair?for=openai-chat"] {
            assert_eq!(ada.send("POST", path, &[], many.as_bytes()).code(413), "limit_exceeded", "{path}");
        }
    });
    println!("{} MiB", grown / MIB);
    assert!(grown < BESIDE, "{} MiB", grown / MIB);
    ada.send("POST", "/api/v1/check?for=openai-chat", &[], few.as_bytes()).ok();
    ada.send("POST", "/api/v1/repair?for=openai-chat", &[], few.as_bytes()).of(422);
    // What is in a text is no value.
    let text = json!({ "messages": [{ "role": "user", "content": ",".repeat(1_000_000) }] });
    ada.send("POST", "/api/v1/repair?for=openai-chat", &[], text.to_string().as_bytes()).ok();
    until("nothing is held", || metric(&root, "convo_held_bytes ") == 0);
}
