use serde_json::json;

use super::{ANSWER, HELLO, INCIDENT, Place, incident};

fn replay(place: &super::Place, file: &str) -> super::Run {
    place.run(&["replay", file, "--for", "openai-chat", "--json"])
}

#[test]
fn the_incident_comes_out_as_a_valid_request_and_a_second_run_adds_nothing() {
    let place = Place::new();
    let file = incident();
    let args = ["replay", file.to_str().unwrap(), "--for", "openai-chat"];
    let first = place.run(&args);
    assert_eq!(first.exit, 0, "{}", first.stderr);
    assert!(first.stderr.starts_with(&format!("{INCIDENT}: 9 lines appended, 0 stored already\nreport: ")));
    let check = place.run_with(&["check", "--for", "openai-chat"], first.stdout.as_str());
    assert_eq!(
        (check.exit, check.stderr.as_str()),
        (0, "stdin: openai-chat: 1 finding, none of them hard: it is accepted\n")
    );
    let entries = place.ok(&["entries", INCIDENT]).stdout;
    assert_eq!(entries.lines().count(), 14);

    let second = place.run(&args);
    assert_eq!((second.exit, &second.stdout), (0, &first.stdout));
    assert!(second.stderr.starts_with(&format!("{INCIDENT}: 0 lines appended, 9 stored already\n")));
    assert_eq!(place.ok(&["entries", INCIDENT]).stdout, entries);
    assert_eq!(place.run(&["prompt", INCIDENT, "--for", "openai-chat"]).stdout, first.stdout);
}

#[test]
fn each_conversation_has_an_envelope_in_order_of_first_appearance() {
    let place = Place::new();
    let of = |name: &str, line: &str| line.replacen('{', &format!(r#"{{"conversation": "{name}", "#), 1);
    let lines = [of("b", HELLO), of("a", HELLO), HELLO.to_owned(), of("b", ANSWER)];
    place.write("chat-7.jsonl", lines.join("\n"));
    let run = replay(&place, "chat-7.jsonl");
    assert_eq!((run.exit, run.stderr.as_str()), (0, ""));
    let keys: Vec<_> = run.json().iter().map(|envelope| envelope["key"].clone()).collect();
    assert_eq!(keys, ["b", "a", "chat-7"]);
    let wanted = json!({
        "conversation": "e07db1a4-3c8f-5032-b28e-0442d67bd389",
        "key": "c",
        "request": {"messages": [{"role": "user", "content": "hello"}]},
        "report": [],
    });
    let run = place.run_with(&["replay", "-", "--for", "openai-chat", "--json"], of("c", HELLO));
    assert_eq!(run.json(), [wanted]);
    let run = place.run_with(&["replay", "-", "--for", "openai-chat", "--json"], HELLO);
    assert_eq!(run.json().first().map(|envelope| envelope["key"].clone()), Some(json!("stdin")));
}

#[test]
fn a_file_that_grew_adds_its_new_lines() {
    let place = Place::new();
    place.write("c.jsonl", HELLO);
    assert_eq!(replay(&place, "c.jsonl").exit, 0);
    place.write("c.jsonl", format!("{HELLO}\n{ANSWER}\n"));
    let run = place.run(&["replay", "c.jsonl", "--for", "openai-chat"]);
    assert_eq!((run.exit, run.stderr.lines().next()), (0, Some("c: 1 line appended, 1 stored already")));
    assert_eq!(place.store().load("c").unwrap().messages().len(), 2);
}

#[test]
fn times_of_the_file_are_compared_and_those_of_the_store_are_not() {
    let place = Place::new();
    let dated = HELLO.replacen('{', r#"{"created_at": "2026-01-02T03:04:05Z", "#, 1);
    place.write("c.jsonl", format!("{HELLO}\n{dated}"));
    assert_eq!(replay(&place, "c.jsonl").exit, 0);
    assert_eq!(replay(&place, "c.jsonl").exit, 0);
    place.write("c.jsonl", format!("{HELLO}\n{}", dated.replace("2026", "2027")));
    let run = replay(&place, "c.jsonl");
    assert_eq!(run.exit, 2);
    assert!(run.stdout.contains("c.jsonl:2 differs from stored message 1 (seq 2): created_at differs"));
}

/// What makes a conversation another one than the file holds, and what is said of it.
#[test]
fn a_conversation_that_holds_anything_else_is_a_conflict() {
    let changed = |from: &str, to: &str| format!("{HELLO}\n{}\n", ANSWER.replace(from, to));
    let table = [
        (changed("Hi!", "Ho!"), "c.jsonl:2 differs from stored message 1 (seq 2): chunks[0] differs"),
        (
            changed("assistant", "user"),
            "c.jsonl:2 differs from stored message 1 (seq 2): role is assistant in the store, user in the line",
        ),
        (
            changed("\"}]", "\"}, {\"type\": \"text\", \"text\": \"more\"}]"),
            "c.jsonl:2 differs from stored message 1 (seq 2): 1 chunk in the store, 2 in the line",
        ),
        (changed("stop", "length"), "c.jsonl:2 differs from stored message 1 (seq 2): finish_reason differs"),
        (
            changed("\"role\"", "\"usage\": {}, \"role\""),
            "c.jsonl:2 differs from stored message 1 (seq 2): usage differs",
        ),
        (
            changed("\"role\"", "\"model\": \"m\", \"role\""),
            "c.jsonl:2 differs from stored message 1 (seq 2): model, provider, ids or further fields differ",
        ),
        (HELLO.to_owned(), "the store has 1 message more than c.jsonl, from message 1 (seq 2) on"),
    ];
    let place = Place::new();
    place.write("c.jsonl", format!("{HELLO}\n{ANSWER}\n"));
    assert_eq!(replay(&place, "c.jsonl").exit, 0);
    for (file, wanted) in table {
        place.write("c.jsonl", format!("{file}\n{}", HELLO.replacen('{', r#"{"conversation": "other", "#, 1)));
        let run = replay(&place, "c.jsonl");
        let [conflict, other] = run.json().try_into().unwrap();
        let wanted = format!("conflict: {wanted}; nothing was appended to it");
        assert_eq!((run.exit, &conflict["error"]["message"], &conflict["key"]), (2, &json!(wanted), &json!("c")));
        assert_eq!(conflict["error"]["kind"], "conflict");
        // The others go on.
        assert!(other["request"].is_object());
        let run = place.run(&["replay", "c.jsonl", "--for", "openai-chat"]);
        assert!(run.stderr.contains(&format!("error: c: {wanted}\n  cure: ")), "{}", run.stderr);
        assert_eq!(run.stdout.lines().count(), 1);
    }
    assert_eq!(place.store().describe("c").unwrap().last_seq, 2);
}

#[test]
fn a_rewound_or_interrupted_conversation_is_a_conflict() {
    let place = Place::new();
    place.write("c.jsonl", format!("{HELLO}\n{ANSWER}"));
    assert_eq!(replay(&place, "c.jsonl").exit, 0);
    place.ok(&["rewind", "c", "1"]);
    let run = replay(&place, "c.jsonl");
    assert_eq!(run.exit, 2);
    assert!(run.stdout.contains("conflict: it has 1 hidden message, which are not in the file"));

    let store = place.store();
    let writer = store.begin("d", conversation_store::model::Role::User, Default::default()).unwrap();
    drop((writer, store));
    place.write("d.jsonl", HELLO);
    let run = replay(&place, "d.jsonl");
    assert_eq!(run.exit, 2);
    assert!(run.stdout.contains("(seq 1): the stored message is interrupted, not complete"), "{}", run.stdout);
}

#[test]
fn where_there_is_nothing_to_send_the_envelope_says_so() {
    let place = Place::new();
    place.write("c.jsonl", r#"{"role": "assistant", "chunks": [{"type": "error", "message": "overloaded"}]}"#);
    let run = replay(&place, "c.jsonl");
    let [envelope] = run.json().try_into().unwrap();
    assert_eq!((run.exit, envelope.get("request")), (2, None));
    assert!(envelope["error"]["message"].as_str().unwrap().starts_with("there is nothing to send: "));
    assert!(!envelope["report"].as_array().unwrap().is_empty());
    let prompt = place.run(&["prompt", "c", "--for", "openai-chat", "--json"]);
    assert_eq!((prompt.exit, prompt.json()), (2, vec![envelope]));
    let prompt = place.run(&["prompt", "c", "--for", "openai-chat"]);
    assert_eq!((prompt.exit, prompt.stdout.as_str()), (2, ""));
    assert!(prompt.stderr.contains("error: there is nothing to send: "));
}

#[test]
fn an_empty_file_is_nothing_to_do() {
    let place = Place::new();
    place.write("c.jsonl", "\n");
    let run = replay(&place, "c.jsonl");
    let wanted = (0, "", "{\"note\":\"c.jsonl: no messages, nothing was appended\"}\n");
    assert_eq!((run.exit, run.stdout.as_str(), run.stderr.as_str()), wanted);
}
