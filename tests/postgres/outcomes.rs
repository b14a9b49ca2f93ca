//! What becomes of calls whose connection ends, whose server ends, or that the server does not get to.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{AppendOptions, Error, ExpectedHead, Store, StoreOptions};

use crate::common::postgres::{Server, schema};
use crate::proxy::{Cut, Proxy};

fn with_key(key: &str) -> AppendOptions {
    AppendOptions::new().with_idempotency_key(key)
}

/// The URL of a store of its own, through a proxy. The proxy finds a call by its text, which is sent once a connection where
/// statements are prepared.
pub(crate) fn through(proxy: &Proxy, server: &Server) -> String {
    server.url().replace(&format!(":{}/", server.port), &format!(":{}/", proxy.port)) + "&prepared=false"
}

#[test]
fn an_append_whose_answer_is_lost_is_answered_once_by_its_key() {
    let Some(server) = crate::running() else { return };
    let proxy = Proxy::start(server.port);
    let store = Store::open(&through(&proxy, server)).unwrap();
    store.append("chat", &[Message::user("first")]).unwrap();
    for (round, cut) in [Cut::Before, Cut::After, Cut::Before, Cut::After].into_iter().enumerate() {
        let key = format!("request {round}");
        let said = [Message::user(format!("once, {round}"))];
        proxy.cut(cut, "cs_append_v1");
        let lost = store.append_with("chat", &said, &with_key(&key));
        assert!(matches!(lost, Err(Error::OutcomeUnknown { .. })), "{cut:?}: {lost:?}");
        // Whatever is expected: a repetition is a repetition.
        let options =
            if cut == Cut::After { with_key(&key).with_expected(ExpectedHead::At(0)) } else { with_key(&key) };
        let receipt = store.append_with("chat", &said, &options).unwrap();
        assert_eq!((receipt.duplicate, receipt.first_seq), (cut == Cut::After, round as u64 + 2));
        let again = store.append_with("chat", &said, &with_key(&key)).unwrap();
        assert_eq!((again.duplicate, again.first_seq), (true, receipt.first_seq));
    }
    assert_eq!(proxy.cuts(), 4);
    assert_eq!(store.load_raw("chat").unwrap().len(), 5);
}

#[test]
fn a_stream_goes_on_over_lost_connections_with_each_part_once() {
    let Some(server) = crate::running() else { return };
    let proxy = Proxy::start(server.port);
    let store = StoreOptions::new().with_window(Duration::from_millis(1)).open(&through(&proxy, server)).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let mut said = String::new();
    for part in 0..40 {
        proxy.cut([Cut::Before, Cut::After][part % 2], "cs_push_v1");
        let text = format!("{part} ");
        writer.push(0, Chunk::text(text.clone())).unwrap();
        said.push_str(&text);
        store.sync().unwrap();
    }
    proxy.cut(Cut::After, "cs_push_v1");
    let receipt = writer.finish(None, None).unwrap();
    assert!(proxy.cuts() > 20, "{} cuts", proxy.cuts());
    assert_eq!(store.load_raw("chat").unwrap()[0].message.chunks, [Chunk::text(said)]);
    assert_eq!(store.describe("chat").unwrap().last_seq, receipt.last_seq);
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

#[test]
fn reads_are_repeated_over_lost_connections() {
    let Some(server) = crate::running() else { return };
    let proxy = Proxy::start(server.port);
    let store = Store::open(&through(&proxy, server)).unwrap();
    store.append("chat", &[Message::user("first")]).unwrap();
    for cut in [Cut::Before, Cut::After] {
        for call in ["FROM cs_record", "FROM cs_conversation"] {
            proxy.cut(cut, call);
            assert_eq!(store.load("chat").unwrap().messages().len(), 1);
        }
    }
    assert_eq!(proxy.cuts(), 4);
}

/// A server of its own ends, now as it is asked to, now as in a crash. What was acknowledged is there, once; what was not is
/// there once after it is repeated with its key.
#[test]
fn nothing_is_lost_or_doubled_when_the_server_is_started_again() {
    if crate::running().is_none() {
        return;
    }
    let mut server = Server::start(&["-c", "fsync=on"]).unwrap();
    let store = Store::open(&server.url()).unwrap();
    let done = AtomicBool::new(false);
    let acknowledged = thread::scope(|scope| {
        let (store, done) = (&store, &done);
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                scope.spawn(move || {
                    let mut said = Vec::new();
                    for at in 0.. {
                        if done.load(Ordering::Relaxed) {
                            break;
                        }
                        let text = format!("{writer}/{at}");
                        let append =
                            || store.append_with(format!("chat {writer}"), &[Message::user(&text)], &with_key(&text));
                        let until = Instant::now() + Duration::from_secs(60);
                        while let Err(error) = append() {
                            assert!(
                                matches!(error, Error::OutcomeUnknown { .. } | Error::Io { .. } | Error::Busy(_)),
                                "{error}"
                            );
                            assert!(Instant::now() < until, "{error}");
                        }
                        said.push(text);
                    }
                    said
                })
            })
            .collect();
        for signal in ["INT", "QUIT", "QUIT"] {
            thread::sleep(Duration::from_millis(500));
            server.restart(signal);
        }
        thread::sleep(Duration::from_millis(300));
        done.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    for (writer, said) in acknowledged.iter().enumerate() {
        let messages = store.load_raw(format!("chat {writer}")).unwrap();
        let stored: Vec<_> = messages.iter().map(|stored| stored.message.chunks.clone()).collect();
        assert_eq!(stored, said.iter().map(|text| vec![Chunk::text(text)]).collect::<Vec<_>>());
        assert!(said.len() > 10, "writer {writer} got no further than {}", said.len());
    }
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

/// Makes appends to the store of a URL fail with a code, for as long as a condition on how often it was tried holds.
fn fail_appends(server: &Server, url: &str, code: &str, condition: &str) {
    let schema = schema(url);
    let types = "bytea, bytea, bytea, bigint, bigint, bytea, bigint, bigint, bytea, smallint, bigint, bytea[], boolean, \
                 bigint, bytea, bytea, bytea[], bigint[], bytea";
    server
        .run(&format!(
            "SET search_path TO {schema}; CREATE SEQUENCE tries; \
             ALTER FUNCTION cs_append_v1 RENAME TO append_really; \
             CREATE FUNCTION cs_append_v1({types}, OUT o_outcome integer, OUT o_first bigint, OUT o_last bigint, \
             OUT o_message bigint, OUT o_messages bigint, OUT o_content bytea, OUT o_incarnation bigint) \
             LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('tries') {condition} THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '{code}'; END IF; \
             SELECT * INTO o_outcome, o_first, o_last, o_message, o_messages, o_content, o_incarnation FROM \
             append_really($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19); \
             END $$"
        ))
        .unwrap();
}

/// Refusals that pass are waited for: the function fails in their way twice, and then does what it does.
#[test]
fn what_others_are_in_the_way_of_is_tried_again() {
    let Some(server) = crate::running() else { return };
    for code in ["40001", "40P01", "55P03"] {
        let url = server.url();
        let store = Store::open(&url).unwrap();
        store.append("chat", &[Message::user("first")]).unwrap();
        fail_appends(server, &url, code, "% 3 <> 0");
        for at in 0..5 {
            store.append("chat", &[Message::user(format!("{at}"))]).unwrap();
        }
        assert_eq!(store.load_raw("chat").unwrap().len(), 6, "{code}");
    }
}

#[test]
fn a_full_disk_is_reported_at_once_and_reads_go_on() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let store = Store::open(&url).unwrap();
    store.append("chat", &[Message::user("first")]).unwrap();
    fail_appends(server, &url, "53100", "= 1");
    let full = store.append("chat", &[Message::user("second")]).unwrap_err();
    assert!(matches!(&full, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull), "{full:?}");
    assert_eq!(store.load_raw("chat").unwrap().len(), 1);
    store.append("chat", &[Message::user("second")]).unwrap();
    assert_eq!(store.load_raw("chat").unwrap().len(), 2);
}

#[test]
fn a_pool_without_a_free_connection_is_busy() {
    let Some(server) = crate::running() else { return };
    let url = server.url() + "&pool=1&timeout_seconds=1";
    let store = Store::open(&url).unwrap();
    store.append("chat", &[Message::user("first")]).unwrap();
    let file = crate::common::tempdir().unwrap();
    let table = format!("{}.cs_key", schema(&url));
    let waiting = format!("SELECT count(*) FROM pg_locks WHERE relation = '{table}'::regclass AND NOT granted");
    thread::scope(|scope| {
        // A backup needs a connection, the only one, and waits for what somebody else has locked.
        let backup = server.with_locked(&table, || {
            let backup = scope.spawn(|| store.backup(file.path().join("backup"), |_, _| ()));
            crate::cluster::until("the backup", || server.value(&waiting).unwrap().as_deref() != Some("0"));
            let refused = store.append("chat", &[Message::user("second")]);
            assert!(matches!(&refused, Err(Error::Busy(said)) if said.contains("all 1 connections")), "{refused:?}");
            backup
        });
        backup.join().unwrap().unwrap();
    });
    // It was not sent.
    assert_eq!(store.load_raw("chat").unwrap().len(), 1);
    store.append("chat", &[Message::user("second")]).unwrap();
}

/// What one process writes, another one reads at once: nothing of a conversation is kept in a process.
#[test]
fn two_stores_that_are_open_at_once_see_one_log() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let stores = [Store::open(&url).unwrap(), Store::open(&url).unwrap()];
    let mut seen = BTreeSet::new();
    for round in 0..20 {
        let (writer, reader) = (&stores[round % 2], &stores[(round + 1) % 2]);
        let receipt = writer.append("chat", &[Message::user(format!("{round}"))]).unwrap();
        assert!(seen.insert(receipt.first_seq));
        assert_eq!(reader.load("chat").unwrap().messages().len(), round + 1);
    }
    stores[0].rewind("chat", 5).unwrap();
    assert_eq!(stores[1].load("chat").unwrap().messages().len(), 5);
    stores[1].delete("chat").unwrap();
    assert!(matches!(stores[0].load("chat"), Err(Error::NotFound { .. })));
}

/// A statement is sent with its text once a connection, where the connection is the server's own.
#[test]
fn statements_are_prepared_without_a_pooler() {
    let Some(server) = crate::running() else { return };
    let proxy = Proxy::start(server.port);
    for (prepared, sent_again) in [("", false), ("&prepared=true", false), ("&prepared=false", true)] {
        let url = through(&proxy, server).replace("&prepared=false", prepared);
        let store = Store::open(&url).unwrap();
        store.append("chat", &[Message::user("first")]).unwrap();
        let cuts = proxy.cuts();
        proxy.cut(Cut::Before, "cs_append_v1");
        assert_eq!(store.append("chat", &[Message::user("second")]).is_err(), sent_again, "{prepared}");
        assert_eq!(proxy.cuts() > cuts, sent_again, "{prepared}");
        proxy.cut(Cut::Before, "");
    }
}
