use conversation_store::model::{Metadata, Name, Role};
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
        assert_eq!(place.ok(&["delete", name, "--yes"]).json().len(), 1);
        assert_eq!(place.run(&["show", name]).exit, 2);
    }
    assert_eq!(place.ok(&["list"]).stdout, "");
    assert_eq!(place.ok(&["verify"]).json(), [json!({"conversations": 0, "entries": 0, "problems": []})]);
}

#[test]
fn a_store_that_lost_its_newest_data_to_damage() {
    let place = Place::new();
    place.append("c", &[&HELLO.replace("hello", &"x".repeat(10_000))]);
    assert_eq!(place.ok(&["verify"]).json(), [json!({"conversations": 1, "entries": 1, "problems": []})]);
    let lost = place.path("lost.db");
    std::fs::create_dir(&lost).unwrap();
    for name in ["CONVERSATION-STORE", "watermark"] {
        std::fs::copy(place.path("convo.db").join(name), lost.join(name)).unwrap();
    }
    let run = place.run(&["verify", "--store", "sled:lost.db"]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.starts_with("error: damaged data in the store: "), "{}", run.stderr);

    crate::verify::flip(&place.path("convo.db"), &[b'x'; 64]);
    let run = place.run(&["verify"]);
    let problem = &run.json()[0]["problems"][0]["detail"];
    assert_eq!(run.exit, 1);
    assert!(problem.as_str().unwrap().starts_with("the store went back from commit "), "{problem}");
    let run = place.run_with(&["append", "d"], HELLO);
    assert_eq!(run.exit, 2);
    let [warning, error, ..] = run.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{}", run.stderr) };
    assert!(warning.starts_with("warning: damage kept the store from opening as it was"), "{warning}");
    assert!(error.starts_with("error: stdin:1: the store went back from commit "), "{error}");
    assert_eq!(place.run(&["verify", "--accept-loss"]).exit, 0);
    place.append("d", &[HELLO]);
    assert_eq!(place.ok(&["verify"]).json(), [json!({"conversations": 1, "entries": 1, "problems": []})]);
}

#[test]
fn what_is_redacted_is_gone_and_its_place_stays() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER]);
    place.ok(&["fork", "c", "--as", "fork"]);
    let redacted = place.ok(&["redact", "c", "0", "--yes"]).json();
    let wanted = json!({"conversation": redacted[0]["conversation"], "key": "c", "message_index": 0, "seq": 3, "summaries": [], "meta": []});
    assert_eq!(redacted, [wanted]);
    for name in ["c", "fork"] {
        let messages = place.ok(&["show", name]).json();
        assert_eq!(messages[0]["chunks"], json!([{"type": "text", "text": "[redacted]"}]), "{name}");
        assert_eq!(messages[1]["chunks"][0]["text"], "Hi!");
    }
    place.ok(&["redact", "c", "1", "--chunk", "0", "--yes"]);
    assert_eq!(place.ok(&["show", "c"]).json()[1]["chunks"][0]["text"], "[redacted]");
    for absent in
        [&["redact", "c", "9", "-y"][..], &["redact", "c", "0", "--chunk", "4", "-y"], &["redact", "none", "0", "-y"]]
    {
        assert_eq!(place.run(absent).exit, 2, "{absent:?}");
    }
    place.ok(&["verify"]);
}

#[test]
fn of_a_deleted_conversation_its_forks_keep_what_they_share() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER]);
    place.ok(&["fork", "c", "--at", "1", "--as", "fork"]);
    place.ok(&["delete", "c", "--yes"]);
    assert_eq!(place.run(&["show", "c"]).exit, 2);
    assert_eq!(place.ok(&["show", "fork"]).json().len(), 1);
    let run = place.run_with(&["append", "c"], HELLO);
    assert_eq!(run.exit, 2, "{}", run.stderr);
    place.ok(&["delete", "fork", "--yes"]);
    place.append("c", &[HELLO]);
}

#[test]
fn summarize_lets_prompts_use_a_summary() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER, HELLO]);
    let run = place.run_with(&["summarize", "c", "--through", "1", "--summary", "-"], "They greeted each other.\n");
    assert_eq!((run.exit, run.json()[0]["first_seq"].clone()), (0, json!(4)));
    let prompt = place.run(&["prompt", "c", "--for", "openai-chat"]);
    assert!(prompt.stdout.contains("up to here:\\n\\nThey greeted each other.\"") && !prompt.stdout.contains("Hi!"));
    assert!(prompt.stderr.contains("(summarized)"), "{}", prompt.stderr);
    let show = place.run(&["show", "c"]);
    assert_eq!(show.json().len(), 3);
    assert_eq!(show.stderr, "prompts use the summary of seq 4 in place of the messages up to 1\n");
    assert_eq!(place.ok(&["show", "c", "--raw"]).json(), show.json());
    assert_eq!(place.ok(&["entries", "c"]).json()[3]["kind"], "summary");
    let refused = place.run_with(&["summarize", "c", "--through", "9", "--summary", "-"], "x");
    assert_eq!(refused.exit, 2);
}

#[test]
fn tags_are_added_removed_and_filtered_by() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    place.append("d", &[HELLO]);
    let tags = |args: &[&str]| place.ok(&[&["tag"], args].concat()).json()[0]["tags"].clone();
    assert_eq!(tags(&["c", "work", "later"]), json!(["work", "later"]));
    assert_eq!(tags(&["d", "work"]), json!(["work"]));
    let listed = |args: &[&str]| place.ok(&[&["list"], args].concat()).json().len();
    assert_eq!(
        (listed(&["--tag", "work"]), listed(&["--tag", "work", "--tag", "later"]), listed(&["--tag", "x"])),
        (2, 1, 0)
    );
    assert_eq!(tags(&["c", "--remove", "work"]), json!(["later"]));
    assert_eq!(tags(&["c"]), json!(["later"]));
    assert_eq!(place.run(&["tag", "c", " "]).exit, 2);
    assert_eq!(place.run(&["tag", "nobody", "x"]).exit, 2);
}

#[test]
fn title_metadata_and_a_removed_message() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER, HELLO]);
    assert_eq!(place.ok(&["title", "c"]).json()[0]["title"], "hello");
    assert_eq!(place.ok(&["title", "c", "Greetings"]).json()[0]["title"], "Greetings");
    assert_eq!(place.ok(&["list"]).json()[0]["title"], "Greetings");
    assert_eq!(place.ok(&["title", "c", "--derive"]).json()[0]["title"], "hello");
    assert_eq!(place.run(&["title", "c", "x", "--derive"]).exit, 2);

    assert_eq!(place.ok(&["metadata", "c"]).json()[0].get("metadata"), None);
    place.ok(&["metadata", "c", r#"{"project":7}"#]);
    assert_eq!(place.ok(&["metadata", "c"]).json()[0]["metadata"], json!({"project": 7}));
    for wrong in ["[7]", "{"] {
        assert_eq!(place.run(&["metadata", "c", wrong]).exit, 2);
    }

    assert_eq!(place.ok(&["remove", "c", "1"]).json()[0]["key"], "c");
    let indexes: Vec<_> = place.ok(&["show", "c"]).json().iter().map(|message| message["index"].clone()).collect();
    assert_eq!(indexes, [0, 2]);
    let again = place.run(&["remove", "c", "1"]);
    assert_eq!(again.exit, 2);
    assert!(again.stderr.contains("message 1 (it is hidden) in conversation c"), "{}", again.stderr);
}

#[test]
fn an_owner_has_conversations_of_the_same_key() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    assert_eq!(place.run_with(&["append", "c", "--owner", "ada"], [HELLO, ANSWER].join("\n")).exit, 0);
    assert_eq!(place.ok(&["show", "c"]).json().len(), 1);
    assert_eq!(place.ok(&["--owner", "ada", "show", "c"]).json().len(), 2);
    assert_eq!(place.run(&["show", "c", "--owner", "grace"]).exit, 2);
    let listed = place.ok(&["list", "--owner", "ada"]).json();
    assert_eq!((listed.len(), &listed[0]["owner"]), (1, &json!("ada")));
    // A UUID is anybody's, unless an owner is named.
    let id = listed[0]["conversation"].as_str().unwrap();
    assert_eq!(place.ok(&["show", id]).json().len(), 2);
    assert_eq!(place.run(&["show", id, "--owner", "grace"]).exit, 2);
}

#[test]
fn unfinished_messages_are_listed() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    assert_eq!(place.ok(&["unfinished"]).stdout, "");
    let store = place.store();
    let begin = |name| store.begin(name, Role::Assistant, Metadata::default()).unwrap();
    drop((begin(Name::from("c")), begin(Name::from("c").with_owner("ada"))));
    store.close().unwrap();
    drop(store);
    let found = place.ok(&["unfinished"]).json();
    assert!(found.iter().all(|found| found["state"] == "interrupted"), "{found:?}");
    assert_eq!(found.len(), 2);
    let found = place.ok(&["unfinished", "--owner", "ada"]).json();
    assert_eq!((found.len(), &found[0]["key"], &found[0]["message_index"]), (1, &json!("c"), &json!(0)));
}

#[test]
fn a_former_name_is_refused_with_the_new_one() {
    let place = Place::new();
    for args in [&["compact"][..], &["compact", "c", "--through", "1", "--summary", "-"]] {
        let run = place.run(args);
        assert_eq!(run.exit, 2);
        assert!(run.stderr.starts_with("error: `convo compact` is now `convo summarize`"), "{}", run.stderr);
    }
    let run = place.run(&["find", "msg_1"]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.starts_with("error: `convo find` is now `convo find-item`"), "{}", run.stderr);
}

#[test]
fn list_and_show_agree_on_the_count() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER, HELLO, ANSWER, HELLO]);
    place.ok(&["fork", "c", "--as", "whole"]);
    let counts = |name: &str| {
        let listed = place.ok(&["list"]).json();
        let item = listed.iter().find(|item| item["key"] == name).unwrap().clone();
        let shown = place.ok(&["show", name]).json().len();
        assert_eq!(item["messages"], shown, "{name}");
        (shown, item.get("hidden").map_or(0, |hidden| hidden.as_u64().unwrap()))
    };
    place.ok(&["remove", "c", "4"]);
    let stored = place.ok(&["list"]).json();
    assert_eq!(stored.iter().find(|item| item["key"] == "c").unwrap()["messages"], 4);
    place.ok(&["rewind", "c", "3"]);
    place.append("c", &[ANSWER]);
    place.ok(&["rewind", "c", "2"]);
    place.append("c", &[HELLO]);
    assert_eq!((counts("whole"), counts("c").1), ((5, 0), 4));
}

#[test]
fn a_fork_through_a_message_has_what_is_seen_up_to_it() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER, HELLO, ANSWER]);
    place.ok(&["remove", "c", "1"]);
    place.ok(&["fork", "c", "--through", "2", "--as", "two"]);
    let indexes = |name: &str| -> Vec<_> {
        place.ok(&["show", name]).json().iter().map(|message| message["index"].as_u64().unwrap()).collect()
    };
    assert_eq!(indexes("two"), [0, 2]);
    place.ok(&["fork", "c", "--through", "3", "--as", "three"]);
    assert_eq!(indexes("three"), [0, 2, 3]);
    // What is hidden, or is not there, is no message to fork through; a seq is from before the removal.
    for absent in ["1", "4"] {
        let run = place.run(&["fork", "c", "--through", absent, "--as", "none"]);
        let wanted = format!("error: message {absent} in conversation c not found");
        assert!(run.exit == 2 && run.stderr.starts_with(&wanted), "{}", run.stderr);
        assert_eq!(place.run(&["show", "none"]).exit, 2);
    }
    place.ok(&["fork", "c", "--at", "3", "--as", "at"]);
    assert_eq!(indexes("at"), [0, 1, 2]);
    assert_eq!(place.run(&["fork", "c", "--at", "3", "--through", "1"]).exit, 2);
}

#[test]
fn what_nobody_has_used_is_pruned() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.append(name, &[HELLO, ANSWER]);
    }
    assert_eq!(place.run_with(&["append", "hers", "--owner", "ada"], HELLO).exit, 0);
    let named = |run: &[serde_json::Value]| -> Vec<(String, bool)> {
        let shown = run.iter().filter(|line| line["key"].is_string());
        shown.map(|line| (line["key"].as_str().unwrap().to_owned(), line["deleted"].as_bool().unwrap())).collect()
    };
    let run = place.ok(&["prune", "--idle", "0s", "--keep-last", "1", "--dry-run"]).json();
    assert_eq!(named(&run), [("b".to_owned(), false), ("a".to_owned(), false)]);
    assert_eq!(run.last().unwrap(), &json!({"would_erase": 2, "erased": 0, "used_meanwhile": 0, "unreadable": 0}));
    assert_eq!(place.ok(&["prune", "--idle", "1h", "--yes"]).json()[0]["erased"], 0);
    let run = place.ok(&["prune", "--idle", "0s", "--keep-last", "1", "--yes"]).json();
    assert_eq!(named(&run), [("b".to_owned(), true), ("a".to_owned(), true)]);
    assert_eq!(run.last().unwrap(), &json!({"erased": 2, "used_meanwhile": 0, "unreadable": 0}));
    assert!(!place.ok(&["prune", "--idle", "0s", "--dry-run"]).stdout.contains("hello"));
    assert_eq!(place.ok(&["list"]).json().len(), 1);
    assert_eq!(place.ok(&["list", "--owner", "ada"]).json().len(), 1);
    let text = place.ok(&["prune", "--idle", "0s", "--owner", "ada", "--yes", "--text"]).stdout;
    assert!(
        text.starts_with("deleted hers, 1 message, last used ") && text.ends_with("1 conversation deleted\n"),
        "{text}"
    );
    let run = place.run(&["prune", "--idle", "2 months", "--yes"]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.contains("expected a time of weeks, days, hours or less"), "{}", run.stderr);
}
