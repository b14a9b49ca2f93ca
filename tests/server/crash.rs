//! What was acknowledged over HTTP is there after any end of the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::http::Client;
use crate::common::running::Running;
use crate::openai::conversation;

#[test]
fn nothing_acknowledged_is_lost() {
    let mut server = Running::durable(&[]);
    let paths: Vec<String> = (0..4).map(|_| conversation(&server.client)).collect();
    let acknowledged: Arc<Mutex<HashMap<String, Vec<String>>>> = Arc::default();
    for round in 0..3 {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let (client, path) = (server.client.clone(), paths[writer % paths.len()].clone());
                let acknowledged = Arc::clone(&acknowledged);
                std::thread::spawn(move || {
                    for at in 0.. {
                        let texts = [0, 1].map(|part| format!("{round}.{writer}.{at}.{part}"));
                        let items: Vec<Value> =
                            texts.iter().map(|text| json!({ "role": "user", "content": text })).collect();
                        let body = json!({ "items": items }).to_string();
                        match client.try_send("POST", &format!("{path}/items"), &[], body.as_bytes()) {
                            Ok(answer) if answer.status == 200 => {
                                acknowledged.lock().unwrap().entry(path.clone()).or_default().extend(texts)
                            }
                            _ => return,
                        }
                    }
                })
            })
            .collect();
        let before = acknowledged.lock().unwrap().values().map(Vec::len).sum::<usize>();
        while acknowledged.lock().unwrap().values().map(Vec::len).sum::<usize>() < before + 100 {
            std::thread::sleep(Duration::from_millis(2));
        }
        server.kill_and_restart();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let acknowledged = acknowledged.lock().unwrap();
        for (path, wanted) in acknowledged.iter() {
            let stored = texts(&server.client, path);
            let missing: Vec<_> = wanted.iter().filter(|text| !stored.contains(text)).collect();
            assert!(missing.is_empty(), "{path}: acknowledged and lost: {missing:?}");
            // All of a request, or nothing of it.
            assert!(
                stored.chunks(2).all(|pair| pair[0].rsplit_once('.').unwrap().0 == pair[1].rsplit_once('.').unwrap().0)
            );
        }
    }
    assert_eq!(server.client.post("/api/v1/admin/verify", &json!({})).ok()["problems"], json!([]));
}

fn texts(client: &Client, path: &str) -> Vec<String> {
    let (mut texts, mut after) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{path}/items?order=asc&limit=100{after}")).ok();
        let text = |item: &Value| item["content"][0]["text"].as_str().unwrap().to_owned();
        texts.extend(page["data"].as_array().unwrap().iter().map(text));
        if page["has_more"] == false {
            return texts;
        }
        after = format!("&after={}", page["last_id"].as_str().unwrap());
    }
}

#[test]
fn a_graceful_end_answers_what_began() {
    let mut server = Running::durable(&[]);
    let path = conversation(&server.client);
    // A request whose body is half sent when the signal comes.
    let body = json!({ "items": [{ "role": "user", "content": "kept" }] }).to_string();
    let mut stream = server.client.connect().unwrap();
    let length = body.len().to_string();
    let head = server.client.head("POST", &format!("{path}/items"), &[("content-length", &length)]);
    std::io::Write::write_all(&mut stream, &[head.as_bytes(), &body.as_bytes()[..10]].concat()).unwrap();
    let begun = std::time::Instant::now();
    while !server.client.get("/metrics").text().contains("convo_requests_in_flight 2") {
        assert!(begun.elapsed() < Duration::from_secs(30), "it did not begin");
    }
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(100));
    std::io::Write::write_all(&mut stream, &body.as_bytes()[10..]).unwrap();
    crate::common::http::read(&mut std::io::BufReader::new(stream)).unwrap().ok();
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    assert!(server.client.connect().is_err(), "nothing listens any more");
    server.restart();
    assert_eq!(texts(&server.client, &path), ["kept"]);
}

/// Bodies that drip get a moment, and no more.
#[test]
fn bodies_that_drip_do_not_keep_it() {
    let mut server = Running::durable(&["--config", &crate::streams::config("[server]\nshutdown_seconds = 3600\n")]);
    let path = conversation(&server.client);
    let head = server.client.head("POST", &format!("{path}/items"), &[("content-length", "100000")]);
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            let mut stream = server.client.connect().unwrap();
            std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
            let ended = &ended;
            scope.spawn(move || {
                while !ended.load(std::sync::atomic::Ordering::Relaxed)
                    && std::io::Write::write_all(&mut stream, b" ").is_ok()
                {
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
        let begun = std::time::Instant::now();
        while !server.client.get("/metrics").text().contains("convo_requests_in_flight 21") {
            assert!(begun.elapsed() < Duration::from_secs(30), "they did not begin");
        }
        server.signal("TERM");
        let code = server.wait();
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(code, Some(0), "{}", server.log());
    });
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut server = Running::durable(&[]);
    let path = conversation(&server.client);
    let mut stream = server.client.connect().unwrap();
    let head = server.client.head("POST", &format!("{path}/items"), &[("content-length", "100")]);
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let begun = std::time::Instant::now();
    while !server.client.get("/metrics").text().contains("convo_requests_in_flight 2") {
        assert!(begun.elapsed() < Duration::from_secs(30), "it did not begin");
    }
    server.signal("INT");
    while !server.log().contains("ending") {
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not end");
    }
    server.signal("INT");
    assert_eq!(server.wait(), Some(1));
}
