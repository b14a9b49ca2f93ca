//! The check against a provider, against a server of the tests' own that judges requests by the rules.

use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{self, Sender};
use std::thread;

use assert_cmd::Command;
use conversation_store::provider::{DIALECTS, Target, WIRES, check};

use super::{Place, Run};
use crate::common::http::received;

const KEY: &str = "sk-secret-0123456789";

/// A request: its head, in lower case, and its body.
type Request = (String, String);

/// Answers each request by the target's rules, until the program has gone. An error repeats the key, as some providers do.
fn serve(listener: &TcpListener, target: Target, status: u16, seen: &Sender<Request>) {
    for stream in listener.incoming() {
        let mut stream = BufReader::new(stream.unwrap());
        while let Some((head, body)) = received(&mut stream) {
            let findings = check(target, &body).unwrap();
            let is_refused = findings.iter().any(|finding| finding.level.is_refused());
            let status = if is_refused { 400 } else { status };
            let problem = findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            let answer = serde_json::json!({ "error": { "message": format!("{KEY}: {problem}") } }).to_string();
            let length = answer.len();
            seen.send((head, body)).unwrap();
            write!(stream.get_mut(), "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n\r\n{answer}").unwrap();
        }
    }
}

/// Runs the check for a target against a server that gives this status where it finds nothing.
fn checked(target: &str, status: u16, key: &str) -> (Run, Vec<Request>) {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/models/MODEL:call", listener.local_addr().unwrap());
    let (sender, seen) = mpsc::channel();
    let wanted: Target = target.parse().unwrap();
    thread::spawn(move || serve(&listener, wanted, status, &sender));
    let mut command = Command::cargo_bin("convo").unwrap();
    command.current_dir(place.path("")).env("CONVO_PROVIDER_KEY", "").env("MY_KEY", key);
    command.args(["live-check", "--for", target, "--model", "m-1", "--url", &url, "--json", "--key-env", "MY_KEY"]);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let run = Run { exit: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) };
    assert!(!run.stdout.contains(KEY) && !run.stderr.contains(KEY), "{} {}", run.stdout, run.stderr);
    (run, seen.try_iter().collect())
}

#[test]
fn every_target_is_sent_ten_histories_that_it_accepts() {
    let dialects = DIALECTS.iter().map(|dialect| format!("{}/{}", dialect.wire, dialect.name));
    for target in WIRES.iter().map(|wire| wire.name.to_owned()).chain(dialects) {
        let (run, seen) = checked(&target, 200, KEY);
        let results = run.json();
        assert_eq!((run.exit, results.len(), seen.len()), (0, 10, 10), "{target}: {}{}", run.stdout, run.stderr);
        assert!(results.iter().all(|result| result["outcome"] == "accepted"), "{target}: {}", run.stdout);
        assert!(results.iter().any(|result| result["repaired"] != 0), "{target}");
        for (head, body) in &seen {
            assert!(head.starts_with("post /v1/models/m-1:call http/1.1\r\n"), "{head}");
            let wire = target.split('/').next().unwrap();
            let header = match wire {
                "anthropic" => format!("\nx-api-key: {KEY}\r"),
                "gemini" => format!("\nx-goog-api-key: {KEY}\r"),
                _ => format!("\nauthorization: bearer {KEY}\r"),
            };
            assert!(head.contains(&header), "{target}: {head}");
            assert!(!body.contains(KEY));
            assert_eq!(body.contains("\"model\":\"m-1\""), !matches!(wire, "gemini" | "bedrock-converse"), "{body}");
        }
    }
}

#[test]
fn what_is_not_accepted_is_said_without_the_key() {
    for (status, outcome) in [(422, "refused"), (503, "not judged")] {
        let (run, _) = checked("anthropic", status, KEY);
        assert_eq!(run.exit, 1);
        assert!(run.json().iter().all(|result| result["outcome"] == outcome && result["status"] == status));
        assert!(run.stdout.contains("***"), "{}", run.stdout);
    }
    // A key that is not taken ends it: the other nine would say the same.
    let (run, seen) = checked("openai-chat", 401, KEY);
    assert_eq!((run.exit, seen.len()), (2, 1), "{}", run.stderr);
    let (run, seen) = checked("openai-chat", 200, "");
    assert_eq!((run.exit, seen.len()), (2, 0));
    assert!(run.stderr.contains("MY_KEY has no key"), "{}", run.stderr);
}
