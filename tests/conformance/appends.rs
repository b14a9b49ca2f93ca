//! What an append is: once, as expected, durable or buffered.

use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::{FinishReason, Message, Metadata, Role};
use conversation_store::{AppendOptions, Cursor, Durability, Error, ExpectedHead, Store, StoreOptions};

use crate::place::Place;
use crate::said::{load, user, with_key};

crate::tests![
    an_expectation_is_of_one_conversation,
    an_append_is_repeated_without_effect,
    a_key_is_refused_for_other_content,
    a_key_belongs_to_its_conversation,
    an_append_is_taken_as_expected_or_not_at_all,
    what_is_expected_is_compared_with_what_is_queued,
    what_is_buffered_becomes_durable_by_itself,
];

fn an_append_is_repeated_without_effect(place: &Place) {
    let url = place.url();
    let store = Store::open(&url).unwrap();
    let first = store.append_with("chat", &[user("a"), user("b")], &with_key("k")).unwrap();
    store.append("chat", &[user("c")]).unwrap();
    // Whatever is expected, and with times that the store gave: a repetition is a repetition.
    let options = with_key("k").with_expected(ExpectedHead::NewConversation);
    let mut again = first;
    again.duplicate = true;
    assert_eq!(store.append_with("chat", &[user("a"), user("b")], &options).unwrap(), again);
    store.close().unwrap();
    drop(store);
    if !place.survives() {
        return;
    }
    let store = Store::open(&url).unwrap();
    assert_eq!(store.append_with("chat", &[user("a"), user("b")], &options).unwrap(), again);
    assert_eq!(load(&store, "chat"), ["a", "b", "c"]);
}

fn a_key_is_refused_for_other_content(place: &Place) {
    let store = place.store();
    store.append_with("chat", &[user("a")], &with_key("k")).unwrap();
    let marked = Message { finish_reason: Some(FinishReason::Stop), ..user("a") };
    for other in [user("b"), Message::system("a"), marked] {
        let result = store.append_with("chat", &[other], &with_key("k"));
        assert!(matches!(result, Err(Error::KeyReused { ref key, .. }) if key == "k"), "{result:?}");
    }
    assert_eq!(load(&store, "chat"), ["a"]);
}

fn a_key_belongs_to_its_conversation(place: &Place) {
    let store = place.store();
    store.append_with("chat", &[user("a")], &with_key("k")).unwrap();
    assert!(!store.append_with("other", &[user("b")], &with_key("k")).unwrap().duplicate);
    // A fork does not inherit it; with the conversation it is gone.
    store.fork_to("chat", None, "fork").unwrap();
    assert!(!store.append_with("fork", &[user("b")], &with_key("k")).unwrap().duplicate);
    store.delete("fork").unwrap();
    store.delete("chat").unwrap();
    assert!(!store.append_with("chat", &[user("c")], &with_key("k")).unwrap().duplicate);
}

fn an_append_is_taken_as_expected_or_not_at_all(place: &Place) {
    let store = place.store();
    let append = |expected| {
        let result = store.append_with("chat", &[user("a")], &AppendOptions::new().with_expected(expected));
        match result {
            Ok(receipt) => Ok(receipt.last_seq),
            Err(Error::StaleHead { actual, .. } | Error::NameTaken { actual, .. }) => Err(actual),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(append(ExpectedHead::At(1)), Err(0));
    assert_eq!(append(ExpectedHead::At(0)), Ok(1));
    assert_eq!(append(ExpectedHead::At(0)), Err(1));
    assert_eq!(append(ExpectedHead::NewConversation), Err(1));
    assert_eq!(append(ExpectedHead::At(1)), Ok(2));
    assert_eq!(append(ExpectedHead::At(1)), Err(2));
    assert_eq!(append(ExpectedHead::At(u64::MAX)), Err(2));
    assert_eq!(append(ExpectedHead::At(i64::MAX as u64)), Err(2));
    assert_eq!(append(ExpectedHead::Any), Ok(3));
    store.delete("chat").unwrap();
    assert_eq!(append(ExpectedHead::NewConversation), Ok(1));
}

fn what_is_expected_is_compared_with_what_is_queued(place: &Place) {
    let store = place.store_with(&StoreOptions::new().with_window(Duration::from_secs(3600)));
    let buffered = AppendOptions::new().with_durability(Durability::Buffered);
    let append = |expected| store.append_with("chat", &[user("a")], &buffered.clone().with_expected(expected));
    assert_eq!(append(ExpectedHead::NewConversation).unwrap().last_seq, 1);
    assert!(matches!(append(ExpectedHead::NewConversation), Err(Error::NameTaken { actual: 1, .. })));
    assert_eq!(append(ExpectedHead::At(1)).unwrap().message_indexes, [1]);
    // What is not durable is not seen.
    if place.buffers() {
        assert!(matches!(store.load("chat"), Err(Error::NotFound { .. })));
    }
    store.sync().unwrap();
    assert_eq!(load(&store, "chat"), ["a", "a"]);
}

fn what_is_buffered_becomes_durable_by_itself(place: &Place) {
    let store = place.store_with(&StoreOptions::new().with_window(Duration::from_millis(5)));
    let buffered = AppendOptions::new().with_durability(Durability::Buffered);
    assert_eq!(store.append_with("chat", &[user("a")], &buffered).unwrap().durable, !place.buffers());
    let until = Instant::now() + Duration::from_secs(20);
    while store.load("chat").is_err() {
        assert!(Instant::now() < until, "it never becomes visible");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(load(&store, "chat"), ["a"]);
}

/// A conversation that was deleted, and another of as many entries that was made under its name.
fn an_expectation_is_of_one_conversation(place: &Place) {
    let store = place.store();
    let cursor = || store.load("chat").unwrap().cursor().unwrap();
    let at = |cursor| AppendOptions::new().with_expected(ExpectedHead::AtCursor(cursor));
    store.append("chat", &[user("a")]).unwrap();
    let first = cursor();
    let receipt = store.append_with("chat", &[user("b")], &at(first).with_idempotency_key("k")).unwrap();
    let stale = store.append_with("chat", &[user("c")], &at(first));
    assert!(matches!(stale, Err(Error::StaleHead { expected: 1, actual: 2, .. })), "{stale:?}");
    // A key is looked at before.
    let again = store.append_with("chat", &[user("b")], &at(first).with_idempotency_key("k")).unwrap();
    assert_eq!((again.first_seq, again.duplicate), (receipt.first_seq, true));
    let second = cursor();
    store.delete("chat").unwrap();
    for made in [false, true] {
        if made {
            store.append("chat", &[user("x"), user("y")]).unwrap();
        }
        let stale = store.append_with("chat", &[user("c")], &at(second));
        assert!(matches!(stale, Err(Error::StaleCursor { .. })), "{stale:?}");
        let begun = store.begin_with("chat", Role::Assistant, Metadata::default(), &at(second));
        assert!(matches!(begun, Err(Error::StaleCursor { .. })), "{begun:?}");
        let stale = store.append_with("chat", &[user("c")], &at(Cursor::from(1)));
        assert!(matches!(stale, Err(Error::StaleHead { expected: 1, .. })), "{stale:?}");
    }
    assert_eq!(load(&store, "chat"), ["x", "y"]);
    let hers = conversation_store::model::Name::from(store.describe("chat").unwrap().id).with_owner("ada");
    let other = store.append_with(hers, &[user("c")], &at(cursor()));
    assert!(matches!(other, Err(Error::NotFound { .. })), "{other:?}");
    // A number alone is of any conversation of the name.
    store.append_with("chat", &[user("c")], &at(Cursor::from(2))).unwrap();
    assert_eq!(store.append_with("chat", &[user("d")], &at(cursor())).unwrap().first_seq, 4);
}
