use super::{ANSWER, HELLO, Place};

#[test]
fn each_line_is_an_append_with_its_receipt() {
    let place = Place::new();
    let run = place.run_with(&["append", "c"], format!("\u{feff}{HELLO}\r\n\n  \n{ANSWER}"));
    let id = "e07db1a4-3c8f-5032-b28e-0442d67bd389";
    let receipt = |seq: u32| {
        format!(
            "{{\"conversation\":\"{id}\",\"first_seq\":{seq},\"last_seq\":{seq},\
             \"message_indexes\":[{}],\"durable\":true,\"duplicate\":false,\"key\":\"c\"}}\n",
            seq - 1
        )
    };
    assert_eq!((run.exit, run.stdout, run.stderr), (0, receipt(1) + &receipt(2), String::new()));
}

#[test]
fn a_person_gets_one_receipt_for_all() {
    let place = Place::new();
    let text = |args: &[&str], lines: &str| place.run_with(&[&["append", "d", "--text"], args].concat(), lines).stdout;
    assert_eq!(text(&[], HELLO), "message 0, seq 1\n");
    let two = format!("{HELLO}\n{ANSWER}");
    assert_eq!(text(&["--key", "k"], &two), "2 messages, 1 to 2, seq 2 to 3\n");
    assert_eq!(
        text(&["--key", "k"], &format!("{two}\n{HELLO}")),
        "3 messages, 1 to 3, seq 2 to 4, 2 of them stored already\n"
    );
    assert_eq!(text(&["--key", "k"], HELLO), "message 1, seq 2, stored already\n");
    assert_eq!(text(&["--each"], &two), "message 4, seq 5\nmessage 5, seq 6\n");
    // What was appended before a bad line stays, and is told.
    assert_eq!(text(&[], &format!("{HELLO}\n{HELLO}\nnonsense")), "2 messages, 6 to 7, seq 7 to 8\n");
}

#[test]
fn receipts_come_while_the_input_is_open() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    let place = Place::new();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("convo"))
        .current_dir(place.dir.path())
        .env("CONVO_STORE", super::STORE)
        .args(["append", "c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut receipts = BufReader::new(stdout).lines();
    for seq in 1..=3 {
        writeln!(stdin, "{HELLO}").unwrap();
        assert!(receipts.next().unwrap().unwrap().contains(&format!("\"last_seq\":{seq},")));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_bad_line_stops_it_and_what_came_before_stays() {
    let place = Place::new();
    let run = place.run_with(&["append", "c"], format!("{HELLO}\nnonsense\n{HELLO}"));
    assert_eq!((run.exit, run.json().len()), (2, 1));
    assert_eq!(place.store().load("c").unwrap().messages().len(), 1);
}

#[test]
fn atomic_appends_all_or_nothing() {
    let place = Place::new();
    let run = place.run_with(&["append", "c", "-", "--atomic"], format!("{HELLO}\nnonsense"));
    assert_eq!((run.exit, run.stdout.as_str()), (2, ""));
    assert_eq!(place.run(&["show", "c"]).exit, 2);
    let run = place.run_with(&["append", "c", "-", "--atomic"], format!("{HELLO}\n{ANSWER}"));
    let [receipt] = run.json().try_into().unwrap();
    assert_eq!(receipt["message_indexes"], serde_json::json!([0, 1]));
}

#[test]
fn expectations_hold_from_line_to_line() {
    let place = Place::new();
    let lines = format!("{HELLO}\n{ANSWER}");
    assert_eq!(place.run_with(&["append", "c", "--expect", "0"], lines.as_str()).json().len(), 2);
    assert_eq!(place.run_with(&["append", "c", "--expect", "0"], lines.as_str()).exit, 2);
    assert_eq!(place.run_with(&["append", "c", "--expect", "1"], lines.as_str()).exit, 2);
    assert_eq!(place.run_with(&["append", "c", "--expect", "2"], lines.as_str()).json().len(), 2);
    assert_eq!(place.run_with(&["append", "d", "--expect", "2"], lines.as_str()).exit, 2);
    let stale = place.run_with(&["append", "c", "--expect", "4-0000000000000001"], lines.as_str());
    assert_eq!((stale.exit, stale.stderr.contains("an earlier conversation")), (2, true), "{}", stale.stderr);
}

#[test]
fn a_key_makes_it_safe_to_repeat() {
    let place = Place::new();
    let args = ["append", "c", "--key", "k", "--expect", "0"];
    assert_eq!(place.run_with(&args, format!("{HELLO}\n{HELLO}")).exit, 0);
    let again = place.run_with(&args, format!("{HELLO}\n{HELLO}\n{ANSWER}"));
    let duplicates: Vec<_> = again.json().iter().map(|receipt| receipt["duplicate"] == true).collect();
    assert_eq!((again.exit, duplicates), (0, vec![true, true, false]));
    // The first line's key is the key itself, as the library has it.
    let options = conversation_store::AppendOptions::new().with_idempotency_key("k");
    let message = conversation_store::model::Message::from_json(HELLO).unwrap();
    assert!(place.store().append_with("c", &[message], &options).unwrap().duplicate);
}

#[test]
fn a_line_may_name_the_same_conversation_by_its_id() {
    let place = Place::new();
    let line = HELLO.replacen('{', r#"{"conversation": "e07db1a4-3c8f-5032-b28e-0442d67bd389", "#, 1);
    assert_eq!(place.run_with(&["append", "c"], line).exit, 0);
}

#[test]
fn replaced_surrogates_are_told() {
    let place = Place::new();
    let run = place.run_with(&["append", "c"], HELLO.replace("hello", "half \\ud83d"));
    let wanted = "stdin:1: chunks[0]: a lone surrogate escape was replaced by U+FFFD; the original text is kept too\n";
    assert_eq!((run.exit, run.stderr.as_str()), (0, wanted));
}

#[test]
fn the_messages_of_a_request_are_appended() {
    let place = Place::new();
    let request = r#"{"model": "m", "system": "Be brief.", "messages": [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "clock", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "12:00"}]}]}"#;
    place.write("request.json", request);
    let run = place.run(&["append", "c", "request.json", "--from", "anthropic"]);
    assert_eq!((run.exit, run.stderr.as_str(), run.json().len()), (0, "", 4));
    let roles: Vec<_> = place.run(&["show", "c"]).json().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles[..3], ["system", "user", "assistant"]);
    assert_eq!(place.run(&["next", "c"]).json()[0]["step"], "call_model");
    let again = ["append", "d", "request.json", "--from", "anthropic", "--atomic", "--expect", "0", "--key", "k"];
    for duplicate in [false, true] {
        let [receipt] = place.run(&again).json().try_into().unwrap();
        assert_eq!(
            (&receipt["message_indexes"], &receipt["duplicate"]),
            (&serde_json::json!([0, 1, 2, 3]), &duplicate.into())
        );
    }
}

#[test]
fn a_broken_request_is_appended_as_it_is_and_told() {
    let place = Place::new();
    let request = r#"[{"role": "human", "content": "hi"}, {"role": "tool", "tool_call_id": "c", "content": "42"}]"#;
    let run = place.run_with(&["append", "c", "--from", "openai-chat"], request);
    assert_eq!((run.exit, run.json().len(), run.stderr.lines().count()), (0, 2, 2));
    assert!(run.stderr.starts_with("report: 1 changed\n  changed  message 0: "), "{}", run.stderr);
    assert_eq!(place.run(&["show", "c", "--raw"]).json().len(), 2);
    for (text, wanted) in [
        ("{\"messages\": [", "error: stdin:1:14: not JSON: EOF while parsing a list\n"),
        ("{}", "error: stdin: no request: expected an object with an array `messages`, or that array\n"),
    ] {
        let run = place.run_with(&["append", "c", "--from", "openai-chat"], text);
        assert_eq!((run.exit, run.stdout.as_str(), run.stderr.as_str()), (2, "", wanted));
    }
    let run = place.run_with(&["append", "c", "--from", "openai-chat"], "[]");
    assert_eq!((run.exit, run.stderr.as_str()), (0, "stdin: no messages, nothing was appended\n"));
    let chunk = serde_json::json!([{"role": "user", "content": "x".repeat(64 * 1024 * 1024 + 1)}]);
    let run = place.run_with(&["append", "c", "--from", "openai-chat"], chunk.to_string());
    assert!(run.exit == 2 && run.stderr.starts_with("error: stdin: message 0: a chunk has "), "{}", run.stderr);
}

#[test]
fn a_result_without_content_is_warned_of() {
    let place = Place::new();
    let line = |fields: &str| {
        format!(r#"{{"role": "tool", "chunks": [{{"type": "tool_result", "tool_call_id": "c1"{fields}}}]}}"#)
    };
    let warning =
        "warning: stdin:2: chunks[0]: the tool result has no `content`: it is stored as a result that is empty\n";
    let lines = [line(r#", "content": """#), line(r#", "output": "42""#), line(r#", "content": []"#)].join("\n");
    let run = place.run_with(&["append", "c"], format!("\u{feff}{lines}"));
    assert_eq!((run.exit, run.stderr.as_str()), (0, warning));
}
