//! The disk becomes full under a server. Needs a tmpfs of its own: root.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::http::{Answer, Client};
use crate::common::running::Running;
use crate::recorded::{Recorder, Reply};

/// A small disk.
struct Disk(TempDir);

impl Disk {
    /// Absent: it could not be mounted.
    fn mount(megabytes: u32) -> Option<Self> {
        let dir = crate::common::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(dir.path()).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(Self(dir))
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let mut file = fs::File::options().create(true).append(true).open(self.0.path().join("fill")).unwrap();
        for bytes in [64 * 1024, 4096, 1] {
            while file.write_all(&vec![1; bytes]).is_ok() {}
        }
    }

    fn make_room(&self) {
        fs::remove_file(self.0.path().join("fill")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

fn say(client: &Client, at: usize) -> Answer {
    let message = json!({ "role": "user", "chunks": [{ "type": "text", "text": format!("{at} ").repeat(8_000) }] });
    client.post(&format!("/api/v1/conversations/chat-{}/messages", at % 3), &message)
}

/// Messages that can be read.
fn stored(client: &Client) -> usize {
    (0..3)
        .map(|at| {
            let path = format!("/api/v1/conversations/chat-{at}/messages?limit=1000");
            let page = client.get(&path).ok();
            assert!(page.get("next").is_none());
            page["messages"].as_array().unwrap().len()
        })
        .sum()
}

fn problems(client: &Client) -> Vec<Value> {
    client.get("/readyz").of(503)["problems"].as_array().unwrap().clone()
}

#[test]
fn a_full_disk_is_reported_and_read_and_written_again_once_there_is_room() {
    let Some(disk) = Disk::mount(64) else {
        assert!(std::env::var_os("CONVO_REQUIRE_MOUNT").is_none(), "a tmpfs cannot be mounted");
        return crate::common::skipped("full disks of a server: a tmpfs cannot be mounted");
    };
    // Some of the room is taken, and is what will be made.
    fs::write(disk.0.path().join("fill"), vec![1; 16 * 1024 * 1024]).unwrap();
    let url = format!("sled:{}?cache_mb=1", disk.0.path().join("db").display());
    let mut server = Running::start(&url, &[]);
    let mut taken = 0;
    let refused = loop {
        let answer = say(&server.client, taken);
        if answer.status != 200 {
            break answer;
        }
        taken += 1;
    };
    assert!(taken > 100, "{taken}");
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.header("retry-after").is_some());
    for _ in 0..20 {
        let answer = say(&server.client, taken);
        assert_eq!(answer.status, 503, "{}", answer.text());
    }
    assert_eq!(problems(&server.client), ["poisoned"]);
    server.client.get("/livez").ok();
    server.client.get("/api/v1/conversations").ok();
    // A server that starts on a full disk is there for reading.
    disk.fill();
    server.kill_and_restart();
    assert!(stored(&server.client) >= taken, "acknowledged and lost");
    let mut refused = false;
    for at in 0..200 {
        // What fits into the room that the store's file has already is taken.
        let answer = say(&server.client, at);
        match answer.status {
            200 => taken += 1,
            status => {
                assert_eq!(status, 503, "{}", answer.text());
                refused = true;
            }
        }
    }
    assert!(refused && !problems(&server.client).is_empty());
    disk.make_room();
    server.kill_and_restart();
    server.client.get("/readyz").ok();
    assert!(stored(&server.client) >= taken, "acknowledged and lost");
    assert_eq!(say(&server.client, 0).status, 200);
    assert_eq!(server.client.post("/api/v1/admin/verify", &json!({})).ok()["problems"], json!([]));
}

/// What cannot be stored passes all the same, and says so.
#[test]
fn traffic_goes_on_when_the_disk_is_full() {
    let Some(disk) = Disk::mount(40) else {
        assert!(std::env::var_os("CONVO_REQUIRE_MOUNT").is_none(), "a tmpfs cannot be mounted");
        return crate::common::skipped("full disks of the proxy: a tmpfs cannot be mounted");
    };
    let url = format!("sled:{}?cache_mb=1", disk.0.path().join("db").display());
    let more = "[[upstream]]\nname = \"gone\"\nurl = \"http://127.0.0.1:1\"\nrecord = \"required\"\n";
    let mut recorder = Recorder::with(&url, more, &[]);
    let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] }).to_string();
    let piece = |at: usize| {
        let delta = json!({ "content": format!("{at} ").repeat(20_000) });
        format!("data: {}\n\n", json!({ "id": "c", "choices": [{ "index": 0, "delta": delta }] }))
    };
    let path = "/v1/chat/completions";
    let begun = Reply::stream().then(&piece(0)).wait(1);
    let reply = (1..300).fold(begun, |reply, at| reply.then(&piece(at))).then("data: [DONE]\n\n").end();
    let mut open = recorder.begin(recorder.client(), path, &[("x-session-id", "s")], body.as_bytes(), reply);
    open.until_length(piece(0).len());
    recorder.placed(open.answer.header("x-convo-exchange").unwrap());
    disk.fill();
    recorder.go_on();
    assert!(open.end(), "the answer passes whole");
    let all: String = (0..300).map(piece).collect::<String>() + "data: [DONE]\n\n";
    assert!(open.answer.body == all.as_bytes());
    let failed = |recorder: &Recorder| {
        let metrics = recorder.client().get("/metrics").text();
        let line =
            metrics.lines().find_map(|line| line.strip_prefix("convo_recordings_total{state=\"store_failed\"} "));
        line.map_or(0, |count| count.parse::<u64>().unwrap())
    };
    let begun = std::time::Instant::now();
    while failed(&recorder) == 0 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{}", recorder.running.log());
    }
    // The next call passes, too; but not where it must be recorded.
    let whole = json!({ "id": "c", "choices": [{ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": "hello" } }] });
    let mut open =
        recorder.begin(recorder.client(), path, &[("x-session-id", "t")], body.as_bytes(), Reply::json(&whole));
    assert!(open.end());
    assert_eq!((open.answer.status, open.answer.body), (200, whole.to_string().into_bytes()));
    let refused = recorder.client().send("POST", "/proxy/gone/v1/chat/completions", &[], body.as_bytes());
    assert_eq!(refused.code(503), "busy");
    // With room there is a record again.
    disk.make_room();
    recorder.kill_and_restart();
    let list: serde_json::Value = serde_json::from_str(&body).unwrap();
    let got = recorder.ask(path, &[("x-session-id", "u")], &list, Reply::json(&whole));
    assert_eq!(recorder.settled(&got.exchange)["state"], "complete");
}
