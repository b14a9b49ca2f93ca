use std::path::Path;

use serde_json::json;

use super::{ANSWER, HELLO, Place};

/// Damages a text in sled's log, and in the journal, from which it would be restored.
pub(crate) fn flip(store: &Path, text: &[u8]) {
    for name in ["db", "journal"] {
        let mut bytes = std::fs::read(store.join(name)).unwrap();
        let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
        bytes[at + text.len() / 2] ^= 1;
        std::fs::write(store.join(name), bytes).unwrap();
    }
}

#[test]
fn what_was_acknowledged_and_is_not_there_is_a_problem() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER]);
    let id = place.ok(&["list"]).json()[0]["conversation"].as_str().unwrap().to_owned();
    let never = "07070707-0707-0707-0707-070707070707";
    place.write("acks", format!("{id} 1\n{id} 2\n{id} 3"));
    assert_eq!(place.ok(&["verify", "--acks", "acks"]).json()[0]["problems"], json!([]));
    place.write("acks", format!("{id} 1\n{id} 4\n{never} 1\n"));
    let run = place.run(&["verify", "--acks", "acks"]);
    let detail = |seq| format!("it was acknowledged up to seq {seq}, and ends before that");
    let wanted = json!([
        {"conversation": never, "seq": 1, "detail": detail(1)},
        {"conversation": id, "seq": 3, "detail": detail(4)},
    ]);
    assert_eq!((run.exit, &run.json()[0]["problems"]), (1, &wanted));
    place.write("acks", format!("{id} 1\n{id}\n"));
    let run = place.run(&["verify", "--acks", "acks"]);
    let wanted = "error: acks:2: expected `conversation last_seq`, a UUID and a number\n";
    assert_eq!((run.exit, run.stderr.as_str()), (2, wanted));
}

#[test]
fn a_store_that_went_back_can_be_looked_at() {
    let place = Place::new();
    place.append("a", &[HELLO]);
    place.append("b", &[&HELLO.replace("hello", &"x".repeat(10_000))]);
    flip(&place.path("convo.db"), &[b'x'; 64]);
    let watermark = std::fs::read(place.path("convo.db/watermark")).unwrap();
    for args in [&["show", "a"][..], &["entries", "a"], &["next", "a"], &["list"], &["backup", "left"]] {
        let run = place.run(args);
        assert_eq!((run.exit, run.json().len()), (0, 1), "{args:?}");
        assert!(run.stderr.starts_with("warning: the store went back from commit "), "{}", run.stderr);
    }
    let run = place.run(&["verify"]);
    assert_eq!((run.exit, run.json()[0]["problems"].as_array().unwrap().len()), (1, 1));
    assert_eq!(std::fs::read(place.path("convo.db/watermark")).unwrap(), watermark, "reading changes nothing");
    assert_eq!(place.run_with(&["append", "a"], HELLO).exit, 2);
    assert_eq!(place.run(&["show", "b"]).exit, 2);
    place.ok(&["restore", "left", "--store", "sled:new.db"]);
    // What is restored has lost it, too.
    let run = place.run(&["verify", "--store", "sled:new.db"]);
    assert_eq!((run.exit, run.json()[0]["problems"].as_array().unwrap().len()), (1, 1));
    place.ok(&["verify", "--accept-loss", "--store", "sled:new.db"]);
    place.ok(&["verify", "--store", "sled:new.db"]);
}

#[test]
fn a_store_without_a_watermark_is_read_only_until_that_is_accepted() {
    let place = Place::new();
    place.append("a", &[HELLO]);
    for damage in [None, Some(&b"damaged"[..]), Some(&[0; 8192])] {
        let watermark = place.path("convo.db/watermark");
        match damage {
            Some(bytes) => std::fs::write(&watermark, bytes).unwrap(),
            None => std::fs::remove_file(&watermark).unwrap(),
        }
        let run = place.run(&["show", "a"]);
        assert_eq!((run.exit, run.json().len()), (0, 1));
        assert!(
            run.stderr.starts_with("warning: the store's file `watermark` is damaged or missing"),
            "{}",
            run.stderr
        );
        let run = place.run_with(&["append", "a"], HELLO);
        assert!(run.exit == 2 && run.stderr.contains("its file `watermark` is damaged or missing"), "{}", run.stderr);
        let run = place.run(&["verify"]);
        let problems = &run.json()[0]["problems"];
        assert_eq!((run.exit, problems.as_array().unwrap().len()), (1, 1), "{problems}");
        place.ok(&["verify", "--accept-loss"]);
        assert_eq!(place.ok(&["show", "a"]).stderr, "");
    }
    place.append("a", &[HELLO]);
    place.ok(&["verify"]);
}

#[test]
fn damage_that_kept_the_store_from_opening_is_told_until_it_is_repaired() {
    let place = Place::new();
    place.append("a", &[HELLO, ANSWER]);
    drop(place.store());
    let names = std::fs::read_dir(place.path("convo.db")).unwrap().map(|entry| entry.unwrap().path());
    let snapshot = names.into_iter().find(|path| path.to_string_lossy().contains("/snap.")).unwrap();
    let mut bytes = std::fs::read(&snapshot).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&snapshot, bytes).unwrap();
    let warning = "warning: damage kept the store from opening as it was";
    for _ in 0..2 {
        let run = place.run(&["show", "a"]);
        assert_eq!((run.exit, run.json().len()), (0, 2), "reading does not repair");
        assert!(run.stderr.starts_with(warning), "{}", run.stderr);
    }
    let copies = || std::fs::read_dir(place.path("")).unwrap().count();
    assert_eq!(copies(), 2, "one copy, made once");
    let run = place.run_with(&["append", "a"], HELLO);
    assert!(run.exit == 0 && run.stderr.starts_with(warning), "{}", run.stderr);
    assert_eq!(place.ok(&["show", "a"]).json().len(), 3);
    assert_eq!(copies(), 2);
}
