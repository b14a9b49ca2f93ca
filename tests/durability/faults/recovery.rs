//! Recovery proves before it acts: what cannot be verified is set aside and reported, and the rest goes on working.

use conversation_store::model::{Chunk, Message};
use conversation_store::{AppendOptions, Error, Health, ListQuery, Store};

use crate::common::program::{PATIENCE, convo, copy, run};
use crate::faults::damage::{Kind, Pair};
use crate::faults::{
    Place, assert_no_stranger, id, is_reported, listed, problems, said, say, texts, texts_of, url, user,
};

/// A parent of which a fork shares two of three messages that are one record, and a conversation beside them.
fn deleted_parent() -> Place {
    Place::with(|store| {
        say(store, "bystander", 1..=3);
        let three = [1, 2, 3].map(|number| Message::user(format!("parent {number}")));
        store.append("parent", &three).unwrap();
        store.fork_to("parent", Some(2), "fork").unwrap();
        say(store, "fork", 3..=4);
        store.delete("parent").unwrap();
    })
}

/// The only pair of a kind that a conversation has in the closed store.
fn pair(place: &Place, kind: Kind, name: &str) -> Pair {
    let mut found = None;
    place.damage(|raw| {
        let key = raw.key_of(kind, id(name));
        found = raw.get(&key).map(|value| (key, value));
    });
    found.unwrap()
}

fn assert_works(store: &Store) {
    assert_eq!(texts(store, "bystander"), said("bystander", 1..=3));
    let receipt = user(store, "bystander", "bystander 4").unwrap();
    assert_eq!(receipt.first_seq, 4);
}

// 2

#[test]
fn a_damaged_record_of_a_deleted_parent_leaves_the_store_writable() {
    let place = deleted_parent();
    place.damage(|raw| raw.flip(&raw.record(id("parent"), 1)));
    let store = place.try_open().expect("the store opens");
    assert_works(&store);
    let fork = store.load("fork").unwrap();
    assert_eq!(texts_of(&fork), said("fork", 3..=4));
    assert!(is_reported(&fork));
    assert_ne!(problems(&store), Vec::<String>::new());
}

#[test]
fn a_damaged_record_of_a_deleted_parent_leaves_the_store_writable_where_loss_is_accepted() {
    let place = deleted_parent();
    place.damage(|raw| raw.flip(&raw.record(id("parent"), 1)));
    let store = place.try_accept_loss().expect("the store opens");
    assert_works(&store);
    assert!(texts(&store, "fork").ends_with(&said("fork", 3..=4)));
}

#[test]
fn a_missing_record_of_a_deleted_parent_leaves_the_store_writable() {
    let place = deleted_parent();
    place.damage(|raw| raw.remove(&raw.record(id("parent"), 1)));
    assert_works(&place.try_open().expect("the store opens"));
}

#[test]
fn deleting_a_parent_with_a_damaged_record_does_not_let_its_id_be_used_while_a_fork_reads_it() {
    let place = Place::with(|store| {
        say(store, "parent", 1..=6);
        store.fork_to("parent", Some(5), "fork").unwrap();
        say(store, "fork", 6..=6);
    });
    place.damage(|raw| raw.flip(&raw.record(id("parent"), 5)));
    let store = place.open();
    let known = [said("parent", 1..=4), said("fork", 6..=6)].concat();
    assert_no_stranger(&store, "fork", &known);
    let deleted = store.delete("parent");
    let appended = user(&store, "parent", "stranger 1");
    println!("delete: {deleted:?}, append: {appended:?}");
    // A deletion that fails leaves the conversation as it was.
    match (&deleted, &appended) {
        (Ok(()), Ok(receipt)) => assert_eq!(receipt.first_seq, 1),
        (Ok(()), Err(error)) => println!("its id is reserved: {error}"),
        (Err(_), appended) => assert_eq!(appended.as_ref().unwrap().first_seq, 7),
    }
    let fork = store.load("fork").unwrap();
    assert_eq!(texts_of(&fork), known);
    assert!(is_reported(&fork));
}

// 24

#[test]
fn the_key_of_a_lost_append_is_lost_with_it() {
    let options = AppendOptions::new().with_idempotency_key("request 3");
    let third = [Message::user("chat 3")];
    let place = Place::with(|store| {
        say(store, "chat", 1..=2);
        store.append_with("chat", &third, &options).unwrap();
    });
    place.damage(|raw| raw.remove(&raw.record(id("chat"), 3)));
    let store = place.accept_loss();
    assert_eq!(texts(&store, "chat"), said("chat", 1..=2));
    let receipt = store.append_with("chat", &third, &options).unwrap();
    assert!(!receipt.duplicate, "{receipt:?}");
    assert_eq!(texts(&store, "chat"), said("chat", 1..=3));
}

#[test]
fn a_key_does_not_answer_for_what_is_damaged() {
    let options = AppendOptions::new().with_idempotency_key("request 3");
    let third = [Message::user("chat 3")];
    let place = Place::with(|store| {
        say(store, "chat", 1..=2);
        store.append_with("chat", &third, &options).unwrap();
    });
    place.damage(|raw| raw.remove(&raw.record(id("chat"), 3)));
    // Without a word that the loss is accepted: an error, or it is stored again.
    let store = place.open();
    match store.append_with("chat", &third, &options) {
        Ok(receipt) => {
            assert!(!receipt.duplicate, "{receipt:?}");
            assert!(texts(&store, "chat").contains(&"chat 3".to_owned()));
        }
        Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "{error:?}"),
    }
}

#[test]
fn a_key_of_an_earlier_conversation_of_the_name_does_not_answer() {
    let options = AppendOptions::new().with_idempotency_key("request");
    let message = [Message::user("chat 1")];
    let append = |store: &Store| store.append_with("chat", &message, &options);
    let place = Place::with(|store| drop(append(store).unwrap()));
    let earlier = pair(&place, Kind::Receipt, "chat");
    let store = place.open();
    store.delete("chat").unwrap();
    user(&store, "chat", "another").unwrap();
    drop(store);
    place.damage(|raw| raw.put(&earlier.0, &earlier.1));
    let store = place.open();
    match append(&store) {
        Ok(receipt) => assert!(!receipt.duplicate, "{receipt:?}, and there is {:?}", texts(&store, "chat")),
        Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "{error:?}"),
    }
}

// 25

#[test]
fn a_tombstone_of_an_earlier_conversation_of_the_name_erases_nothing() {
    let place = Place::with(|store| {
        say(store, "chat", 1..=3);
        store.fork_to("chat", None, "fork").unwrap();
        store.delete("chat").unwrap();
    });
    let earlier = pair(&place, Kind::Tombstone, "chat");
    let store = place.open();
    store.delete("fork").unwrap();
    say(&store, "chat", 1..=4);
    drop(store);
    place.damage(|raw| raw.put(&earlier.0, &earlier.1));
    let is_noticed = !problems(&place.read_only()).is_empty();
    for opening in [Place::read_only, Place::open, Place::accept_loss, Place::open] {
        let store = opening(&place);
        assert_eq!(texts(&store, "chat"), said("chat", 1..=4));
        user(&store, "bystander", "hello").ok();
    }
    assert!(is_noticed, "verify says nothing");
}

#[test]
fn a_deleted_fork_without_entries_does_not_come_back_where_its_tombstone_is_damaged() {
    let place = Place::with(|store| {
        say(store, "parent", 1..=3);
        store.fork_to("parent", None, "fork").unwrap();
    });
    let earlier = [Kind::Head, Kind::Index].map(|kind| pair(&place, kind, "fork"));
    let point = pair(&place, Kind::Fork, "parent");
    let store = place.open();
    store.delete("fork").unwrap();
    drop(store);
    place.damage(|raw| {
        for (key, value) in earlier.iter().chain([&point]) {
            raw.put(key, value);
        }
        raw.put(&[&[Kind::Tombstone.byte()], id("fork").as_bytes().as_slice()].concat(), b"damaged");
    });
    for opening in [Place::read_only, Place::open] {
        let store = opening(&place);
        let read = store.load("fork");
        assert!(read.is_err(), "{read:?}");
        assert_eq!(texts(&store, "parent"), said("parent", 1..=3));
    }
}

fn shared_by_a_fork(deleted: bool) -> Place {
    let place = Place::with(|store| {
        say(store, "bystander", 1..=3);
        say(store, "parent", 1..=4);
        store.fork_to("parent", Some(3), "fork").unwrap();
        say(store, "fork", 4..=5);
        if deleted {
            store.delete("parent").unwrap();
        }
    });
    place.damage(|raw| raw.remove(&raw.key_of(Kind::Fork, id("parent"))));
    place
}

fn shared() -> Vec<String> {
    [said("parent", 1..=3), said("fork", 4..=5)].concat()
}

#[test]
fn a_lost_fork_point_does_not_let_an_opening_erase_what_the_fork_reads() {
    let place = shared_by_a_fork(true);
    let reading = place.read_only();
    assert_eq!(texts(&reading, "fork"), shared());
    assert_ne!(problems(&reading), Vec::<String>::new());
    drop(reading);
    let store = place.open();
    assert_eq!(texts(&store, "fork"), shared());
    assert_works(&store);
}

#[test]
fn a_lost_fork_point_does_not_let_an_accepted_loss_erase_what_the_fork_reads() {
    let place = shared_by_a_fork(true);
    assert_eq!(texts(&place.accept_loss(), "fork"), shared());
}

#[test]
fn a_lost_fork_point_does_not_let_a_deletion_erase_what_the_fork_reads() {
    let place = shared_by_a_fork(false);
    let store = place.open();
    let deleted = store.delete("parent");
    println!("{deleted:?}");
    assert_eq!(texts(&store, "fork"), shared());
    drop(store);
    assert_eq!(texts(&place.open(), "fork"), shared());
}

// 26

#[test]
fn a_fork_keeps_its_parent_and_key_where_its_first_record_is_damaged() {
    let place = Place::with(|store| {
        say(store, "parent", 1..=5);
        store.fork_to("parent", None, "fork").unwrap();
        say(store, "fork", 6..=8);
    });
    let known = [said("parent", 1..=5), said("fork", 7..=8)].concat();
    place.damage(|raw| raw.flip(&raw.record(id("fork"), 6)));
    for opening in [Place::open, Place::accept_loss] {
        let store = opening(&place);
        let fork = store.load("fork").unwrap();
        assert_eq!(texts_of(&fork), known);
        assert!(is_reported(&fork));
        let item = store.describe("fork").unwrap();
        assert_eq!(
            (item.key.as_deref(), item.parent.map(|parent| (parent.conversation, parent.at_seq))),
            (Some("fork"), Some((id("parent"), 5)))
        );
    }
}

#[test]
fn an_empty_fork_outlives_the_loss_of_its_origin() {
    let place = Place::with(|store| {
        say(store, "parent", 1..=3);
        store.fork_to("parent", None, "fork").unwrap();
    });
    place.damage(|raw| raw.remove(&raw.key_of(Kind::Record, id("fork"))));
    let store = place.accept_loss();
    assert_eq!(texts(&store, "fork"), said("parent", 1..=3));
}

#[test]
fn a_name_is_not_reserved_for_a_fork_that_is_gone() {
    let place = Place::with(|store| {
        say(store, "parent", 1..=3);
        store.fork_to("parent", None, "fork").unwrap();
    });
    place.damage(|raw| raw.remove(&raw.key_of(Kind::Record, id("fork"))));
    let store = place.accept_loss();
    match store.load("fork") {
        Ok(_) => store.delete("fork").unwrap(),
        Err(error) => assert!(matches!(error, Error::NotFound { .. }), "{error:?}"),
    }
    store.delete("parent").unwrap();
    assert_eq!(user(&store, "parent", "parent again").unwrap().first_seq, 1);
}

#[test]
fn a_conversation_keeps_its_key_where_its_first_record_is_damaged() {
    let place = Place::with(|store| say(store, "chat", 1..=3));
    place.damage(|raw| raw.flip(&raw.record(id("chat"), 1)));
    let store = place.accept_loss();
    let chat = store.load("chat").unwrap();
    assert_eq!((texts_of(&chat), is_reported(&chat)), (said("chat", 2..=3), true));
    assert_eq!(store.describe("chat").unwrap().key.as_deref(), Some("chat"));
}

#[test]
fn a_lost_tombstone_does_not_bring_a_deleted_conversation_back() {
    let place = deleted_parent();
    place.damage(|raw| raw.remove(&raw.key_of(Kind::Tombstone, id("parent"))));
    let fork = [said("parent", 1..=2), said("fork", 3..=4)].concat();
    let deleted = |store: &Store, how: &str| {
        assert!(!listed(store).contains(&"parent".to_owned()), "{how}: it is listed again");
        let loaded = store.load("parent").map(|loaded| texts_of(&loaded));
        assert!(loaded.is_err(), "{how}: it is back: {loaded:?}");
        assert_no_stranger(store, "fork", &fork);
        assert_ne!(problems(store), Vec::<String>::new(), "{how}: verify says nothing");
    };
    deleted(&place.read_only(), "read-only");
    deleted(&place.open(), "opened");
    deleted(&place.accept_loss(), "loss accepted");
}

// 27

/// A conversation whose head and only record are damaged.
fn victim() -> Place {
    let place = Place::with(|store| {
        say(store, "bystander", 1..=3);
        let item = Chunk { id: Some("item".to_owned()), ..Chunk::text("Hm.") };
        store.append("victim", &[Message::assistant([item.clone()])]).unwrap();
        store.append("last", &[Message::assistant([item])]).unwrap();
    });
    place.damage(|raw| {
        raw.flip(&raw.key_of(Kind::Head, id("victim")));
        raw.flip(&raw.record(id("victim"), 1));
    });
    place
}

#[test]
fn the_list_goes_on_beside_a_conversation_that_cannot_be_read() {
    let store = victim().open();
    let page = store.list(&ListQuery::new()).unwrap();
    let keys: Vec<_> = page.items.iter().filter_map(|item| item.key.as_deref()).collect();
    assert!(keys.contains(&"bystander") && keys.contains(&"last"), "{keys:?}");
}

#[test]
fn verify_reports_a_conversation_that_cannot_be_read() {
    let store = victim().open();
    let found = store.verify(|_, _| ()).unwrap();
    assert!(found.problems.iter().any(|problem| problem.conversation == Some(id("victim"))), "{found:?}");
}

#[test]
fn items_are_found_beside_a_conversation_that_cannot_be_read() {
    let store = victim().open();
    let found = store.find_item_everywhere("item").unwrap();
    assert!(found.iter().any(|item| item.conversation == id("last")), "{found:?}");
}

#[test]
fn a_backup_is_made_beside_a_conversation_that_cannot_be_read() {
    let place = victim();
    let store = place.open();
    store.backup(place.file("backup"), |_, _| ()).unwrap();
    let backup = Store::open(&format!("backup:{}", place.file("backup").display())).unwrap();
    assert_eq!(texts(&backup, "bystander"), said("bystander", 1..=3));
    assert_ne!(problems(&backup), Vec::<String>::new());
}

// 28

/// Whether opening, health or verify reports something.
fn is_noticed(opened: Result<Store, Error>) -> bool {
    match opened {
        Err(error) => {
            println!("{error}");
            true
        }
        Ok(store) => store.health() != Health::default() || !problems(&store).is_empty(),
    }
}

#[test]
fn the_database_of_another_store_is_noticed() {
    let (mine, other) =
        (Place::with(|store| say(store, "mine", 1..=2)), Place::with(|store| say(store, "other", 1..=9)));
    for name in ["db", "conf"] {
        std::fs::copy(other.path().join(name), mine.path().join(name)).unwrap();
    }
    for entry in std::fs::read_dir(mine.path()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with("snap.") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    let opened = mine.try_open();
    if let Ok(store) = &opened {
        println!("lists {:?}, {:?}", listed(store), store.health());
    }
    assert!(is_noticed(opened));
}

#[test]
fn a_damaged_head_is_reported_by_verify() {
    let place = Place::with(|store| {
        say(store, "chat", 1..=2);
        store.set_title("chat", Some("a title")).unwrap();
    });
    place.damage(|raw| raw.flip(&raw.key_of(Kind::Head, id("chat"))));
    assert!(!problems(&place.read_only()).is_empty(), "read-only");
    assert!(!problems(&place.open()).is_empty(), "opened");
}

#[test]
fn a_missing_head_is_reported_by_verify() {
    let place = Place::with(|store| say(store, "chat", 1..=2));
    place.damage(|raw| raw.remove(&raw.key_of(Kind::Head, id("chat"))));
    assert!(!problems(&place.read_only()).is_empty(), "read-only");
    assert!(!problems(&place.open()).is_empty(), "opened");
}

#[test]
fn a_missing_origin_is_reported_by_verify() {
    let place = Place::with(|store| {
        say(store, "parent", 1..=3);
        store.fork_to("parent", None, "fork").unwrap();
    });
    place.damage(|raw| raw.remove(&raw.key_of(Kind::Record, id("fork"))));
    assert!(is_noticed(place.try_open()));
}

#[test]
fn a_missing_epoch_is_noticed() {
    let place = Place::with(|store| say(store, "chat", 1..=2));
    place.damage(|raw| raw.remove(&raw.of_store("epoch")));
    assert!(is_noticed(place.try_open()));
}

#[test]
fn a_stray_fork_point_is_reported_by_verify() {
    let place = Place::with(|store| {
        say(store, "parent", 1..=3);
        store.fork_to("parent", None, "fork").unwrap();
    });
    let (key, value) = pair(&place, Kind::Fork, "parent");
    let store = place.open();
    store.delete("fork").unwrap();
    drop(store);
    place.damage(|raw| raw.put(&key, &value));
    assert!(is_noticed(place.try_open()));
}

/// A store whose files are older than its watermark.
fn went_back() -> Place {
    let place = Place::with(|store| say(store, "chat", 1..=2));
    let older = place.file("older");
    copy(&place.path(), &older);
    let store = place.open();
    say(&store, "chat", 3..=9);
    store.close().unwrap();
    drop(store);
    let watermark = std::fs::read(place.path().join("watermark")).unwrap();
    std::fs::write(older.join("watermark"), watermark).unwrap();
    std::fs::remove_dir_all(place.path()).unwrap();
    std::fs::rename(older, place.path()).unwrap();
    place
}

#[test]
fn a_backup_of_a_store_that_went_back_does_not_restore_as_healthy() {
    let place = went_back();
    let store = place.open();
    assert!(store.health().went_back.is_some(), "the store is made as the test wants it");
    let Ok(_) = store.backup(place.file("backup"), |_, _| ()) else { return };
    let opened = Store::open(&format!("backup:{}", place.file("backup").display()));
    assert!(is_noticed(opened), "the backup");
    let restored = place.file("restored");
    assert!(
        Store::restore(place.file("backup"), &url(&restored), |_, _| ()).is_err()
            || is_noticed(Store::open(&url(&restored))),
        "what is restored"
    );
}

// 29

#[test]
fn a_store_opens_in_which_a_parent_was_deleted_whose_fork_point_is_damaged() {
    let place = Place::with(|store| {
        say(store, "bystander", 1..=3);
        say(store, "parent", 1..=4);
        store.fork_to("parent", Some(3), "fork").unwrap();
        say(store, "fork", 4..=5);
    });
    place.damage(|raw| raw.flip(&raw.key_of(Kind::Fork, id("parent"))));
    let store = place.open();
    let deleted = store.delete("parent");
    println!("{deleted:?}");
    assert_eq!(texts(&store, "fork"), shared(), "after the deletion");
    drop(store);
    for open in [Place::try_open, Place::try_accept_loss] {
        let store = open(&place).expect("the store opens");
        assert_eq!(texts(&store, "fork"), shared(), "after an opening");
        drop(store);
    }
    assert_works(&place.open());
}

/// Damage set a fork aside, and each message says that `delete` removes it.
#[test]
fn what_was_set_aside_is_deleted_by_the_program_and_leaves_no_fork_point() {
    let place = Place::with(|store| {
        say(store, "parent", 1..=3);
        store.fork_to("parent", None, "fork").unwrap();
        say(store, "fork", 4..=5);
        store.delete("parent").unwrap();
    });
    place.damage(|raw| {
        raw.flip(&raw.key_of(Kind::Head, id("fork")));
        raw.flip(&raw.record(id("fork"), 4));
    });
    let said = place.open().load("fork").unwrap_err().to_string();
    assert!(said.contains("`delete` removes it"), "{said}");
    let (url, args) = (place.url(), ["delete", "fork", "--yes", "--store"]);
    let ended = run(convo(&[&args[..], &[&url]].concat()), PATIENCE);
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    // How much it had is not known: that it is missing is accepted.
    let store = place.accept_loss();
    assert_eq!(problems(&store), [""; 0]);
    for name in ["fork", "parent"] {
        // Nothing waits for it any more.
        user(&store, name, "anew").unwrap();
        assert_eq!(texts(&store, name), ["anew"]);
    }
}
