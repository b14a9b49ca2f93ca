//! Pages of the list that take several statements: they see one moment.

use std::thread::{self, ScopedJoinHandle};

use conversation_store::model::{Message, Name};
use conversation_store::{ListQuery, Store};

use crate::cluster::until;
use crate::common::postgres::schema;
use crate::proxy::{Cut, Proxy};

/// More than one statement reads.
const CONVERSATIONS: usize = 450;
/// Each so many-th has the title that is looked for.
const EVERY: usize = 45;

/// Makes the conversations: gives their names.
fn fill(store: &Store) -> Vec<String> {
    let names: Vec<String> = (0..CONVERSATIONS).map(|number| format!("chat {number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let title = if number % EVERY == 0 { "wanted" } else { "other" };
        store.append(name.as_str(), &[Message::user(title)]).unwrap();
    }
    names
}

fn wanted(store: &Store) -> usize {
    store.list(&ListQuery::new().with_title("wanted")).unwrap().items.len()
}

#[test]
fn what_moves_while_a_title_is_looked_for_is_found_once() {
    const APPENDS: usize = 700;
    let Some(server) = crate::running() else { return };
    let store = Store::open(&server.url()).unwrap();
    let names = fill(&store);
    thread::scope(|threads| {
        let writers: Vec<_> = (0..4)
            .map(|thread| {
                let (store, names) = (&store, &names);
                threads.spawn(move || {
                    for name in names.iter().cycle().skip(thread * 110).take(APPENDS) {
                        store.append(name.as_str(), &[Message::user("again")]).unwrap();
                    }
                })
            })
            .collect();
        while !writers.iter().all(ScopedJoinHandle::is_finished) {
            assert_eq!(wanted(&store), CONVERSATIONS / EVERY);
        }
    });
}

#[test]
fn pages_hold_the_list_in_its_order_whatever_their_length() {
    let Some(server) = crate::running() else { return };
    let store = Store::open(&server.url()).unwrap();
    fill(&store);
    let all = store.list(&ListQuery::new().with_limit(usize::MAX)).unwrap();
    let places: Vec<_> = all.items.iter().map(|item| (item.last_activity, item.id)).collect();
    assert!(places.len() == CONVERSATIONS && places.is_sorted_by(|newer, older| newer > older) && all.next.is_none());
    for limit in [7, 100, CONVERSATIONS - 1, CONVERSATIONS] {
        let (mut query, mut paged) = (ListQuery::new().with_limit(limit), Vec::new());
        loop {
            let page = store.list(&query).unwrap();
            paged.extend(page.items.iter().map(|item| (item.last_activity, item.id)));
            let Some(next) = page.next else { break };
            assert_eq!(page.items.len(), limit);
            query = query.with_after(next);
        }
        assert_eq!(paged, places, "pages of {limit}");
    }
}

#[test]
fn a_long_list_is_read_again_where_its_connection_is_lost() {
    let Some(server) = crate::running() else { return };
    let proxy = Proxy::start(server.port);
    let url = server.url().replace(&format!(":{}/", server.port), &format!(":{}/", proxy.port));
    let store = Store::open(&url).unwrap();
    fill(&store);
    for cut in [Cut::Before, Cut::After] {
        for call in ["ISOLATION LEVEL", "t.last_activity, t.conv_id", "COMMIT"] {
            let cuts = proxy.cuts();
            proxy.cut(cut, call);
            assert_eq!(wanted(&store), CONVERSATIONS / EVERY, "{cut:?} {call}");
            assert_eq!(proxy.cuts(), cuts + 1, "{cut:?} {call}");
        }
    }
}

/// A plan that is kept is for any tags and any owner: it looks through the tags of all owners where no tag is asked for.
#[test]
fn a_page_without_tags_does_not_read_the_index_of_tags() {
    const OWNERS: usize = 30;
    const WRITERS: usize = 8;
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let filled = Store::open(&url).unwrap();
    thread::scope(|threads| {
        for writer in 0..WRITERS {
            let filled = &filled;
            threads.spawn(move || {
                for number in (writer..OWNERS * 100).step_by(WRITERS) {
                    let name = Name::from(format!("chat {number}")).with_owner(format!("owner {}", number % OWNERS));
                    filled.append(name, &[Message::user("one")]).unwrap();
                }
            });
        }
    });
    filled.close().unwrap();
    let schema = schema(&url);
    server.run(&format!("ANALYZE {schema}.cs_conversation")).unwrap();
    let store = Store::open(&format!("{url}&prepared=true&pool=1")).unwrap();
    for number in 0..20 {
        let query = ListQuery::new().with_owner(format!("owner {number}")).with_limit(50);
        assert_eq!(store.list(&query).unwrap().items.len(), 50);
    }
    // The end of a connection gives what it counted.
    store.close().unwrap();
    drop(store);
    let scans = |index: &str| -> u64 {
        let sql = format!(
            "SELECT idx_scan FROM pg_stat_all_indexes WHERE schemaname = '{schema}' AND indexrelname = '{index}'"
        );
        server.value(&sql).unwrap().unwrap().parse().unwrap()
    };
    until("the lists are counted", || scans("cs_conversation_list") >= 20);
    assert_eq!(scans("cs_conversation_tags"), 0);
}
