//! `convo search`.

use crate::common::search::holds;

use super::{ANSWER, HELLO, Place};

#[test]
fn messages_and_titles_are_found_until_they_are_erased() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER, &HELLO.replace("hello", "a xylophone")]);
    let run = place.ok(&["search", "XYLOPHONE"]);
    let hit = &run.json()[0];
    assert_eq!((&hit["key"], &hit["message_index"], &hit["excerpt"]), (&"c".into(), &2.into(), &"a xylophone".into()));
    assert_eq!(hit["role"], "user");
    let text = place.ok(&["search", "hello", "--text"]).stdout;
    assert!(text.contains("c  hello  message 0  user  seq 1\n    hello\n"), "{text}");
    assert!(text.contains("c  hello  title\n    hello\n"), "{text}");
    let run = place.run(&["search", "zebra"]);
    assert_eq!((run.exit, run.stderr.as_str()), (1, "error: nothing has the words zebra\n"));
    assert_eq!(place.run(&["search", "hello", "--owner", "ada"]).exit, 1);
    assert_eq!(place.run(&["search", "?"]).exit, 2);
    // The index is derived: it may be deleted, and erasing reaches its files.
    assert!(place.path("convo.db.search").is_dir());
    std::fs::remove_dir_all(place.path("convo.db.search")).unwrap();
    assert_eq!(place.ok(&["search", "xylophone"]).json().len(), 1);
    assert!(holds(&place.path("convo.db.search"), "xylophone"));
    place.ok(&["backup", "b"]);
    place.ok(&["redact", "c", "2", "--yes"]);
    assert!(!holds(&place.path("convo.db.search"), "xylophone"));
    assert_eq!(place.run(&["search", "xylophone"]).exit, 1);
    assert_eq!(place.ok(&["search", "xylophone", "--store", "backup:b"]).json().len(), 1);
    place.ok(&["delete", "c", "--yes"]);
    assert_eq!(place.run(&["search", "hello"]).exit, 1);
    assert!(!place.path("b.search").exists());
}

#[test]
fn a_search_is_narrowed_and_continued() {
    let place = Place::new();
    let call = r#"{"role":"assistant","chunks":[{"type":"tool_call","id":"t","name":"drinks","arguments":"{}"}]}"#;
    place.append("c", &[HELLO, &ANSWER.replace("Hi!", "a drink"), &HELLO.replace("hello", "he drinks"), call]);
    place.ok(&["tag", "c", "bar"]);
    let found = |args: &[&str]| {
        let rows = place.run(&[&["search", "drink"][..], args].concat()).json();
        rows.iter().filter_map(|row| row["message_index"].as_u64()).collect::<Vec<_>>()
    };
    assert_eq!(found(&["--role", "user"]), [2]);
    assert_eq!(found(&["--in", "calls", "--tag", "bar", "--conversation", "c"]), [3]);
    assert_eq!(found(&["--in", "calls", "--until", "2020-01-01"]), [0; 0]);
    let page = place.ok(&["search", "drink", "--limit", "1"]).json();
    assert_eq!(page.last().unwrap()["next"], "1");
    let rest = found(&["--after", "1"]);
    assert_eq!((page[0]["message_index"].as_u64(), rest), (Some(1), vec![2]));
    assert_eq!(place.run(&["search", "drink", "--in", "pictures"]).exit, 2);
    assert_eq!(place.run(&["search", "drink", "--language", "klingon"]).exit, 2);
    assert_eq!(place.run(&["search", "drink", "--language", "german", "--role", "user"]).exit, 0);
}
