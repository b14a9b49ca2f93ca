use serde_json::json;

use super::{ANSWER, HELLO, Place};

#[test]
fn fork_rewind_and_delete() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER, HELLO]);
    let fork = place.ok(&["fork", "c", "--at", "2"]).json();
    let id = fork[0]["conversation"].as_str().unwrap();
    assert_eq!(place.ok(&["show", id]).json().len(), 2);
    let named = place.ok(&["fork", "c", "--as", "try-2"]).json();
    assert_eq!(named[0]["key"], "try-2");
    assert_eq!(place.ok(&["show", named[0]["conversation"].as_str().unwrap()]).json().len(), 3);

    let receipt = place.ok(&["rewind", "c", "1"]).json();
    assert_eq!((&receipt[0]["key"], &receipt[0]["first_seq"]), (&json!("c"), &json!(4)));
    assert_eq!(place.ok(&["show", "c"]).json().len(), 1);
    assert_eq!(place.ok(&["show", "try-2"]).json().len(), 3);

    for name in [id, "try-2", "c"] {
        assert_eq!(place.ok(&["delete", name]).json().len(), 1);
        assert_eq!(place.run(&["show", name]).exit, 1);
    }
    assert_eq!(place.ok(&["list"]).stdout, "");
    assert_eq!(place.ok(&["verify"]).json(), [json!({"conversations": 0, "entries": 0, "problems": []})]);
}

#[test]
fn a_damaged_store_does_not_pass() {
    let place = Place::new();
    let long = HELLO.replace("hello", &"x".repeat(10_000));
    place.append("c", &[&long]);
    assert_eq!(place.ok(&["verify"]).json(), [json!({"conversations": 1, "entries": 1, "problems": []})]);
    let db = place.path("convo.db").join("db");
    let mut bytes = std::fs::read(&db).unwrap();
    let at = bytes.windows(64).position(|window| window.iter().all(|byte| *byte == b'x')).unwrap();
    bytes[at + 32] = b'y';
    std::fs::write(&db, bytes).unwrap();
    let run = place.run(&["verify"]);
    assert_eq!(run.exit, 1, "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.starts_with("error: damaged data in the store: ./convo.db: "), "{}", run.stderr);
}
