//! Settings of a server, a role or a database that do not go with what a store promises.

use std::time::{Duration, Instant};

use conversation_store::Store;
use conversation_store::model::Message;

use crate::common::postgres::{Server, schema};

fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn set(server: &Server, setting: &str) {
    server.run(&format!("ALTER SYSTEM {setting}")).unwrap();
    server.run("SELECT pg_reload_conf()").unwrap();
}

/// A deletion looks for forks once it has the lock of the parent: at another level it sees what was there before it waited.
#[test]
fn a_fork_that_waits_for_replicas_keeps_its_entries_at_any_default_level() {
    if crate::running().is_none() {
        return;
    }
    for level in ["repeatable read", "serializable"] {
        let server = Server::start(&["-c", &format!("default_transaction_isolation={level}")]).unwrap();
        let url = server.url();
        let stores = [Store::open(&url).unwrap(), Store::open(&url).unwrap()];
        let said = [Message::user("kept by the fork")];
        stores[0].append("parent", &said).unwrap();
        let waiting = |kind: &str| {
            let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE {kind}");
            server.value(&sql).unwrap().unwrap().parse::<usize>().unwrap()
        };
        let for_replicas = || waiting("wait_event = 'SyncRep'");
        set(&server, "SET synchronous_standby_names = 'nobody'");
        std::thread::scope(|scope| {
            // A server takes such a setting when one of its processes comes to it: the first write that waits shows that it has.
            for number in 0.. {
                let server = &server;
                let write = scope.spawn(move || server.run(&format!("CREATE TABLE write_{number} ()")));
                until("a write ends or waits", || write.is_finished() || for_replicas() > 0);
                if !write.is_finished() {
                    break;
                }
            }
            let fork = scope.spawn(|| stores[0].fork_to("parent", None, "child"));
            until("the fork waits for its replica", || for_replicas() > 1);
            let delete = scope.spawn(|| stores[1].delete("parent"));
            until("the deletion waits for the fork", || waiting("wait_event_type = 'Lock'") > 0);
            set(&server, "RESET synchronous_standby_names");
            fork.join().unwrap().unwrap();
            delete.join().unwrap().unwrap();
        });
        let kept: Vec<Message> =
            stores[0].load_raw("child").unwrap().into_iter().map(|stored| stored.message).collect();
        assert_eq!(kept[0].chunks, said[0].chunks, "{level}");
    }
}

/// Whatever set the level, a pooler or a person: nothing is written at another one.
#[test]
fn no_commit_has_a_number_at_another_level() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    Store::open(&url).unwrap();
    let commit = |level: &str| {
        let (schema, sql) = (schema(&url), "SELECT cs_commit_v1(0)");
        server.run(&format!("SET search_path = {schema}; BEGIN ISOLATION LEVEL {level}; {sql}; COMMIT"))
    };
    commit("READ COMMITTED").unwrap();
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let refused = commit(level).unwrap_err();
        let said = refused.as_db_error().unwrap().message();
        assert!(said.contains("READ COMMITTED") && said.contains(level), "{said}");
    }
}

#[test]
fn settings_that_change_later_are_warned_of() {
    if crate::running().is_none() {
        return;
    }
    let server = Server::start(&[]).unwrap();
    let store = Store::open(&(server.url() + "&lease_seconds=1")).unwrap();
    let warns = |of: &str| store.health().warnings.iter().any(|warning| warning.contains(of));
    for (setting, value) in [("synchronous_commit", "off"), ("full_page_writes", "off")] {
        assert!(!warns(setting));
        set(&server, &format!("SET {setting} = {value}"));
        until(setting, || warns(setting));
        set(&server, &format!("RESET {setting}"));
        until(setting, || !warns(setting));
    }
}

#[test]
fn functions_of_another_build_are_warned_of_until_they_are_replaced() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let warnings = || Store::open(&url).unwrap().health().warnings;
    let before = warnings();
    server.run(&format!("COMMENT ON TABLE {}.cs_schema IS 'functions 7'", schema(&url))).unwrap();
    assert!(warnings().iter().any(|warning| warning.contains("convo migrate")));
    Store::migrate(&url).unwrap();
    assert_eq!(warnings(), before);
}

/// A call that has no answer in time keeps its connection: the server is still at it.
#[test]
fn a_stalled_server_has_no_more_connections_than_a_pool_may_have() {
    if crate::running().is_none() {
        return;
    }
    let server = Server::start(&[]).unwrap();
    let store = Store::open(&(server.url() + "&pool=3&timeout_seconds=1")).unwrap();
    store.append("chat", &[Message::user("first")]).unwrap();
    set(&server, "SET synchronous_standby_names = 'nobody'");
    // Of connections that are there, each takes the setting when it next looks.
    let append = |at: usize| store.append(format!("chat-{at}"), &[Message::user("without an answer")]);
    let first = (0..100_000).find(|at| append(*at).is_err()).unwrap();
    for at in first + 1..first + 6 {
        append(at).unwrap_err();
    }
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'conversation-store'";
    let count: u32 = server.value(count).unwrap().unwrap().parse().unwrap();
    // One more is for leases.
    assert!((3..=4).contains(&count), "{count}");
    set(&server, "RESET synchronous_standby_names");
    until("the connections are free", || store.append("chat", &[Message::user("second")]).is_ok());
    assert_eq!(store.load_raw("chat").unwrap().len(), 2);
}
