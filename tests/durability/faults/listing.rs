//! The list: its order, its pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use conversation_store::model::Timestamp;
use conversation_store::{ListQuery, StoreOptions};

use crate::faults::{listed, user};

// 14

#[test]
fn the_newest_activity_is_first_within_a_minute_too() {
    const CONVERSATIONS: usize = 12;
    let now = Arc::new(AtomicI64::new(1_800_000_000_000_000));
    let clock = Arc::clone(&now);
    let clock = move || Timestamp::from_micros(clock.fetch_add(1000, Ordering::Relaxed));
    let store = StoreOptions::new().with_clock(clock).open("memory:").unwrap();
    let names: Vec<String> = (0..CONVERSATIONS).map(|at| format!("s{at}")).collect();
    names.iter().for_each(|name| {
        user(&store, name, "hello").unwrap();
    });
    let newest_first: Vec<String> = names.iter().rev().cloned().collect();
    assert_eq!(listed(&store), newest_first);
}

// 34

#[test]
fn an_empty_page_is_not_the_last_one() {
    let store = StoreOptions::new().open("memory:").unwrap();
    user(&store, "chat", "hello").unwrap();
    let page = store.list(&ListQuery::new().with_limit(0));
    assert!(page.is_err() || page.as_ref().unwrap().next.is_some(), "{page:?}");
}
