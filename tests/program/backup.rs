use serde_json::json;

use super::{ANSWER, HELLO, INCIDENT, Place, incident};

#[test]
fn a_backup_is_read_as_it_is_and_restored() {
    let place = Place::new();
    place.run(&["replay", incident().to_str().unwrap(), "--for", "openai-chat"]);
    place.append("c", &[HELLO, ANSWER]);
    let made = place.ok(&["backup", "chats.backup"]).json();
    let bytes = std::fs::metadata(place.path("chats.backup")).unwrap().len();
    assert_eq!(made, [json!({"conversations": 2, "unreadable": 0, "bytes": bytes})]);
    assert_eq!(place.ok(&["restore", "chats.backup", "--store", "sled:new.db"]).json(), made);
    let read = |url: &str, args: &[&str]| {
        let run = place.run(&[args, &["--store", url]].concat());
        assert_eq!(run.exit, 0, "{url} {args:?}: {}", run.stderr);
        (run.stdout, run.stderr)
    };
    let commands: [&[&str]; 7] = [
        &["show", INCIDENT],
        &["show", "c", "--raw"],
        &["prompt", INCIDENT, "--for", "openai-chat"],
        &["list"],
        &["entries", INCIDENT],
        &["next", "c"],
        &["verify"],
    ];
    for args in commands {
        let wanted = read("sled:convo.db", args);
        assert_eq!(read("backup:chats.backup", args), wanted, "{args:?}");
        assert_eq!(read("sled:new.db", args), wanted, "{args:?}");
    }
    place.ok(&["rewind", "c", "1", "--store", "sled:new.db"]);
    let run = place.run(&["rewind", "c", "1", "--store", "backup:chats.backup"]);
    let wanted = "error: the store was opened for reading only\n  cure: a backup is read-only: `convo restore` turns it into a store\n";
    assert_eq!((run.exit, run.stderr.as_str()), (2, wanted));
}

#[test]
fn what_is_there_is_not_overwritten() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    place.ok(&["backup", "chats.backup"]);
    let run = place.run(&["backup", "chats.backup"]);
    assert_eq!((run.exit, run.stderr.as_str()), (2, "error: chats.backup exists already: name a new file\n"));
    place.append("d", &[HELLO]);
    let run = place.run(&["restore", "chats.backup"]);
    let wanted = "error: a backup can only be restored into a new store: name one that does not exist yet\n";
    assert!(run.exit == 2 && run.stderr.starts_with(wanted), "{}", run.stderr);
    assert!(run.stderr.ends_with(": --store names another one\n"), "{}", run.stderr);
    assert_eq!(place.ok(&["list"]).json().len(), 2);
}

#[test]
fn nothing_is_made_of_a_file_that_is_cut_off_damaged_or_no_backup() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER]);
    place.ok(&["backup", "whole"]);
    let whole = std::fs::read(place.path("whole")).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let damaged = "damaged data in the store: the backup: ";
    for (bytes, exit, error) in [
        (&whole[..whole.len() - 1], 2, format!("{damaged}it is cut off: its end is missing")),
        (&flipped, 2, format!("{damaged}the checksum of a frame does not match")),
        (b"something else entirely", 2, "the file is not a backup of a conversation store".to_owned()),
    ] {
        place.write("bad", bytes);
        let run = place.run(&["restore", "bad", "--store", "sled:new.db"]);
        assert_eq!((run.exit, run.stderr.lines().next()), (exit, Some(format!("error: {error}").as_str())));
        assert!(!place.path("new.db").exists());
        let run = place.run(&["list", "--store", "backup:bad"]);
        assert_eq!((run.exit, run.stderr.lines().next()), (exit, Some(format!("error: {error}").as_str())));
    }
    let run = place.run(&["restore", "nothing", "--store", "sled:new.db"]);
    assert!(run.exit == 2 && run.stderr.starts_with("error: open the backup nothing: "), "{}", run.stderr);
    assert!(!place.path("new.db").exists());
}
