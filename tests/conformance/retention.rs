//! What is erased because nobody has used it, and what stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use conversation_store::model::{Name, Timestamp};
use conversation_store::{Cursor, Error, ListQuery, Retention, Store, StoreOptions};

use crate::place::Place;
use crate::said::user;

crate::tests![
    a_deletion_at_a_cursor_erases_nothing_that_came_later,
    what_is_idle_is_erased_and_nothing_else,
    what_is_used_meanwhile_stays,
];

const DAY: i64 = 86_400_000_000;

/// A store whose clock shows the day that the counter has.
fn on_days(place: &Place) -> (Store, Arc<AtomicI64>) {
    let day = Arc::new(AtomicI64::new(0));
    let today = Arc::clone(&day);
    let clock = move || Timestamp::from_micros(today.load(Ordering::Relaxed) * DAY);
    (place.store_with(&StoreOptions::new().with_clock(clock)), day)
}

fn listed(store: &Store, owner: &str) -> Vec<String> {
    let page = store.list(&ListQuery::new().with_owner(owner).with_limit(1_000)).unwrap();
    page.items.into_iter().map(|item| item.key.unwrap()).collect()
}

fn a_deletion_at_a_cursor_erases_nothing_that_came_later(place: &Place) {
    let store = place.store();
    let end = |store: &Store| -> Cursor { store.load("chat").unwrap().cursor().unwrap() };
    store.append("chat", &[user("one")]).unwrap();
    let first = end(&store);
    store.append("chat", &[user("two")]).unwrap();
    let stale = store.delete_at("chat", first);
    assert!(matches!(stale, Err(Error::StaleHead { expected: 1, actual: 2, .. })), "{stale:?}");
    assert_eq!(store.load("chat").unwrap().messages().len(), 2);
    let second = end(&store);
    store.delete_at("chat", second).unwrap();
    assert!(matches!(store.delete_at("chat", second), Err(Error::NotFound { .. })));
    // As long as the one that was deleted.
    store.append("chat", &[user("one"), user("two")]).unwrap();
    let stale = store.delete_at("chat", second);
    assert!(matches!(stale, Err(Error::StaleCursor { .. })), "{stale:?}");
    assert_eq!(store.load("chat").unwrap().messages().len(), 2);
    // A number alone is of any conversation of the name.
    store.delete_at("chat", 2).unwrap();
    assert!(matches!(store.load("chat"), Err(Error::NotFound { .. })));
}

fn what_is_idle_is_erased_and_nothing_else(place: &Place) {
    let (store, day) = on_days(place);
    for (today, name) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        day.store(today, Ordering::Relaxed);
        store.append(name, &[user(name)]).unwrap();
        store.append(Name::from(name).with_owner("ada"), &[user(name)]).unwrap();
    }
    store.tag("a", &["work"]).unwrap();
    day.store(3, Ordering::Relaxed);
    let before = |day: i64| Retention::new(Timestamp::from_micros(day * DAY));
    let idle = |retention: &Retention| {
        let mut found = Vec::new();
        assert_eq!(store.idle(retention, |item| found.push(item.key.clone().unwrap())).unwrap(), 0);
        found
    };
    // A tag is an activity.
    assert_eq!(idle(&before(4)), ["c", "b"]);
    assert_eq!(idle(&before(4).with_keep_last(3)), ["b"]);
    assert_eq!(idle(&before(4).with_keep_last(4)), [""; 0]);
    assert_eq!(idle(&before(9).with_tag("work")), ["a"]);
    assert_eq!(idle(&before(9).with_tag("work").with_keep_last(1)), [""; 0]);
    assert_eq!(idle(&before(2).with_owner("ada")), ["a"]);
    let mut erased = Vec::new();
    let pruned = store.prune(&before(3), |item| erased.push(item.key.clone().unwrap())).unwrap();
    assert_eq!((pruned.erased, pruned.used, pruned.unreadable), (1, 0, 0));
    assert_eq!(erased, ["b"]);
    assert!(matches!(store.load("b"), Err(Error::NotFound { .. })));
    assert_eq!(listed(&store, "ada"), ["d", "c", "b", "a"]);
    assert_eq!(listed(&store, "").len(), 3);
}

fn what_is_used_meanwhile_stays(place: &Place) {
    const ALL: usize = 300;
    let (store, day) = on_days(place);
    (0..ALL).for_each(|number| _ = store.append(format!("{number}").as_str(), &[user("hello")]).unwrap());
    day.store(10, Ordering::Relaxed);
    let (mut again, mut gone) = (Vec::new(), 0);
    let pruned = store
        .prune(&Retention::new(Timestamp::from_micros(DAY)), |_| {
            gone += 1;
            // The one that comes last is used while the first is erased, and some on the way.
            if gone % 50 == 1 {
                let last = store.list(&ListQuery::new().with_limit(ALL)).unwrap().items.pop().unwrap();
                store.append(last.id, &[user("again")]).unwrap();
                again.push(last.id);
            }
        })
        .unwrap();
    assert_eq!(pruned.erased as usize + again.len(), ALL);
    for id in again {
        assert_eq!(store.load(id).unwrap().messages().len(), 2);
    }
}
