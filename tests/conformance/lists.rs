//! Which conversations there are, and whose.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::ScopedJoinHandle;

use conversation_store::model::{ConversationId, Json, Message, Name, StartedBy, Timestamp};
use conversation_store::{AppendOptions, Changes, ListCursor, ListItem, ListQuery, ListSort, StoreOptions};

use crate::place::Place;
use crate::said::user;

crate::tests![
    the_list_is_exact_within_a_second,
    a_list_has_each_conversation_once_while_some_of_them_move,
    the_list_is_by_activity_and_in_pages,
    a_title_is_the_first_user_text_or_the_callers,
    a_sub_agents_conversation_is_found_by_what_started_it,
    filters_and_orders_give_what_they_say,
    the_forks_of_a_conversation_are_listed,
];

/// Each query, page by page, has what a look at all conversations gives.
fn filters_and_orders_give_what_they_say(place: &Place) {
    const COUNT: i64 = 36;
    let clock = Arc::new(AtomicI64::new(0));
    let time = Arc::clone(&clock);
    let store =
        place.store_with(&StoreOptions::new().with_clock(move || Timestamp::from_micros(time.load(Ordering::Relaxed))));
    // Times that many share, times within a second of each other, and conversations that move later.
    let ids: Vec<_> = (0..COUNT).map(|_| ConversationId::new()).collect();
    let name = |at: i64| match at % 3 {
        0 => Name::from(format!("app:{at}")),
        1 => Name::from(format!("App:{at}")),
        _ => Name::from(ids[usize::try_from(at).unwrap()]),
    };
    for at in 0..COUNT {
        clock.store(90_000_000 + at / 4 * 700_000, Ordering::Relaxed);
        let mut changes =
            Changes::new().with_metadata(Json::new(format!("{{\"n\":{},\"who\":\"é{}\"}}", at % 4, at % 2)).unwrap());
        if at % 5 == 0 {
            changes = changes.with_tag("five");
        }
        store.append_changing(name(at), &[user("hello")], &changes, &AppendOptions::new()).unwrap();
    }
    for at in (0..COUNT).step_by(7) {
        clock.fetch_add(400_000, Ordering::Relaxed);
        store.append(name(at), &[user("more")]).unwrap();
    }
    let all = store.list(&ListQuery::new().with_limit(1_000)).unwrap().items;
    assert_eq!(all.len(), usize::try_from(COUNT).unwrap());
    let micros = |item: &ListItem| item.last_activity.as_micros();
    let (early, late) = (Timestamp::from_micros(91_400_000), Timestamp::from_micros(95_600_000));
    let number = |item: &ListItem| (0..COUNT).find(|at| name(*at).id() == item.id).unwrap();
    type Wanted<'a> = Box<dyn Fn(&ListItem) -> bool + 'a>;
    let filters: Vec<(ListQuery, Wanted<'_>)> = vec![
        (ListQuery::new(), Box::new(|_| true)),
        (
            ListQuery::new().with_key_prefix("app:"),
            Box::new(|item| item.key.as_ref().is_some_and(|key| key.starts_with("app:"))),
        ),
        (
            ListQuery::new().with_key_prefix("app:3").with_tag("five"),
            Box::new(|item| item.key.as_ref().is_some_and(|key| key.starts_with("app:3")) && !item.tags.is_empty()),
        ),
        (ListQuery::new().with_since(early), Box::new(|item| item.last_activity >= early)),
        (ListQuery::new().with_until(late), Box::new(|item| item.last_activity < late)),
        (
            ListQuery::new().with_since(early).with_until(late),
            Box::new(|item| (early..late).contains(&item.last_activity)),
        ),
        (ListQuery::new().with_since(late).with_until(early), Box::new(|_| false)),
        (ListQuery::new().with_metadata("n", "3"), Box::new(|item| number(item) % 4 == 3)),
        (ListQuery::new().with_metadata("who", "é1").with_metadata("n", "1"), Box::new(|item| number(item) % 4 == 1)),
        (ListQuery::new().with_metadata("other", "é1"), Box::new(|_| false)),
    ];
    for sort in ListSort::ALL {
        let mut sorted: Vec<&ListItem> = all.iter().collect();
        match sort {
            ListSort::Oldest => sorted.sort_by_key(|item| (micros(item), item.id)),
            ListSort::Created => sorted.sort_by_key(|item| std::cmp::Reverse((item.created_at, item.id))),
            _ => sorted.sort_by_key(|item| std::cmp::Reverse((micros(item), item.id))),
        }
        for (at, (query, is_wanted)) in filters.iter().enumerate() {
            let expected: Vec<_> = sorted.iter().filter(|item| is_wanted(item)).map(|item| item.id).collect();
            for limit in [1, 5, 100] {
                let mut query = query.clone().with_sort(sort).with_limit(limit);
                let mut found = Vec::new();
                loop {
                    let page = store.list(&query).unwrap();
                    assert!(page.items.len() <= limit);
                    found.extend(page.items.into_iter().map(|item| item.id));
                    let Some(next) = page.next else { break };
                    query = query.with_after(next.to_string().parse::<ListCursor>().unwrap());
                }
                assert_eq!(found, expected, "{sort} {at} {limit}");
            }
        }
    }
}

fn the_forks_of_a_conversation_are_listed(place: &Place) {
    let store = place.store();
    for name in ["chat", "other"] {
        store.append(name, &[user("hello"), user("are you there?")]).unwrap();
    }
    for (parent, at_seq, child) in [("chat", None, "all"), ("chat", Some(1), "first"), ("other", None, "of other")] {
        store.fork_to(parent, at_seq, child).unwrap();
    }
    // What shares nothing that its parent has alone is a fork of the parent's parent.
    store.append("all", &[user("yes")]).unwrap();
    store.fork_to("all", None, "grandchild").unwrap();
    let forks = |parent: &str, limit: usize| {
        let parent = store.describe(parent).unwrap().id;
        let mut query = ListQuery::new().with_forked_from(parent).with_limit(limit);
        let mut found = BTreeSet::new();
        loop {
            let page = store.list(&query).unwrap();
            for item in page.items {
                assert_eq!(item.parent.unwrap().conversation, parent);
                assert!(found.insert(item.key.unwrap()));
            }
            let Some(next) = page.next else { return found };
            query = query.with_after(next);
        }
    };
    let set = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<BTreeSet<_>>();
    for limit in [1, 10] {
        assert_eq!(forks("chat", limit), set(&["all", "first"]));
        assert_eq!(forks("all", limit), set(&["grandchild"]));
        assert_eq!(forks("grandchild", limit), set(&[]));
    }
    store.delete("first").unwrap();
    store.tag("all", &["kept"]).unwrap();
    assert_eq!(forks("chat", 10), set(&["all"]));
    let chat = store.describe("chat").unwrap().id;
    let tagged = |tag: &str| store.list(&ListQuery::new().with_forked_from(chat).with_tag(tag)).unwrap().items.len();
    assert_eq!((tagged("kept"), tagged("gone")), (1, 0));
    let others = ListQuery::new().with_owner("ada").with_forked_from(chat);
    assert_eq!(store.list(&others).unwrap().items, []);
}

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

fn a_list_has_each_conversation_once_while_some_of_them_move(place: &Place) {
    // With so many, a page by a tag is looked for in the list.
    const STILL: usize = 210;
    const MOVING: usize = 40;
    const APPENDS: usize = 400;
    let store = place.store();
    let names: Vec<String> = (0..STILL + MOVING).map(|number| format!("chat {number}")).collect();
    let tag = Changes::new().with_tag("all");
    let options = AppendOptions::new();
    names.iter().for_each(|name| _ = store.append_changing(name.as_str(), &[user("hello")], &tag, &options).unwrap());
    let (_, moving) = names.split_at(STILL);
    std::thread::scope(|threads| {
        let writers: Vec<_> = (0..4)
            .map(|thread| {
                let store = &store;
                threads.spawn(move || {
                    for name in moving.iter().cycle().skip(thread * 10).step_by(3).take(APPENDS) {
                        store.append(name.as_str(), &[user("again")]).unwrap();
                    }
                })
            })
            .collect();
        while !writers.iter().all(ScopedJoinHandle::is_finished) {
            let all = ListQuery::new().with_limit(1_000);
            let by_tag = ListQuery::new().with_tag("all").with_limit(MOVING + 20);
            for (query, count) in [(all, names.len()), (by_tag, MOVING + 20)] {
                let (mut keys, mut times) = (BTreeSet::new(), Vec::new());
                for item in store.list(&query).unwrap().items {
                    times.push((item.last_activity, item.id));
                    assert!(keys.insert(item.key.unwrap()), "one is there twice");
                }
                assert_eq!(keys.len(), count);
                assert!(moving.iter().all(|name| keys.contains(name)), "one that moves is missed");
                assert!(times.is_sorted_by(|newer, older| newer > older));
            }
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
