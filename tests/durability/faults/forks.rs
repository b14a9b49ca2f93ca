//! A fork reads what it was forked from, and nothing else, whatever happens to that.

use conversation_store::model::{Chunk, Message, Role};

use crate::faults::damage::Kind;
use crate::faults::{Place, assert_no_stranger, id, is_reported, listed, said, say, texts, user};

// 9

#[test]
fn what_is_derived_for_a_fork_is_what_its_head_says() {
    let place = Place::with(|store| {
        say(store, "parent", 1..=3);
        store.tag("parent", &["early"]).unwrap();
        say(store, "parent", 5..=6);
        store.set_title("parent", Some("a later title")).unwrap();
        store.tag("parent", &["late"]).unwrap();
        store.fork_to("parent", Some(5), "fork").unwrap();
        say(store, "fork", 6..=7);
    });
    let store = place.open();
    let before = store.describe("fork").unwrap();
    drop(store);
    place.damage(|raw| raw.remove(&raw.key_of(Kind::Head, id("fork"))));
    let after = place.open().describe("fork").unwrap();
    assert_eq!((after.title, after.tags), (before.title, before.tags));
    assert_eq!((after.last_seq, after.parent, after.key), (before.last_seq, before.parent, before.key));
}

#[test]
fn a_fork_has_the_title_and_tags_of_its_fork_point() {
    let place = Place::new();
    let store = place.open();
    say(&store, "parent", 1..=3);
    store.tag("parent", &["early"]).unwrap();
    say(&store, "parent", 5..=6);
    store.set_title("parent", Some("a later title")).unwrap();
    store.tag("parent", &["late"]).unwrap();
    store.fork_to("parent", Some(5), "fork").unwrap();
    let fork = store.describe("fork").unwrap();
    assert_eq!((fork.title.as_deref(), fork.tags), (Some("parent 1"), vec!["early".to_owned()]));
}

// 16

#[test]
fn a_fork_at_zero_is_an_empty_fork() {
    let place = Place::new();
    let store = place.open();
    say(&store, "parent", 1..=3);
    store.fork_to("parent", Some(0), "fork").unwrap();
    assert_eq!(texts(&store, "fork"), Vec::<String>::new());
    let receipt = user(&store, "fork", "another first message").unwrap();
    assert_eq!((receipt.first_seq, receipt.message_indexes), (1, vec![0]));
    let parent = store.describe("fork").unwrap().parent.unwrap();
    assert_eq!((parent.conversation, parent.at_seq), (id("parent"), 0));
    store.delete("parent").unwrap();
    assert_eq!(texts(&store, "fork"), ["another first message"]);
}

// 23

fn parent_and_fork() -> Place {
    Place::with(|store| {
        say(store, "parent", 1..=5);
        store.fork_to("parent", Some(4), "fork").unwrap();
        say(store, "fork", 5..=6);
    })
}

fn known() -> Vec<String> {
    [said("parent", 1..=4), said("fork", 5..=6)].concat()
}

#[test]
fn what_a_parent_appends_after_a_loss_is_not_its_forks() {
    let place = parent_and_fork();
    place.damage(|raw| [3, 4, 5].map(|seq| raw.remove(&raw.record(id("parent"), seq))).into_iter().collect());
    let store = place.accept_loss();
    for number in 0..4 {
        user(&store, "parent", &format!("stranger {number}")).unwrap();
    }
    assert_no_stranger(&store, "fork", &known());
    assert!(store.load_strict("fork").is_err(), "two messages are missing");
    drop(store);
    assert_no_stranger(&place.open(), "fork", &known());
}

/// Everything of the parent is gone, and a conversation of its name is begun.
fn another_parent(accept_loss: bool) {
    let place = parent_and_fork();
    place.damage(|raw| {
        for kind in [Kind::Record, Kind::Head, Kind::Index] {
            raw.keys_of(kind, id("parent")).iter().for_each(|key| raw.remove(key));
        }
    });
    let store = if accept_loss { place.accept_loss() } else { place.open() };
    for number in 0..6 {
        let appended = user(&store, "parent", &format!("stranger {number}"));
        println!("{appended:?}");
    }
    assert_no_stranger(&store, "fork", &known());
    assert!(store.load_strict("fork").is_err(), "four messages are missing");
    drop(store);
    assert_no_stranger(&place.open(), "fork", &known());
}

#[test]
fn a_new_conversation_is_not_the_past_of_a_fork_whose_parent_was_lost() {
    another_parent(false);
}

#[test]
fn a_new_conversation_is_not_the_past_of_a_fork_whose_parent_was_lost_and_accepted() {
    another_parent(true);
}

#[test]
fn a_grandchild_does_not_read_what_was_appended_after_a_loss() {
    let place = parent_and_fork();
    let store = place.open();
    store.fork_to("fork", Some(5), "grandchild").unwrap();
    say(&store, "grandchild", 6..=7);
    drop(store);
    place.damage(|raw| [4, 5].map(|seq| raw.remove(&raw.record(id("parent"), seq))).into_iter().collect());
    let store = place.accept_loss();
    for number in 0..3 {
        user(&store, "parent", &format!("stranger {number}")).unwrap();
    }
    let known = [said("parent", 1..=4), said("fork", 5..=5), said("grandchild", 6..=7)].concat();
    assert_no_stranger(&store, "grandchild", &known);
}

#[test]
fn a_record_of_an_earlier_conversation_of_the_same_name_is_not_read() {
    // The same seq, the same conversation, a valid checksum: the record of an earlier conversation of that name.
    let place = Place::with(|store| say(store, "parent", 1..=5));
    let mut earlier = None;
    place.damage(|raw| {
        let key = raw.record(id("parent"), 3);
        earlier = raw.get(&key).map(|value| (key, value));
    });
    let store = place.open();
    store.delete("parent").unwrap();
    for number in 1..=5 {
        user(&store, "parent", &format!("second {number}")).unwrap();
    }
    store.fork_to("parent", Some(4), "fork").unwrap();
    say(&store, "fork", 5..=6);
    drop(store);
    let (key, value) = earlier.unwrap();
    place.damage(|raw| raw.put(&key, &value));
    let store = place.open();
    assert_no_stranger(&store, "parent", &said("second", 1..=5));
    assert_no_stranger(&store, "fork", &[said("second", 1..=4), said("fork", 5..=6)].concat());
}

// 30

#[test]
fn a_redaction_leaves_the_title_of_a_fork_that_does_not_share_the_message() {
    let place = Place::new();
    let store = place.open();
    // One record; the fork shares its first message only.
    store.append("parent", &[Message::new(Role::System, [Chunk::text("Be kind.")]), Message::user("secret")]).unwrap();
    store.fork_to("parent", Some(1), "fork").unwrap();
    user(&store, "fork", "the fork's own").unwrap();
    assert_eq!(store.describe("fork").unwrap().title.as_deref(), Some("the fork's own"));
    store.redact("parent", 1, None).unwrap();
    assert_eq!(store.describe("fork").unwrap().title.as_deref(), Some("the fork's own"));
    assert_eq!(store.describe("parent").unwrap().title, None);
}

#[test]
fn a_fork_of_a_lost_parent_is_listed_and_its_own_messages_load() {
    let place = parent_and_fork();
    place.damage(|raw| {
        for kind in [Kind::Record, Kind::Head, Kind::Index] {
            raw.keys_of(kind, id("parent")).iter().for_each(|key| raw.remove(key));
        }
    });
    let store = place.open();
    assert!(listed(&store).contains(&"fork".to_owned()));
    let fork = store.load("fork").expect("its own messages load");
    assert_eq!(crate::faults::texts_of(&fork), said("fork", 5..=6));
    assert!(is_reported(&fork));
}
