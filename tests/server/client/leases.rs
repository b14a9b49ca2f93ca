//! Clients that go away in the middle of an answer.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use conversation_store::model::Chunk;
use conversation_store::{MessageState, Store};

use super::{store, url};
use crate::common::running::Running;

/// What a lease lasts, and what may be added to it: generously.
const PATIENCE: Duration = Duration::from_secs(90);
const BEGINNING: &str = "data: {\"id\":\"c1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"as far as it came\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\", and more\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// A client in a process of its own, which is in the middle of an answer.
fn ingesting(server: &Running, chat: &str, store: &Store) -> Child {
    let mut client = Command::new(env!("CARGO_BIN_EXE_convo"))
        .args(["--store", &url(server), "ingest", chat, "-", "--from", "openai-chat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    client.stdin.as_mut().unwrap().write_all(BEGINNING.as_bytes()).unwrap();
    until("the answer begins", || store.load_raw(chat).is_ok_and(|stored| !stored.is_empty()));
    client
}

fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn signal(client: &Child, name: &str) {
    assert!(Command::new("kill").args([format!("-{name}"), client.id().to_string()]).status().unwrap().success());
}

/// The message of a client that was killed, or that stood still, is interrupted once its lease is over; what a client sends
/// after that is refused. One that is only slow keeps its message.
#[test]
fn a_client_that_is_gone_leaves_an_interrupted_message() {
    let dir = crate::common::tempdir().unwrap();
    let file = dir.path().join("convo.toml");
    std::fs::write(&file, "[limits]\nlease_seconds = 3\n").unwrap();
    let server = Running::durable(&["--config", file.to_str().unwrap()]);
    let store = store(&server);
    let mut killed = ingesting(&server, "killed", &store);
    let mut stopped = ingesting(&server, "stopped", &store);
    let mut slow = ingesting(&server, "slow", &store);
    killed.kill().unwrap();
    killed.wait().unwrap();
    signal(&stopped, "STOP");
    assert_eq!(store.unfinished().unwrap().len(), 3);
    let state = |chat: &str| {
        let stored = store.load_raw(chat).unwrap();
        assert_eq!(stored.len(), 1, "{chat}");
        (stored[0].message.chunks.clone(), stored[0].state)
    };
    let interrupted = (vec![Chunk::text("as far as it came")], MessageState::Interrupted);
    until("the lease of who was killed ends", || state("killed") == interrupted);
    until("the lease of who stands still ends", || state("stopped") == interrupted);
    signal(&stopped, "CONT");
    // It may have heard of it already, and have ended.
    let _ = stopped.stdin.take().unwrap().write_all(END.as_bytes());
    let output = stopped.wait_with_output().unwrap();
    assert_ne!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(state("stopped"), interrupted);
    slow.stdin.take().unwrap().write_all(END.as_bytes()).unwrap();
    let output = slow.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(state("slow"), (vec![Chunk::text("as far as it came, and more")], MessageState::Complete));
    store.append("killed", &[conversation_store::model::Message::user("go on")]).unwrap();
}
