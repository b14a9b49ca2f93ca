//! Appends that share a call: there is one call, and each has its own answer, whatever becomes of the others.

use std::thread::{Scope, ScopedJoinHandle, scope};
use std::time::{Duration, Instant};

use super::*;
use crate::history::Cursor;
use crate::log::{AppendOptions, Changes, Log, Opening, Order, Reading, Receipt};
use crate::model::{Message, Name, Timestamp};
use crate::postgres::Postgres;
use crate::postgres::tests::postgres::{Server, schema, server};
use crate::postgres::tests::proxy::{Cut, Proxy};

/// An append: to which conversation, what it says, and how.
type Append = (&'static str, &'static str, AppendOptions);

fn running() -> Option<&'static Server> {
    server().map_err(|reason| println!("skipped: {reason}")).ok()
}

fn plain() -> AppendOptions {
    AppendOptions::new()
}

fn with_key(key: &str) -> AppendOptions {
    AppendOptions::new().with_idempotency_key(key)
}

fn expecting(seq: u64) -> AppendOptions {
    AppendOptions::new().with_expected(ExpectedHead::At(seq))
}

fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A store of its own, whose server counts the calls of functions.
fn url(server: &Server) -> String {
    server.url().replace("options=-c", "options=-ctrack_functions%3Dpl%20-c")
}

fn open(url: &str) -> Postgres {
    let clock = std::sync::Arc::new(Timestamp::now);
    Postgres::open(url, clock, Duration::ZERO, Opening::default(), true).unwrap()
}

fn append(log: &Postgres, (chat, text, options): &Append) -> Result<Receipt> {
    Log::append(log, &Name::from(*chat), &[Message::user(*text)], &Changes::new(), options)
}

/// Makes conversations of one message each.
fn begin(log: &Postgres, chats: &[&'static str]) {
    for chat in chats {
        assert_eq!(append(log, &(chat, "first", plain())).unwrap().first_seq, 1);
    }
}

/// Makes appends wait in this order, as they do while calls are under way, and then begins a call.
fn together<'scope>(
    scope: &'scope Scope<'scope, '_>,
    log: &'scope Postgres,
    appends: &'scope [Append],
) -> Vec<ScopedJoinHandle<'scope, Result<Receipt>>> {
    let gathering = &log.gathering;
    // Who is answered knows before the call has ended.
    until("no call is under way", || locked(&gathering.state).calls == 0);
    locked(&gathering.state).calls = gathering.most_calls;
    let waiting = (1..).zip(appends).map(|(count, appending)| {
        let thread = scope.spawn(move || append(log, appending));
        until("it waits", || locked(&gathering.state).waiting.len() == count);
        thread
    });
    let waiting = waiting.collect();
    let _within = log.database.handle().unwrap().enter();
    gathering.begin(gathering.most_calls);
    waiting
}

fn answers(log: &Postgres, appends: &[Append]) -> Vec<Result<Receipt>> {
    scope(|scope| together(scope, log, appends).into_iter().map(|thread| thread.join().unwrap()).collect())
}

/// The seqs of a conversation's records.
fn records(log: &Postgres, chat: &str) -> Vec<u64> {
    let view = log.view(&Name::from(chat)).unwrap().unwrap();
    let mut seqs = Vec::new();
    log.read(&view, 1..=u64::MAX, Order::Ascending, &mut |reading| {
        let Reading::Record { record, .. } = reading else { panic!("{reading:?}") };
        seqs.push(record.first_seq);
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(log.verify(&mut |_, _| ()).unwrap().problems, []);
    seqs
}

/// How often functions were called: for one append, and for several. Connections count when they end.
fn assert_calls(server: &Server, url: &str, log: Postgres, wanted: (u64, u64)) {
    drop(log);
    let calls = |function: &str| {
        let sql = format!(
            "SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions WHERE schemaname = '{}' AND funcname = '{function}'",
            schema(url)
        );
        server.value(&sql).unwrap().unwrap().parse::<u64>().unwrap()
    };
    let found = || (calls("cs_append_v1"), calls("cs_append_many_v1"));
    until("the calls are counted", || found() >= wanted);
    assert_eq!(found(), wanted);
}

#[test]
fn appends_that_wait_share_one_call() {
    const CHATS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let Some(server) = running() else { return };
    let url = url(server);
    let log = open(&url);
    begin(&log, &CHATS);
    // Several of one conversation follow one another, and see one another.
    let mut appends: Vec<Append> = CHATS.iter().map(|chat| (*chat, "second", plain())).collect();
    appends.extend([("a", "third", expecting(2)), ("a", "fourth", plain()), ("b", "third", with_key("key"))]);
    let found: Vec<_> = answers(&log, &appends).into_iter().map(|answer| answer.unwrap()).collect();
    let places: Vec<_> = found.iter().map(|receipt| (receipt.first_seq, receipt.message_indexes[0])).collect();
    assert_eq!(places, [(2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (3, 2), (4, 3), (3, 2)]);
    for (chat, records_of) in [("a", 4), ("b", 3), ("f", 2)] {
        assert!(records(&log, chat).into_iter().eq(1..=records_of), "{chat}");
    }
    assert_calls(server, &url, log, (CHATS.len() as u64, 1));
}

#[test]
fn each_append_of_a_call_has_its_own_answer() {
    let Some(server) = running() else { return };
    let url = url(server);
    let log = open(&url);
    begin(&log, &["plain", "stale", "kept", "used", "reused", "twice"]);
    append(&log, &("used", "said", with_key("key"))).unwrap();
    append(&log, &("reused", "said", with_key("key"))).unwrap();
    log.fork(&Name::from("kept"), crate::log::ForkAt { seq: None, time: None }, &Name::from("fork")).unwrap();
    log.delete(&Name::from("kept"), None).unwrap();
    let of_another = Cursor { seq: 2, incarnation: Some(7) };
    let appends = [
        ("plain", "second", plain()),
        ("stale", "second", expecting(0)),
        ("kept", "second", plain()),
        ("used", "said", with_key("key")),
        ("reused", "other", with_key("key")),
        ("new", "first", plain()),
        ("twice", "once", with_key("key")),
        ("twice", "once", with_key("key")),
        ("plain", "third", plain().with_expected(ExpectedHead::AtCursor(of_another))),
        ("stale", "second", expecting(1)),
    ];
    let found = answers(&log, &appends);
    let places: Vec<_> =
        found.iter().map(|answer| answer.as_ref().ok().map(|it| (it.first_seq, it.duplicate))).collect();
    let (new, old) = (|seq| Some((seq, false)), |seq| Some((seq, true)));
    assert_eq!(places, [new(2), None, None, old(2), None, new(1), new(2), old(2), None, new(2)]);
    assert!(matches!(found[1], Err(Error::StaleHead { expected: 0, actual: 1 | 2, .. })), "{:?}", found[1]);
    assert!(matches!(found[2], Err(Error::SharedByForks { .. })), "{:?}", found[2]);
    assert!(matches!(found[4], Err(Error::KeyReused { .. })), "{:?}", found[4]);
    assert!(matches!(found[8], Err(Error::StaleCursor { .. })), "{:?}", found[8]);
    for (chat, records_of) in [("plain", 2), ("stale", 2), ("used", 2), ("reused", 2), ("new", 1), ("twice", 2)] {
        assert!(records(&log, chat).into_iter().eq(1..=records_of), "{chat}");
    }
}

/// Somebody holds the lock of one conversation until all others have their answers.
#[test]
fn a_conversation_that_is_locked_keeps_no_other_one_waiting() {
    let Some(server) = running() else { return };
    let url = url(server);
    let log = open(&url);
    begin(&log, &["a", "locked", "b"]);
    let appends = ["a", "locked", "b"].map(|chat| (chat, "second", plain()));
    scope(|scope| {
        let lock = format!("SELECT FROM {}.cs_conversation WHERE key = 'locked' FOR UPDATE", schema(&url));
        let waits = server.within(&lock, || {
            let mut waiting = together(scope, &log, &appends);
            let waits = waiting.remove(1);
            for done in waiting {
                assert_eq!(done.join().unwrap().unwrap().first_seq, 2);
            }
            assert!(!waits.is_finished());
            waits
        });
        assert_eq!(waits.join().unwrap().unwrap().first_seq, 2);
    });
    assert_calls(server, &url, log, (4, 1));
}

/// What the server refuses for one of them undoes the call. Each is sent by itself then.
#[test]
fn an_error_of_one_append_is_none_of_the_others() {
    let Some(server) = running() else { return };
    let url = url(server);
    let log = open(&url);
    begin(&log, &["a", "full", "b"]);
    let full = format!("'\\x{:032x}'", u128::from_be_bytes(*Name::from("full").id().as_bytes()));
    server
        .run(&format!(
            "SET search_path TO {}; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$; CREATE TRIGGER refuse BEFORE INSERT ON cs_record \
             FOR EACH ROW WHEN (NEW.conv_id = {full}) EXECUTE FUNCTION refuse()",
            schema(&url)
        ))
        .unwrap();
    let found = answers(&log, &["a", "full", "b"].map(|chat| (chat, "second", plain())));
    assert!(matches!(&found[1], Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::StorageFull));
    for (chat, answer) in [("a", &found[0]), ("b", &found[2])] {
        assert_eq!((answer.as_ref().unwrap().first_seq, records(&log, chat)), (2, vec![1, 2]));
    }
    assert_eq!(records(&log, "full"), [1]);
}

/// Repeats each append with its key. `were_written`: whether the call that they shared was.
fn repeat(log: &Postgres, appends: &[Append], found: Vec<Result<Receipt>>, were_written: bool) {
    for (appending, answer) in appends.iter().zip(found) {
        assert!(matches!(answer, Err(Error::OutcomeUnknown { .. })), "{answer:?}");
        let receipt = append(log, appending).unwrap();
        assert_eq!((receipt.first_seq, receipt.duplicate), (2, were_written));
        assert_eq!(records(log, appending.0), [1, 2]);
    }
}

#[test]
fn appends_whose_connection_ends_are_repeated_with_their_keys() {
    let Some(server) = running() else { return };
    let url = url(server);
    let log = open(&url);
    begin(&log, &["a", "b", "c"]);
    let appends = ["a", "b", "c"].map(|chat| (chat, "second", with_key(chat)));
    // The process of the server ends in the middle of the call, which waits for a lock of the table.
    let found = server.with_locked(&format!("{}.cs_record", schema(&url)), || {
        scope(|scope| {
            let waiting = together(scope, &log, &appends);
            let ended = format!(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE relation = '{}.cs_record'::regclass AND NOT granted",
                schema(&url)
            );
            until("the call waits", || server.value(&ended).unwrap().as_deref() == Some("1"));
            waiting.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    });
    repeat(&log, &appends, found, false);
}

#[test]
fn appends_whose_answer_is_lost_are_stored_once() {
    let Some(server) = running() else { return };
    let proxy = Proxy::start(server.port);
    // What is prepared is sent without its text.
    let url = url(server).replace(&format!(":{}/", server.port), &format!(":{}/", proxy.port)) + "&prepared=false";
    let appends = ["a", "b", "c"].map(|chat| (chat, "second", with_key(chat)));
    let log = open(&url);
    begin(&log, &["a", "b", "c"]);
    proxy.cut(Cut::After, "cs_append_many_v1");
    let found = answers(&log, &appends);
    assert_eq!(proxy.cuts(), 1);
    repeat(&log, &appends, found, true);
}

/// The answer of an append that was not sent says so: it may be repeated without a key.
#[test]
fn an_append_that_waits_too_long_is_not_sent() {
    let Some(server) = running() else { return };
    let log = open(&(url(server) + "&timeout_seconds=1"));
    begin(&log, &["a"]);
    locked(&log.gathering.state).written.insert(Name::from("a").id());
    let late = append(&log, &("a", "second", plain()));
    assert!(matches!(late, Err(Error::Busy(_))), "{late:?}");
    locked(&log.gathering.state).written.clear();
    assert_eq!(append(&log, &("a", "second", plain())).unwrap().first_seq, 2);
}
