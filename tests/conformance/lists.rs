//! Which conversations there are, and whose.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::ScopedJoinHandle;

use conversation_store::model::{Message, Name, StartedBy, Timestamp};
use conversation_store::{ListCursor, ListQuery, StoreOptions};

use crate::place::Place;
use crate::said::user;

crate::tests![
    the_list_is_exact_within_a_second,
    a_list_has_each_conversation_once_while_all_of_them_move,
    the_list_is_by_activity_and_in_pages,
    a_title_is_the_first_user_text_or_the_callers,
    a_sub_agents_conversation_is_found_by_what_started_it,
];

fn a_sub_agents_conversation_is_found_by_what_started_it(place: &Place) {
    let store = place.store();
    for name in ["chat", "one", "two", "other"] {
        store.append(name, &[user("hello")]).unwrap();
    }
    let chat = StartedBy::from(store.describe("chat").unwrap().id);
    let of = |message, call: &str| StartedBy { message: Some(message), call: Some(call.to_owned()), ..chat.clone() };
    let links = [("one", of(1, "call_1")), ("two", of(1, "call/2"))];
    for (name, link) in &links {
        store.set_started_by(*name, link).unwrap();
        assert_eq!(store.describe(*name).unwrap().started_by().as_ref(), Some(link));
    }
    let found = |link: &StartedBy| {
        let mut found: Vec<String> = store
            .list(&ListQuery::new().with_tag(link.to_string()))
            .unwrap()
            .items
            .into_iter()
            .filter_map(|item| item.key)
            .collect();
        found.sort();
        found
    };
    assert_eq!(found(&chat), ["one", "two"]);
    assert_eq!(found(&StartedBy { message: Some(1), ..chat.clone() }), ["one", "two"]);
    assert_eq!(found(&of(1, "call/2")), ["two"]);
    assert_eq!(found(&of(2, "call/2")), [""; 0]);
    assert_eq!(store.describe("other").unwrap().started_by(), None);
}

fn the_list_is_by_activity_and_in_pages(place: &Place) {
    const MINUTE: i64 = 60_000_000;
    let clock = Arc::new(AtomicI64::new(1_000 * MINUTE));
    let time = Arc::clone(&clock);
    let clock_of_store = move || Timestamp::from_micros(time.load(Ordering::Relaxed));
    let store = place.store_with(&StoreOptions::new().with_clock(clock_of_store));
    let at = |minute: i64, name: &str| {
        clock.store(minute * MINUTE, Ordering::Relaxed);
        store.append(name, &[user(name)]).unwrap();
    };
    for (minute, name) in [(1_000, "a"), (1_001, "b"), (1_002, "c"), (1_002, "d"), (1_003, "e"), (1_004, "b")] {
        at(minute, name);
    }
    // The clock goes back: activity does not.
    at(900, "e");
    let keys = |query: &ListQuery| -> Vec<String> {
        store.list(query).unwrap().items.into_iter().map(|item| item.key.unwrap()).collect()
    };
    let mut same_minute = ["c", "d"];
    same_minute.sort_by_key(|name| std::cmp::Reverse(Name::from(*name).id()));
    let expected = ["b", "e", same_minute[0], same_minute[1], "a"];
    assert_eq!(keys(&ListQuery::new()), expected);
    // Page by page, with the cursor as text.
    for limit in 1..=5 {
        let (mut found, mut query, mut pages) = (Vec::new(), ListQuery::new().with_limit(limit), 0);
        loop {
            let page = store.list(&query).unwrap();
            assert!(page.items.len() <= limit);
            found.extend(page.items.into_iter().map(|item| item.key.unwrap()));
            pages += 1;
            let Some(next) = page.next else { break };
            query = query.with_after(next.to_string().parse::<ListCursor>().unwrap());
        }
        assert_eq!((found.as_slice(), pages), (expected.map(str::to_owned).as_slice(), 5_usize.div_ceil(limit)));
    }
    assert!("yesterday".parse::<ListCursor>().is_err());
    let item = store.describe("e").unwrap();
    assert_eq!(item.last_activity, Timestamp::from_micros(1_003 * MINUTE));
    assert_eq!((item.created_at, item.last_seq, item.messages), (item.last_activity, 2, 2));
    assert_eq!(keys(&ListQuery::new().with_title("C")), ["c"]);
    store.delete("b").unwrap();
    assert_eq!(keys(&ListQuery::new()), expected[1..]);
}

fn a_title_is_the_first_user_text_or_the_callers(place: &Place) {
    let store = place.store();
    let title = |name: &str| store.describe(name).unwrap().title;
    store.append("chat", &[Message::system("Be kind."), user("  What is\nthis?  ")]).unwrap();
    assert_eq!(title("chat").as_deref(), Some("What is"));
    store.set_title("chat", Some("mine")).unwrap();
    store.append("chat", &[user("more")]).unwrap();
    assert_eq!(title("chat").as_deref(), Some("mine"));
    store.set_title("chat", None).unwrap();
    assert_eq!(title("chat").as_deref(), Some("What is"));
    store.rewind("chat", 1).unwrap();
    assert_eq!(title("chat"), None);
    store.append("chat", &[user(&"é".repeat(200))]).unwrap();
    assert_eq!(title("chat"), Some(format!("{}…", "é".repeat(80))));
}

fn a_list_has_each_conversation_once_while_all_of_them_move(place: &Place) {
    const CONVERSATIONS: usize = 40;
    const APPENDS: usize = 400;
    let store = place.store();
    let names: Vec<String> = (0..CONVERSATIONS).map(|number| format!("chat {number}")).collect();
    names.iter().for_each(|name| _ = store.append(name.as_str(), &[user("hello")]).unwrap());
    std::thread::scope(|threads| {
        let writers: Vec<_> = (0..4)
            .map(|thread| {
                let (store, names) = (&store, &names);
                threads.spawn(move || {
                    for name in names.iter().cycle().skip(thread * 10).step_by(3).take(APPENDS) {
                        store.append(name.as_str(), &[user("again")]).unwrap();
                    }
                })
            })
            .collect();
        while !writers.iter().all(ScopedJoinHandle::is_finished) {
            let (mut keys, mut times) = (BTreeSet::new(), Vec::new());
            for item in store.list(&ListQuery::new()).unwrap().items {
                times.push((item.last_activity, item.id));
                assert!(keys.insert(item.key), "one is there twice");
            }
            assert_eq!(keys.len(), CONVERSATIONS);
            assert!(times.is_sorted_by(|newer, older| newer > older));
        }
    });
}

fn the_list_is_exact_within_a_second(place: &Place) {
    let clock = Arc::new(AtomicI64::new(0));
    let time = Arc::clone(&clock);
    let options = StoreOptions::new().with_clock(move || Timestamp::from_micros(time.load(Ordering::Relaxed)));
    let store = place.store_with(&options);
    for (micros, name) in [(3_000_500, "a"), (3_000_002, "b"), (3_999_999, "c"), (3_000_501, "d"), (4_000_000, "e")] {
        clock.store(micros, Ordering::Relaxed);
        store.append(name, &[user(name)]).unwrap();
    }
    let keys = |query: &ListQuery| -> Vec<String> {
        store.list(query).unwrap().items.into_iter().map(|item| item.key.unwrap()).collect()
    };
    assert_eq!(keys(&ListQuery::new()), ["e", "c", "d", "a", "b"]);
    let first = store.list(&ListQuery::new().with_limit(3)).unwrap();
    assert_eq!(keys(&ListQuery::new().with_after(first.next.unwrap())), ["a", "b"]);
    // A conversation moves within its second.
    clock.store(3_000_700, Ordering::Relaxed);
    store.append("b", &[user("again")]).unwrap();
    assert_eq!(keys(&ListQuery::new()), ["e", "c", "b", "d", "a"]);
}
