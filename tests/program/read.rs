use serde_json::json;

use super::{ANSWER, HELLO, Place};

const CALL: &str = r#"{"role": "assistant", "chunks": [{"type": "tool_call", "id": "call_1", "name": "ls", "arguments": "{}"}], "finish_reason": "tool_calls"}"#;

#[test]
fn show_prints_messages_with_their_place() {
    let place = Place::new();
    let dated = ANSWER.replacen('{', r#"{"created_at": "2026-01-02T03:04:05Z", "#, 1);
    place.append("c", &[&dated]);
    let wanted = json!({
        "index": 0, "state": "complete", "first_seq": 1, "last_seq": 1, "chunk_indexes": [0],
        "role": "assistant", "chunks": [{"type": "text", "text": "Hi!"}], "finish_reason": "stop", "created_at": "2026-01-02T03:04:05Z",
    });
    assert_eq!(place.ok(&["show", "c"]).json(), std::slice::from_ref(&wanted));
    assert_eq!(place.ok(&["show", "c", "--raw"]).json(), [wanted]);
}

#[test]
fn show_repairs_and_reports_and_raw_does_not() {
    let place = Place::new();
    place.append("c", &[CALL, HELLO]);
    let repaired = place.run(&["show", "c"]);
    let states: Vec<_> = repaired.json().iter().map(|message| message["state"].clone()).collect();
    assert_eq!((repaired.exit, states), (0, vec![json!("complete"), json!("synthetic"), json!("complete")]));
    assert!(repaired.stderr.starts_with("report: 1 added\n  added    message 0, chunk 0: "), "{}", repaired.stderr);
    assert!(repaired.stderr.contains("(outcome_unknown)\n"), "{}", repaired.stderr);
    let report = place.run(&["show", "c", "--json"]).stderr;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&report).unwrap()["rule"], "outcome_unknown");
    assert_eq!(place.ok(&["show", "c", "--raw"]).json().len(), 2);
}

#[test]
fn entries_are_the_log() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER, CALL]);
    place.ok(&["rewind", "c", "2"]);
    let entries = place.ok(&["entries", "c"]).json();
    let kinds: Vec<_> = entries.iter().map(|entry| (entry["seq"].clone(), entry["kind"].clone())).collect();
    let wanted = [(1, "chunk"), (2, "chunk"), (3, "chunk"), (4, "rewind")];
    assert_eq!(kinds, wanted.map(|(seq, kind)| (json!(seq), json!(kind))));
    assert_eq!(place.ok(&["entries", "c", "--since", "1", "--limit", "2"]).json(), entries[1..3]);
    assert_eq!(place.ok(&["entries", "c", "--since", "4"]).stdout, "");
    // Each has a cursor, which is of this conversation and no later one of its name.
    let cursor = |at: usize| entries[at]["cursor"].as_str().unwrap();
    assert_eq!(place.ok(&["entries", "c", "--since", cursor(1)]).json(), entries[2..]);
    assert_eq!(place.run_with(&["append", "c", "--expect", cursor(2)], HELLO).exit, 2);
    assert_eq!(place.run_with(&["append", "c", "--expect", cursor(3)], HELLO).exit, 0);
    place.ok(&["delete", "c", "--yes"]);
    place.append("c", &[HELLO, ANSWER, CALL, HELLO]);
    for args in [["entries", "c", "--since", cursor(3)], ["append", "c", "--expect", cursor(3)]] {
        let stale = place.run_with(&args, HELLO);
        assert!(stale.exit == 2 && stale.stderr.contains("an earlier conversation"), "{}", stale.stderr);
    }
}

#[test]
fn entries_have_no_limit_of_their_own() {
    let place = Place::new();
    place.append("c", &[HELLO; 450]);
    let seqs: Vec<_> = place.ok(&["entries", "c"]).json().iter().map(|entry| entry["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=450).collect::<Vec<_>>());
    assert_eq!(place.ok(&["entries", "c", "--limit", "401"]).json().len(), 401);
}

#[test]
fn next_says_what_an_agent_must_do() {
    let place = Place::new();
    let steps = [
        (HELLO, json!({"step": "call_model"})),
        (ANSWER, json!({"step": "await_user"})),
        (
            CALL,
            json!({"step": "run_tools", "calls": [
                {"kind": "function", "message_index": 2, "tool_call_id": "call_1", "name": "ls", "arguments": "{}"},
            ]}),
        ),
    ];
    for (line, wanted) in steps {
        place.append("c", &[line]);
        assert_eq!(place.ok(&["next", "c"]).json(), [wanted]);
    }
}

#[test]
fn list_pages_and_filters() {
    let place = Place::new();
    for name in ["one", "two", "three"] {
        place.append(name, &[&HELLO.replace("hello", &format!("About {name}"))]);
    }
    let titles = |lines: &[serde_json::Value]| -> Vec<String> {
        let mut titles: Vec<_> = lines.iter().filter_map(|line| Some(line.get("title")?.to_string())).collect();
        titles.sort();
        titles
    };
    let wanted = titles(&place.ok(&["list"]).json());
    assert_eq!(wanted, [r#""About one""#, r#""About three""#, r#""About two""#]);
    let first = place.ok(&["list", "--limit", "2"]).json();
    let [.., last] = first.as_slice() else { panic!("nothing listed") };
    let cursor = last["next"].as_str().unwrap();
    let second = place.ok(&["list", "--limit", "2", "--after", cursor]).json();
    assert_eq!((first.len(), second.len()), (3, 1));
    assert_eq!(titles(&[first, second].concat()), wanted);
    let found = place.ok(&["list", "--title", "ABOUT T"]).json();
    assert_eq!(titles(&found), wanted[1..]);
    assert_eq!(found[0]["messages"], 1);
}

#[test]
fn prompt_takes_targets_dialects_and_thinking() {
    let place = Place::new();
    let thinking = ANSWER.replace(r#"[{"#, r#"[{"type": "thinking", "text": "hm"}, {"#);
    place.append("c", &[HELLO, &thinking]);
    let prompt = |args: &[&str]| {
        let run = place.run(&[&["prompt", "c"], args].concat());
        assert_eq!(run.exit, 0, "{args:?} {}", run.stderr);
        (run.stdout, run.stderr)
    };
    let (plain, report) = prompt(&["--for", "openai-chat"]);
    assert!(!plain.contains("hm") && report.contains("(thinking_left_out)"));
    assert!(prompt(&["--for", "openai-chat", "--thinking", "tagged"]).0.contains("<think>"));
    let none = prompt(&["--for", "openai-chat", "--thinking", "tagged", "--thinking-turns", "0"]);
    assert!(!none.0.contains("<think>") && none.1.contains("(thinking_left_out)"));
    let deepseek = prompt(&["--for", "openai-chat/deepseek", "--model", "m"]);
    assert!(deepseek.0.contains(r#""content":"Hi!""#), "{}", deepseek.0);
    let continued = prompt(&["--for", "openai-chat/deepseek", "--continue-last"]);
    assert!(continued.0.contains(r#""prefix":true"#), "{}", continued.0);
    let asked = prompt(&["--for", "openai-chat", "--continue-last=yes"]);
    assert!(asked.0.contains("Go on exactly where it ends") && asked.1.contains("(not_continued)"), "{}", asked.1);
    let (lines, nothing) = prompt(&["--for", "openai-chat", "--report"]);
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["rule"], nothing.as_str()), (1, &json!("thinking_left_out"), ""));
}

#[test]
fn prompt_declares_tools_and_tells_finished_rounds_as_it_is_told() {
    let place = Place::new();
    let call =
        r#"{"role": "assistant", "chunks": [{"type": "tool_call", "id": "1", "name": "ls", "arguments": "{}"}]}"#;
    let result = r#"{"role": "tool", "chunks": [{"type": "tool_result", "tool_call_id": "1", "content": "a.txt"}]}"#;
    place.append("c", &[HELLO, call, result, HELLO]);
    let prompt = |args: &[&str]| place.run(&[&["prompt", "c", "--for", "openai-chat"], args].concat()).stdout;
    assert!(prompt(&["--finished-tools", "flatten"]).contains("The tool ls was called with {} and gave:"));
    assert!(!prompt(&["--finished-tools", "drop"]).contains("a.txt"));
    assert!(prompt(&["--max-result-bytes", "1"]).contains("a\\n[4 more bytes left out]"));
    let plain = r#"[{"name": "ls", "input_schema": {"type": "object"}}]"#;
    let wrapped = r#"[{"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}}]"#;
    for tools in [plain, wrapped] {
        std::fs::write(place.path("tools.json"), tools).unwrap();
        let declared = r#""tools":[{"type":"function","function":{"name":"ls","parameters":{"type": "object"}}}]"#;
        assert!(prompt(&["--tools", "tools.json"]).contains(declared));
    }
    std::fs::write(place.path("tools.json"), r#"[{"name": "ls"}]"#).unwrap();
    let run = place.run(&["prompt", "c", "--for", "openai-chat", "--tools", "tools.json"]);
    let wanted = "error: tools.json: tools[0] cannot be declared elsewhere: it has no JSON Schema\n";
    assert_eq!((run.exit, run.stdout.as_str(), run.stderr.as_str()), (2, "", wanted));
}

#[test]
fn prompt_has_the_content_that_is_asked_for() {
    let place = Place::new();
    place.append("c", &[HELLO, CALL]);
    let prompt = |args: &[&str]| place.run(&[&["prompt", "c", "--for", "openai-chat"], args].concat()).stdout;
    assert!(prompt(&[]).contains(r#""content":null"#));
    assert!(prompt(&["--no-content", "empty"]).contains(r#""content":"","tool_calls""#));
}

#[test]
fn find_id_names_the_message_of_an_item() {
    let place = Place::new();
    let item = ANSWER.replace(r#""text": "Hi!""#, r#""text": "Hi!", "id": "item_1""#);
    place.append("c", &[HELLO, &item]);
    place.append("d", &[&item]);
    let places: Vec<_> = place.ok(&["find-id", "item_1"]).json();
    let of = |key: &str| places.iter().find(|place| place["key"] == key).unwrap();
    assert_eq!((places.len(), &of("c")["message_index"], &of("c")["chunk_index"]), (2, &json!(1), &json!(0)));
    assert_eq!(place.ok(&["find-id", "item_1", "--in", "d"]).json(), [of("d").clone()]);
    let nowhere = place.run(&["find-id", "item_2"]);
    assert_eq!((nowhere.exit, nowhere.stderr.as_str()), (1, "error: no message has the item id item_2\n"));
}

#[test]
fn prompt_and_replay_take_windows() {
    let place = Place::new();
    let say = |text: &str| HELLO.replace("hello", text);
    let lines = [say("one"), ANSWER.to_owned(), say("two"), ANSWER.to_owned(), say("three"), ANSWER.to_owned()];
    place.write("c.jsonl", lines.join("\n"));
    assert_eq!(
        place.run(&["replay", "c.jsonl", "--for", "openai-chat", "--last-turns", "1"]).stdout.matches("user").count(),
        1
    );
    for (limit, held) in [
        (["--last", "6"], 3),
        (["--last", "5"], 2),
        (["--last-turns", "2"], 2),
        (["--last-turns", "1"], 1),
        (["--window-tokens", "1000"], 3),
        (["--window-tokens", "30"], 1),
    ] {
        let run = place.run(&[&["prompt", "c", "--for", "openai-chat"], &limit[..]].concat());
        assert_eq!((run.exit, run.stdout.matches("\"user\"").count()), (0, held), "{limit:?}");
        assert_eq!(run.stderr.matches("(outside_window)").count(), usize::from(held < 3), "{}", run.stderr);
    }
    for option in ["--last", "--last-turns", "--window-tokens"] {
        assert_eq!(place.run(&["prompt", "c", "--for", "openai-chat", option, "0"]).exit, 2);
    }
}

#[test]
fn show_prints_the_newest_messages_only_if_asked() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER, CALL, HELLO]);
    let indexes = |args: &[&str]| {
        let run = place.run(&[&["show", "c"], args].concat());
        let indexes: Vec<_> = run.json().iter().map(|message| message["index"].as_u64().unwrap()).collect();
        (run.exit, indexes, run.stderr.lines().filter(|line| !line.starts_with(' ')).count())
    };
    // The call's made-up answer has the index of the call.
    assert_eq!(indexes(&[]), (0, vec![0, 1, 2, 2, 3], 1));
    assert_eq!(indexes(&["--last", "1"]), (0, vec![3], 0));
    assert_eq!(indexes(&["--last", "3"]), (0, vec![2, 2, 3], 1));
    assert_eq!(indexes(&["--last", "9"]).1.len(), 5);
    assert_eq!(indexes(&["--quiet"]).2, 0);
    assert_eq!(place.run(&["show", "c", "--last", "0"]).exit, 2);
}

#[test]
fn show_follows_what_other_processes_write() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let place = Place::new();
    place.append("c", &[HELLO]);
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("convo"))
        .current_dir(place.dir.path())
        .env("CONVO_STORE", super::STORE)
        .args(["show", "c", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<serde_json::Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["index"], 0);
    for index in 1..4 {
        place.append("c", &[ANSWER]);
        assert_eq!((next()["index"].clone(), &json!("complete")), (json!(index), &json!("complete")));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn targets_are_listed() {
    let place = Place::new();
    let targets = place.ok(&["targets"]).json();
    let wanted = conversation_store::provider::WIRES.len() + conversation_store::provider::DIALECTS.len();
    assert_eq!(targets.len(), wanted);
    for target in &targets {
        let target = target["target"].as_str().unwrap();
        let run = place.run_with(&["check", "--for", target], r#"{"messages": []}"#);
        assert!(run.stderr.contains(&format!(": {target}: ")), "{}", run.stderr);
    }
    let text = place.ok(&["targets", "--text"]).stdout;
    assert!(text.starts_with("TARGET ") && text.contains("\nopenai-chat/mistral "), "{text}");
}
