//! The program's commands on the store of a server, and a library's calls.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use conversation_store::model::Message;
use conversation_store::{Error, ListQuery, Store};
use serde_json::Value;

use super::{store, url};
use crate::common::running::{Running, run};

#[test]
fn a_store_is_opened_appended_to_loaded_and_listed() {
    let mut server = Running::durable(&[]);
    let first = store(&server);
    let receipt = first.append("chat", &[Message::user("hello")]).unwrap();
    assert_eq!((receipt.first_seq, receipt.durable), (1, true));
    assert_eq!(first.load("chat").unwrap().messages().len(), 1);
    let items = first.list(&ListQuery::new()).unwrap().items;
    assert_eq!(items.iter().map(|item| item.key.as_deref()).collect::<Vec<_>>(), [Some("chat")]);
    // A second program has it open at the same time, and both outlive a server that is started again.
    let second = store(&server);
    second.append("chat", &[Message::user("again")]).unwrap();
    assert_eq!(first.load("chat").unwrap().messages().len(), 2);
    server.kill_and_restart();
    assert_eq!(store(&server).load("chat").unwrap().messages().len(), 2);
}

#[test]
fn what_answers_is_no_server_or_another_or_none() {
    let open = |url: &str| Store::open(url).unwrap_err();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(matches!(open(&format!("http://{free}")), Error::Io { .. }));
    let (server, _) = Running::with_keys(&[("ada", "read")]);
    let error = open(&url(&server));
    assert!(matches!(&error, Error::InvalidInput(text) if text.contains("key")), "{error}");
    let error = open(&format!("{}/elsewhere", url(&server)));
    assert!(matches!(&error, Error::InvalidInput(_)), "{error}");
}

/// Runs a command on the store of a server: what it prints.
fn on(server: &Running, args: &[&str]) -> String {
    let url = url(server);
    let (code, stdout, stderr) = run(&[&["--store", url.as_str(), "--json"], args].concat(), &[]);
    assert_eq!(code, Some(0), "{args:?}: {stderr}");
    stdout
}

#[test]
fn the_commands_work_as_on_any_store() {
    let server = Running::durable(&[]);
    let dir = server.dir.path();
    let transcript = dir.join("chat.jsonl");
    let lines = [
        r#"{"role":"user","chunks":[{"type":"text","text":"What is in this folder?"}]}"#,
        r#"{"role":"assistant","chunks":[{"type":"tool_call","id":"call_1","name":"ls","arguments":"{}"}]}"#,
        r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"call_1","content":"src"}]}"#,
    ];
    std::fs::write(&transcript, lines.join("\n")).unwrap();
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    assert_eq!(on(&server, &["append", "chat", &path("chat.jsonl")]).lines().count(), 3);
    let answer = dir.join("answer.sse");
    std::fs::write(
        &answer,
        "data: {\"id\":\"c1\",\"model\":\"gpt-5\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"src.\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    )
    .unwrap();
    on(&server, &["ingest", "chat", &path("answer.sse"), "--from", "openai-chat"]);
    assert!(on(&server, &["show", "chat"]).contains("src."));
    assert!(on(&server, &["list"]).contains("\"chat\""));
    let prompt: Value = serde_json::from_str(&on(&server, &["prompt", "chat", "--for", "openai-chat"])).unwrap();
    assert_eq!(prompt["request"]["messages"].as_array().unwrap().len(), 4);
    on(&server, &["tag", "chat", "work"]);
    on(&server, &["title", "chat", "Folders"]);
    assert!(on(&server, &["list", "--tag", "work"]).contains("Folders"));
    assert!(on(&server, &["fork", "chat", "--as", "fork"]).contains("fork"));
    on(&server, &["rewind", "fork", "1"]);
    assert_eq!(on(&server, &["show", "fork"]).lines().count(), 1);
    on(&server, &["delete", "fork", "--yes"]);
    assert!(!on(&server, &["list"]).contains("\"fork\""));
    assert!(on(&server, &["verify"]).contains("\"problems\":[]"));
    let backup = path("copy.backup");
    assert!(on(&server, &["backup", &backup]).contains("\"conversations\":1"));
    let (code, shown, _) = run(&["--store", &format!("backup:{backup}"), "--json", "show", "chat"], &[]);
    assert_eq!((code, shown), (Some(0), on(&server, &["show", "chat"])));
}

/// The error of a store that is open elsewhere names the way.
#[test]
fn a_locked_store_names_the_server() {
    let server = Running::durable(&[]);
    let store = format!("sled:{}", server.dir.path().join("store").display());
    let (code, _, stderr) = run(&["--store", &store, "list"], &[]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("convo serve") && stderr.contains("--store http://"), "{stderr}");
}

#[test]
fn entries_are_followed_through_a_server() {
    let server = Running::durable(&[]);
    let store = store(&server);
    store.append("chat", &[Message::user("one")]).unwrap();
    let url = url(&server);
    let mut following = Command::new(env!("CARGO_BIN_EXE_convo"))
        .args(["--store", &url, "--json", "entries", "chat", "--follow"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    for (seq, text) in [(1, "one"), (2, "two"), (3, "three")] {
        if seq > 1 {
            store.append("chat", &[Message::user(text)]).unwrap();
        }
        let line = lines.next().unwrap().unwrap();
        let entry: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((entry["seq"].as_u64(), entry["chunk"]["text"].as_str()), (Some(seq), Some(text)));
    }
    following.kill().unwrap();
    following.wait().unwrap();
    std::io::stdout().flush().unwrap();
}
