use super::{ANSWER, HELLO, Place};

#[test]
fn each_line_is_an_append_with_its_receipt() {
    let place = Place::new();
    let run = place.run_with(&["append", "c"], format!("\u{feff}{HELLO}\r\n\n  \n{ANSWER}"));
    let id = "e07db1a4-3c8f-5032-b28e-0442d67bd389";
    let receipt = |seq: u32| {
        format!(
            "{{\"conversation\":\"{id}\",\"key\":\"c\",\"first_seq\":{seq},\"last_seq\":{seq},\
             \"message_indexes\":[{}],\"durable\":true,\"duplicate\":false}}\n",
            seq - 1
        )
    };
    assert_eq!((run.exit, run.stdout, run.stderr), (0, receipt(1) + &receipt(2), String::new()));
}

#[test]
fn receipts_come_while_the_input_is_open() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    let place = Place::new();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("convo"))
        .current_dir(place.dir.path())
        .env_remove("CONVO_STORE")
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
    assert_eq!(place.run(&["show", "c"]).exit, 1);
    let run = place.run_with(&["append", "c", "-", "--atomic"], format!("{HELLO}\n{ANSWER}"));
    let [receipt] = run.json().try_into().unwrap();
    assert_eq!(receipt["message_indexes"], serde_json::json!([0, 1]));
}

#[test]
fn expectations_hold_from_line_to_line() {
    let place = Place::new();
    let lines = format!("{HELLO}\n{ANSWER}");
    assert_eq!(place.run_with(&["append", "c", "--expect", "0"], lines.as_str()).json().len(), 2);
    assert_eq!(place.run_with(&["append", "c", "--expect", "0"], lines.as_str()).exit, 1);
    assert_eq!(place.run_with(&["append", "c", "--expect", "1"], lines.as_str()).exit, 1);
    assert_eq!(place.run_with(&["append", "c", "--expect", "2"], lines.as_str()).json().len(), 2);
    assert_eq!(place.run_with(&["append", "d", "--expect", "2"], lines.as_str()).exit, 1);
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
    let wanted = "stdin:1: chunks[0]: a lone surrogate escape was replaced by U+FFFD; the text as it was is kept\n";
    assert_eq!((run.exit, run.stderr.as_str()), (0, wanted));
}
