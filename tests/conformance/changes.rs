//! Appends that change the conversation as a whole in the same moment.

use std::thread;
use std::time::Duration;

use conversation_store::model::{Json, Message};
use conversation_store::{AppendOptions, Changes, Cursor, Durability, Error, ExpectedHead, Store, StoreOptions};

use crate::place::Place;
use crate::said::{load, user, with_key};

crate::tests![
    an_append_and_what_it_changes_are_one,
    what_is_refused_changes_nothing,
    a_repetition_is_one_whatever_has_changed_since,
    a_fork_has_what_was_so_at_its_point,
    changes_of_several_threads_are_all_there,
    changes_come_after_what_is_queued,
    a_redaction_keeps_what_an_append_changed,
];

fn json(text: &str) -> Json {
    Json::new(text).unwrap()
}

/// Title, tags, metadata.
fn known(store: &Store, name: &str) -> (Option<String>, Vec<String>, Option<String>) {
    let item = store.describe(name).unwrap();
    (item.title, item.tags, store.metadata(name).unwrap().map(|json| json.as_str().to_owned()))
}

fn so(title: &str, tags: &[&str], metadata: &str) -> (Option<String>, Vec<String>, Option<String>) {
    (Some(title.to_owned()), tags.iter().map(|tag| (*tag).to_owned()).collect(), Some(metadata.to_owned()))
}

fn check(store: &Store) {
    let found = store.verify(|_, _| ()).unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
}

fn an_append_and_what_it_changes_are_one(place: &Place) {
    let (url, none) = (place.url(), AppendOptions::new());
    let store = Store::open(&url).unwrap();
    // A conversation begins with it, and its text gives the title.
    let changes = Changes::new().with_tag("a").with_tag("b").with_metadata(json("{\"step\":1}"));
    let receipt = store.append_changing("chat", &[user("hello"), user("there")], &changes, &none).unwrap();
    assert_eq!((receipt.first_seq, receipt.last_seq, receipt.durable), (1, 3, true));
    assert_eq!(receipt.message_indexes, [0, 1]);
    assert_eq!(known(&store, "chat"), so("hello", &["a", "b"], "{\"step\":1}"));
    // What is not named stays; a tag that is removed and added is there.
    let changes = Changes::new().with_title("Plans").without_tag("a").without_tag("b").with_tag("c").with_tag("b");
    assert_eq!(store.append_changing("chat", &[user("more")], &changes, &none).unwrap().message_indexes, [2]);
    assert_eq!(known(&store, "chat"), so("Plans", &["c", "b"], "{\"step\":1}"));
    // Without messages.
    let changes = Changes::new().with_metadata(json("{\"step\":2}"));
    let receipt = store.append_changing("chat", &[], &changes, &none).unwrap();
    assert_eq!((receipt.first_seq, receipt.last_seq, receipt.message_indexes.len()), (6, 6, 0));
    store.set_metadata("chat", &json("{\"step\":3}")).unwrap();
    store.append("chat", &[user("end")]).unwrap();
    store.append_changing("new", &[], &changes, &none).unwrap();
    for _ in 0..2 {
        assert_eq!(known(&store, "chat"), so("Plans", &["c", "b"], "{\"step\":3}"));
        assert_eq!(load(&store, "chat"), ["hello", "there", "more", "end"]);
        let empty = (None, Vec::new(), Some("{\"step\":2}".to_owned()));
        assert_eq!((known(&store, "new"), load(&store, "new").len()), (empty, 0));
        check(&store);
        if !place.survives() {
            break;
        }
    }
    if place.survives() {
        store.close().unwrap();
        drop(store);
        let store = Store::open(&url).unwrap();
        assert_eq!(known(&store, "chat"), so("Plans", &["c", "b"], "{\"step\":3}"));
        assert_eq!(load(&store, "chat"), ["hello", "there", "more", "end"]);
        store.append_changing("new", &[user("x")], &Changes::new().with_tag("t"), &none).unwrap();
        check(&store);
    }
}

fn what_is_refused_changes_nothing(place: &Place) {
    let store = place.store();
    let at = |expected| AppendOptions::new().with_expected(expected);
    let many = (0..33).fold(Changes::new(), |changes, at| changes.with_tag(at.to_string()));
    let refused = |result: Result<_, Error>| assert!(result.is_err(), "{result:?}");
    for changes in [
        Changes::new().with_tag(" "),
        Changes::new().with_metadata(json("[]")),
        Changes::new().with_metadata(json(&format!("{{\"a\":\"{}\"}}", "x".repeat(64 * 1024)))),
        Changes::new().with_title("x".repeat(1025)),
        many,
    ] {
        refused(store.append_changing("chat", &[user("a")], &changes, &AppendOptions::new()));
    }
    let changes = Changes::new().with_tag("a");
    refused(store.append_changing("chat", &[user("a")], &changes, &at(ExpectedHead::At(1))));
    refused(store.append_changing("chat", &[], &Changes::new(), &AppendOptions::new()));
    assert!(matches!(store.describe("chat"), Err(Error::NotFound { .. })));
    store.append_changing("chat", &[user("a")], &changes, &at(ExpectedHead::NewConversation)).unwrap();
    let cursor = store.load("chat").unwrap().cursor().unwrap();
    let other = Changes::new().with_title("t").with_metadata(json("{}")).with_tag("b");
    for expected in [ExpectedHead::NewConversation, ExpectedHead::At(1), ExpectedHead::AtCursor(Cursor::from(3))] {
        refused(store.append_changing("chat", &[user("b")], &other, &at(expected)));
        refused(store.append_changing("chat", &[], &other, &at(expected)));
    }
    assert_eq!(
        (load(&store, "chat"), store.describe("chat").unwrap().tags),
        (vec!["a".to_owned()], vec!["a".to_owned()])
    );
    assert_eq!(store.describe("chat").unwrap().last_seq, 2);
    store.append_changing("chat", &[], &other, &at(ExpectedHead::AtCursor(cursor))).unwrap();
    let stale = store.append_changing("chat", &[], &other, &at(ExpectedHead::AtCursor(cursor)));
    assert!(matches!(stale, Err(Error::StaleHead { expected: 2, actual: 3, .. })), "{stale:?}");
    store.delete("chat").unwrap();
    let stale = store.append_changing("chat", &[], &other, &at(ExpectedHead::AtCursor(cursor)));
    assert!(matches!(stale, Err(Error::StaleCursor { .. })), "{stale:?}");
}

fn a_repetition_is_one_whatever_has_changed_since(place: &Place) {
    let url = place.url();
    let mut store = Store::open(&url).unwrap();
    let changes = Changes::new().with_title("t").with_tag("a").without_tag("b").with_metadata(json("{\"n\":1}"));
    let without = |take: &dyn Fn(&mut Changes)| {
        let mut other = changes.clone();
        take(&mut other);
        other
    };
    let say = |store: &Store, text: &str, changes: &Changes| {
        store.append_changing("chat", &[user(text)], changes, &with_key("k").with_expected(ExpectedHead::At(1)))
    };
    store.append_changing("chat", &[], &Changes::new().with_tag("b").with_tag("c"), &AppendOptions::new()).unwrap();
    let mut first = say(&store, "x", &changes).unwrap();
    first.duplicate = true;
    for round in 0..2 {
        store
            .append_changing("chat", &[], &Changes::new().with_tag("b").without_tag("a"), &AppendOptions::new())
            .unwrap();
        store.set_title("chat", Some("other")).unwrap();
        let now = known(&store, "chat");
        assert_eq!(say(&store, "x", &changes).unwrap(), first, "{round}");
        assert_eq!(known(&store, "chat"), now);
        let others = [
            Changes::new(),
            without(&|changes| changes.title = None),
            changes.clone().with_title("u"),
            changes.clone().with_tag("d"),
            changes.clone().without_tag("c"),
            without(&|changes| (changes.remove_tags, changes.add_tags) = (Vec::new(), Vec::new())),
            changes.clone().with_metadata(json("{\"n\":2}")),
        ];
        for other in others {
            let reused = say(&store, "x", &other);
            assert!(matches!(reused, Err(Error::KeyReused { ref key, .. }) if key == "k"), "{other:?}: {reused:?}");
        }
        assert!(matches!(say(&store, "y", &changes), Err(Error::KeyReused { .. })));
        if !place.survives() {
            return;
        }
        store.close().unwrap();
        drop(store);
        store = Store::open(&url).unwrap();
    }
    assert_eq!(load(&store, "chat"), ["x"]);
    check(&store);
}

fn a_fork_has_what_was_so_at_its_point(place: &Place) {
    let (store, none) = (place.store(), AppendOptions::new());
    let changes = |at: usize| {
        Changes::new()
            .with_title(format!("t{at}"))
            .with_tag(format!("t{at}"))
            .with_metadata(json(&format!("{{\"n\":{at}}}")))
    };
    store.append_changing("chat", &[user("a")], &changes(1), &none).unwrap();
    store.append_changing("chat", &[user("b"), user("c")], &changes(2), &none).unwrap();
    // Between the messages of an append and its end.
    for (seq, title, tags, metadata) in [
        (1, "a", &[][..], None),
        (2, "t1", &["t1"][..], Some("{\"n\":1}")),
        (4, "t1", &["t1"], Some("{\"n\":1}")),
        (5, "t2", &["t1", "t2"], Some("{\"n\":2}")),
    ] {
        let child = format!("fork {seq}");
        store.fork_to("chat", Some(seq), child.as_str()).unwrap();
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let expected = (Some(title.to_owned()), tags, metadata.map(str::to_owned));
        assert_eq!(known(&store, &child), expected, "{seq}");
        store.append_changing(child.as_str(), &[user("d")], &Changes::new().with_tag("own"), &none).unwrap();
        assert_eq!(known(&store, &child).2.as_deref(), metadata);
    }
    // What forks share stays readable, and the record is cut within.
    store.delete("fork 5").unwrap();
    store.delete("chat").unwrap();
    assert_eq!(load(&store, "fork 4"), ["a", "b", "c", "d"]);
    assert_eq!(known(&store, "fork 4").2.as_deref(), Some("{\"n\":1}"));
    check(&store);
}

fn changes_of_several_threads_are_all_there(place: &Place) {
    let store = place.store();
    thread::scope(|scope| {
        for writer in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for at in 0..5 {
                    let tag = format!("{writer}.{at}");
                    let changes = Changes::new().with_tag(&tag);
                    store.append_changing("chat", &[user(&tag)], &changes, &with_key(&tag)).unwrap();
                    store.append("chat", &[user("between")]).unwrap();
                }
            });
        }
    });
    let mut tags = store.describe("chat").unwrap().tags;
    tags.sort_unstable();
    let all: Vec<String> = (0..4).flat_map(|writer| (0..5).map(move |at| format!("{writer}.{at}"))).collect();
    assert_eq!(tags, all);
    assert_eq!(load(&store, "chat").len(), 40);
    check(&store);
}

fn changes_come_after_what_is_queued(place: &Place) {
    let store = place.store_with(&StoreOptions::new().with_window(Duration::from_secs(3600)));
    let buffered = AppendOptions::new().with_durability(Durability::Buffered);
    store.append_with("chat", &[user("a")], &buffered).unwrap();
    let changes = Changes::new().with_tag("t");
    let receipt = store.append_changing("chat", &[user("b")], &changes, &buffered.with_idempotency_key("k")).unwrap();
    assert_eq!((receipt.first_seq, receipt.durable), (2, true));
    assert_eq!(load(&store, "chat"), ["a", "b"]);
}

fn a_redaction_keeps_what_an_append_changed(place: &Place) {
    let store = place.store();
    let changes = Changes::new().with_tag("t").with_metadata(json("{\"n\":1}"));
    let say = |text: &str| store.append_changing("chat", &[Message::user(text), user("b")], &changes, &with_key("k"));
    say("secret").unwrap();
    store.redact("chat", 0, None).unwrap();
    assert!(say("secret").unwrap().duplicate, "what was redacted may have been the same");
    let item = store.describe("chat").unwrap();
    assert_eq!((item.tags, store.metadata("chat").unwrap()), (vec!["t".to_owned()], Some(json("{\"n\":1}"))));
    assert_eq!(load(&store, "chat").pop().as_deref(), Some("b"));
    check(&store);
}
