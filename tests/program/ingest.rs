use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use conversation_store::model::{Chunk, FinishReason};
use conversation_store::provider::WIRES;
use conversation_store::{MessageState, NextStep, next_step};
use serde_json::json;

use super::{HELLO, Place};

const STREAM: &str = concat!(
    "data: {\"id\":\"chatcmpl-1\",\"model\":\"gpt-5-2025-08-07\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"It is \"}}]}\n\n",
    "data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"noon.\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"total_tokens\":9}}\n\n",
    "data: [DONE]\n\n",
);

fn fixture(path: &str) -> String {
    format!("{}/tests/fixtures/providers/{path}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn an_answer_is_stored_whole_with_one_receipt() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    let run = place.run_with(&["ingest", "c", "--from", "openai-chat"], STREAM);
    assert_eq!((run.exit, run.stderr.as_str()), (0, ""));
    let [receipt] = run.json().try_into().unwrap();
    assert_eq!((&receipt["first_seq"], &receipt["message_indexes"]), (&json!(2), &json!([1])));
    assert_eq!((&receipt["durable"], &receipt["key"]), (&json!(true), &json!("c")));
    let conversation = place.store().load("c").unwrap();
    let stored = &conversation.messages()[1];
    assert_eq!((stored.state, stored.last_seq), (MessageState::Complete, receipt["last_seq"].as_u64().unwrap()));
    let message = &stored.message;
    assert_eq!(message.chunks, [Chunk::text("It is noon.")]);
    assert_eq!(message.finish_reason, Some(FinishReason::Stop));
    assert_eq!(message.usage.as_ref().map(|usage| usage.as_str()), Some(r#"{"total_tokens":9}"#));
    let metadata = &message.metadata;
    assert_eq!((metadata.id.as_deref(), metadata.model.as_deref()), (Some("chatcmpl-1"), Some("gpt-5-2025-08-07")));
    assert_eq!(metadata.provider.as_deref(), Some("openai"));
}

#[test]
fn every_wire_and_every_form_is_taken() {
    let place = Place::new();
    for wire in WIRES.iter().map(|wire| wire.name) {
        let folder = &wire.replace('-', "_");
        for file in ["response.json", "stream.txt"] {
            let run = place.run(&["ingest", folder, &fixture(&format!("{folder}/plain_text/{file}")), "--from", wire]);
            assert_eq!((run.exit, run.stderr.as_str(), run.json().len()), (0, "", 1), "{wire} {file}");
        }
        let shown = place.run(&["show", folder, "--raw"]).json();
        assert_eq!(shown[0]["chunks"], shown[1]["chunks"]);
        let expected = std::fs::read_to_string(fixture(&format!("{folder}/plain_text/expected.jsonl"))).unwrap();
        let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
        assert_eq!((&shown[0]["id"], &shown[0]["model"]), (&expected["id"], &expected["model"]), "{wire}");
    }
    let args = ["ingest", "c", "--from", "openai-chat/deepseek", "--provider", "openrouter"];
    assert_eq!(place.run_with(&args, STREAM).exit, 0);
    assert_eq!(place.run(&["show", "c", "--raw"]).json()[0]["provider"], "openrouter");
}

/// What came is durable before the stream has ended: the program is killed, and it is there.
#[test]
fn a_stream_is_stored_while_it_comes() {
    let place = Place::new();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("convo"))
        .current_dir(place.dir.path())
        .env("CONVO_STORE", super::STORE)
        .args(["ingest", "c", "--from", "openai-chat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (first, _) = STREAM.split_at(STREAM.find("\n\n").unwrap() + 2);
    stdin.write_all(first.as_bytes()).unwrap();
    stdin.flush().unwrap();
    // The deltas of a window are durable once they are in the journal.
    let log = place.path("convo.db/journal");
    let has_come = || std::fs::read(&log).is_ok_and(|bytes| bytes.windows(6).any(|window| window == b"It is "));
    while !has_come() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut receipts = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(receipts.next().is_none());
    let conversation = place.store().load("c").unwrap();
    let stored = &conversation.messages()[0];
    assert_eq!((stored.state, &stored.message.chunks[..]), (MessageState::Interrupted, &[Chunk::text("It is ")][..]));
    assert_eq!(stored.message.metadata.id.as_deref(), Some("chatcmpl-1"));
    assert_eq!(next_step(&conversation), NextStep::ContinueText);
}

#[test]
fn what_is_cut_off_is_stored_as_interrupted() {
    let place = Place::new();
    let cut = STREAM.find("noon").unwrap();
    let run = place.run_with(&["ingest", "c", "--from", "openai-chat"], STREAM.split_at(cut).0);
    let wanted = format!(
        "error: stdin: the answer was cut off after {cut} bytes; it is stored as interrupted\
         \n  cure: `convo next-step` states what to do now\n"
    );
    assert_eq!((run.exit, run.json().len(), run.stderr), (1, 1, wanted));
    let shown = place.run(&["show", "c"]).json();
    assert_eq!(shown[0]["finish_reason"], "interrupted");
    assert_eq!(shown[0]["chunks"], json!([{"type": "text", "text": "It is "}]));
    assert_eq!(place.run(&["next", "c"]).json()[0]["step"], "continue_text");
}

#[test]
fn errors_of_the_provider_are_stored_and_told_with_their_line() {
    let place = Place::new();
    let (first, _) = STREAM.split_at(STREAM.find("\n\n").unwrap() + 2);
    let stream = format!("{first}data: {{\"error\":{{\"message\":\"overloaded\",\"code\":503}}}}\n\n");
    let run = place.run_with(&["ingest", "c", "--from", "openai-chat"], stream);
    let wanted = "error: stdin:4: the answer is an error, and is stored as one: overloaded (503)\n";
    assert_eq!((run.exit, run.json().len(), run.stderr.as_str()), (1, 1, wanted));
    let shown = place.run(&["show", "c", "--raw"]).json();
    assert_eq!(shown[0]["finish_reason"], "error");
    assert_eq!(shown[0]["chunks"][1], json!({"type": "error", "message": "overloaded", "code": "503"}));
    let run = place.run_with(&["ingest", "d", "--from", "openai-chat"], format!("{first}data: {{\"a\":,}}\n\n"));
    assert_eq!(run.exit, 1);
    let wanted = "error: stdin:4: the answer is an error, and is stored as one: the answer holds what is no JSON: ";
    assert!(run.stderr.starts_with(wanted), "{}", run.stderr);
}

#[test]
fn of_what_holds_no_answer_nothing_is_stored() {
    let place = Place::new();
    let cure = "\n  cure: is it an answer of openai-chat?";
    let table = [
        ("", "stdin: it is empty; expected an answer of openai-chat".to_owned()),
        (
            "<html>502</html>",
            format!("stdin: the answer holds what is no JSON: <html>502</html>; nothing was stored{cure}"),
        ),
        (
            "data: {\"id\":\"chatcm",
            format!("stdin: it ends after 19 bytes, before an answer begins; nothing was stored{cure}"),
        ),
    ];
    for (input, wanted) in table {
        let run = place.run_with(&["ingest", "c", "--from", "openai-chat"], input);
        assert_eq!((run.exit, run.stdout.as_str(), run.stderr), (2, "", format!("error: {wanted}\n")), "{input}");
    }
    assert_eq!(place.run(&["show", "c"]).exit, 2);
    let run = place.run(&["ingest", "c", "none", "--from", "openai-chat"]);
    assert_eq!(
        (run.exit, run.stderr.as_str()),
        (2, "error: cannot read none: No such file or directory (os error 2)\n")
    );
    assert_eq!(place.run(&["ingest", "c", "--from", "chat"]).exit, 2);
    assert_eq!(place.run(&["ingest", "c"]).exit, 2);
}

#[test]
fn an_answer_of_another_wire_is_refused_with_its_name() {
    let place = Place::new();
    for from in WIRES.iter().map(|wire| wire.name) {
        for wire in WIRES.iter().map(|wire| wire.name).filter(|wire| *wire != from) {
            for file in ["response.json", "stream.txt"] {
                let path = fixture(&format!("{}/plain_text/{file}", wire.replace('-', "_")));
                let run = place.run(&["ingest", "c", &path, "--from", from]);
                assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{from} {wire} {file}");
                let wanted =
                    format!("this is not an answer of {from}; it looks like one of {wire}; nothing was stored");
                assert!(run.stderr.contains(&wanted), "{from} {wire} {file}: {}", run.stderr);
                assert!(run.stderr.ends_with(&format!("\n  cure: read it with --from {wire}\n")), "{}", run.stderr);
            }
        }
    }
    assert_eq!(place.run(&["show", "c"]).exit, 2, "something was stored");
}
