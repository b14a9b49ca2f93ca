//! What is redacted is gone everywhere, at once, or the caller learns that it is not.

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{AppendOptions, Error, Store};

use crate::faults::damage::{Kind, commits};
use crate::faults::{Place, id, say, texts, texts_of, user};

const SECRET: &str = "hunter2hunter2";

// 6

#[test]
fn a_redaction_that_could_not_reach_a_damaged_record_does_not_say_that_it_did() {
    let place = Place::with(|store| {
        user(store, "chat", "hello").unwrap();
        let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
        for part in 0..3 {
            writer.push(0, Chunk::text(format!("{part} {SECRET} "))).unwrap();
            store.sync().unwrap();
        }
        writer.finish(None, None).unwrap();
    });
    // The middle one of three fragments; its text is still there to be read.
    place.damage(|raw| raw.flip(&raw.record(id("chat"), 4)));
    let store = place.open();
    let redacted = store.redact("chat", 1, None);
    drop(store);
    place.damage(|raw| {
        assert!(redacted.is_err() || !raw.holds(SECRET), "{redacted:?}, and the text is still there");
    });
}

#[test]
fn a_title_goes_with_the_message_that_gave_it() {
    const FORKS: usize = 3000;
    let store = Store::open("memory:").unwrap();
    user(&store, "parent", SECRET).unwrap();
    let forks: Vec<_> = (0..FORKS).map(|_| store.fork("parent", None).unwrap()).collect();
    let redacting = {
        let store = store.clone();
        std::thread::spawn(move || store.redact("parent", 0, None).unwrap())
    };
    // What a crash at this moment would leave.
    while store.describe("parent").unwrap().title.is_some() {}
    let left = forks.iter().filter(|fork| store.describe(*fork).unwrap().title.is_some()).count();
    redacting.join().unwrap();
    assert_eq!(left, 0, "of {FORKS} forks so many still have the title after the parent has none");
    assert!(forks.iter().all(|fork| store.describe(fork).unwrap().title.is_none()));
}

#[test]
fn a_fork_does_not_redact_half_of_a_message_that_its_parent_still_writes() {
    let store = Store::open("memory:").unwrap();
    user(&store, "parent", "hello").unwrap();
    let mut writer = store.begin("parent", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text(format!("{SECRET} 1, "))).unwrap();
    store.sync().unwrap();
    store.fork_to("parent", None, "fork").unwrap();
    let redacted = store.redact("fork", 1, None);
    writer.push(0, Chunk::text(format!("{SECRET} 2"))).unwrap();
    writer.finish(None, None).unwrap();
    let answer = texts(&store, "parent").remove(1);
    match redacted {
        Ok(_) => assert!(!answer.contains(SECRET), "redacted, and the parent reads {answer:?}"),
        Err(_) => assert_eq!(answer, format!("{SECRET} 1, {SECRET} 2")),
    }
}

#[test]
fn a_fork_that_shares_half_of_a_message_redacts_all_of_it() {
    let store = Store::open("memory:").unwrap();
    user(&store, "parent", "hello").unwrap();
    let mut writer = store.begin("parent", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text(format!("{SECRET} 1, "))).unwrap();
    store.sync().unwrap();
    store.fork_to("parent", None, "fork").unwrap();
    // An append that the fork cuts in two, and one whose chunk comes after the fork.
    writer.push(0, Chunk::text(format!("{SECRET} 2"))).unwrap();
    store.sync().unwrap();
    writer.push(1, Chunk::text(format!("{SECRET} 3"))).unwrap();
    assert!(matches!(store.redact("fork", 1, None), Err(Error::BeingWritten { .. })));
    writer.finish(None, None).unwrap();
    store.append("parent", &[Message::assistant([Chunk::text(SECRET), Chunk::text(SECRET)])]).unwrap();
    let cut = store.describe("parent").unwrap().last_seq - 1;
    store.fork_to("parent", Some(cut), "second fork").unwrap();

    store.redact("fork", 1, None).unwrap();
    assert_eq!(texts(&store, "parent"), ["hello", "[redacted][redacted]", &SECRET.repeat(2)]);
    assert_eq!(texts(&store, "fork"), ["hello", "[redacted]"]);
    store.redact("second fork", 2, None).unwrap();
    assert_eq!(texts(&store, "parent")[2], "[redacted][redacted]");
    assert_eq!(texts(&store, "second fork"), ["hello", "[redacted][redacted]", "[redacted]"]);
    assert_eq!(crate::faults::problems(&store), [""; 0]);
}

/// The message that a fork cuts in two gave its parent the title.
#[test]
fn a_fork_that_shares_half_of_a_message_redacts_its_title_too() {
    let store = Store::open("memory:").unwrap();
    store.append("parent", &[Message::new(Role::User, [Chunk::text(SECRET), Chunk::text(SECRET)])]).unwrap();
    store.fork_to("parent", Some(1), "fork").unwrap();
    assert_eq!(store.describe("parent").unwrap().title.as_deref(), Some(SECRET));
    store.redact("fork", 0, None).unwrap();
    assert_eq!([store.describe("parent").unwrap().title, store.describe("fork").unwrap().title], [None, None]);
    assert_eq!(texts(&store, "parent"), ["[redacted][redacted]"]);
    assert_eq!(crate::faults::problems(&store), [""; 0]);
}

// 21

#[test]
fn a_redacted_message_gives_no_title() {
    let store = Store::open("memory:").unwrap();
    user(&store, "chat", SECRET).unwrap();
    store.redact("chat", 0, None).unwrap();
    store.set_title("chat", None).unwrap();
    assert_eq!(store.describe("chat").unwrap().title, None);
}

// 29

#[test]
fn a_damaged_fork_point_does_not_make_a_redaction_fail() {
    let place = Place::with(|store| {
        say(store, "parent", 1..=3);
        store.fork_to("parent", None, "fork").unwrap();
        store.fork_to("parent", None, "another").unwrap();
    });
    place.damage(|raw| raw.flip(&raw.keys_of(Kind::Fork, id("parent"))[0]));
    let store = place.open();
    let redacted = store.redact("parent", 0, None);
    for name in ["parent", "fork", "another"] {
        assert_eq!(texts(&store, name)[0], "[redacted]");
        assert_eq!(store.describe(name).unwrap().title, None, "{name}: {redacted:?}");
    }
    redacted.expect("all that can be redacted is");
}

#[test]
fn a_damaged_receipt_does_not_keep_other_messages_from_being_redacted() {
    let place = Place::with(|store| {
        user(store, "chat", SECRET).unwrap();
        let options = AppendOptions::new().with_idempotency_key("request");
        store.append_with("chat", &[Message::user("unrelated")], &options).unwrap();
    });
    place.damage(|raw| raw.flip(&raw.key_of(Kind::Receipt, id("chat"))));
    let store = place.open();
    store.redact("chat", 0, None).expect("the message has nothing to do with that key");
    assert_eq!(texts(&store, "chat"), ["[redacted]", "unrelated"]);
}

#[test]
fn a_damaged_record_elsewhere_does_not_keep_a_message_from_being_redacted() {
    let place = Place::with(|store| {
        user(store, "chat", SECRET).unwrap();
        say(store, "chat", 2..=4);
    });
    place.damage(|raw| raw.flip(&raw.record(id("chat"), 3)));
    let store = place.open();
    let redacted = store.redact("chat", 0, None);
    let chat = store.load("chat").unwrap();
    assert_eq!(texts_of(&chat), ["[redacted]", "chat 2", "chat 4"], "{redacted:?}");
}

// 33

#[test]
fn a_redaction_is_one_commit_however_many_forks_share_the_title() {
    const FORKS: u64 = 200;
    let place = Place::with(|store| {
        user(store, "parent", SECRET).unwrap();
        (0..FORKS).for_each(|_| {
            store.fork("parent", None).unwrap();
        });
    });
    let before = commits(&place.path());
    let store = place.open();
    store.redact("parent", 0, None).unwrap();
    store.close().unwrap();
    drop(store);
    let taken = commits(&place.path()) - before;
    assert!(taken <= 10, "{taken} commits for {FORKS} forks");
}
