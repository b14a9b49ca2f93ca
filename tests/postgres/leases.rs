//! A streamed message belongs to the process that holds a lease, in the time of the database.

use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, FinishReason, Message, Metadata, Name, Role};
use conversation_store::{EntryKind, Error, Interruption, MessageState, Store, StoreOptions};

use crate::common::postgres::{Server, schema};
use crate::outcomes::through;
use crate::process::{Process, say, wait};
use crate::proxy::{Cut, Proxy};

/// The shortest lease there is.
const LEASE: &str = "&lease_seconds=1";

/// Streams an answer, word by word, until it is refused. What becomes of it is printed.
pub(crate) fn stream(arguments: &[&str]) {
    let store = Store::open(arguments[0]).unwrap();
    let name = arguments.get(1).copied().unwrap_or("chat");
    let mut writer = store.begin(name, Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("before ")).unwrap();
    store.sync().unwrap();
    say("begun");
    wait();
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        match writer
            .push(0, Chunk::text("late "))
            .and_then(|()| store.sync())
            .and_then(|()| writer.push(0, Chunk::text(".")))
        {
            Ok(()) => thread::sleep(Duration::from_millis(20)),
            Err(Error::MessageClosed { .. }) => return say("refused"),
            Err(error) => return say(error),
        }
    }
    say("never refused");
}

fn state(store: &Store, message: usize) -> MessageState {
    store.load_raw("chat").unwrap()[message].state
}

fn text(store: &Store, message: usize) -> Vec<Chunk> {
    store.load_raw("chat").unwrap()[message].message.chunks.clone()
}

/// Waits until a message is interrupted, and for the entry that says so.
fn interrupted(store: &Store, message: usize) -> Duration {
    let begun = Instant::now();
    while state(store, message) != MessageState::Interrupted {
        assert!(begun.elapsed() < Duration::from_secs(30), "it is never interrupted");
        thread::sleep(Duration::from_millis(20));
    }
    let after = begun.elapsed();
    let has_entry = || {
        let entries = store.entries("chat", .., usize::MAX).unwrap();
        let cause = |kind: &EntryKind| matches!(kind, EntryKind::Interrupt { cause: Interruption::Reopened });
        entries.iter().any(|entry| entry.message_index == Some(message as u64) && cause(&entry.kind))
    };
    while !has_entry() {
        assert!(begun.elapsed() < Duration::from_secs(30), "no entry says that it was interrupted");
        thread::sleep(Duration::from_millis(20));
    }
    after
}

#[test]
fn a_killed_process_leaves_its_message_interrupted_for_all_others() {
    let Some(server) = crate::running() else { return };
    let url = server.url() + LEASE;
    let stores = [Store::open(&url).unwrap(), Store::open(&url).unwrap()];
    stores[0].append("chat", &[Message::user("question")]).unwrap();
    let mut process = Process::start("stream", &[&url]);
    assert_eq!(process.next().as_deref(), Some("begun"));
    for store in &stores {
        assert_eq!(state(store, 1), MessageState::Streaming);
        let removed = store.remove("chat", 1, None);
        assert!(matches!(removed, Err(Error::BeingWritten { .. })), "{removed:?}");
    }
    // It lives longer than its lease: it renews it.
    thread::sleep(Duration::from_millis(2500));
    assert_eq!(state(&stores[0], 1), MessageState::Streaming);
    process.signal("KILL");
    for store in &stores {
        interrupted(store, 1);
        assert_eq!(text(store, 1), [Chunk::text("before ")]);
        assert_eq!(store.unfinished().unwrap().len(), 1);
    }
    // Another one may answer now.
    let writer = stores[1].begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.finish(None, None).unwrap();
    assert_eq!(stores[0].unfinished().unwrap(), []);
    assert_eq!(stores[0].verify(|_, _| ()).unwrap().problems, []);
}

#[test]
fn a_process_that_stood_still_for_too_long_is_refused() {
    let Some(server) = crate::running() else { return };
    let url = server.url() + LEASE;
    let store = Store::open(&url).unwrap();
    store.append("chat", &[Message::user("question")]).unwrap();
    let mut process = Process::start("stream", &[&url]);
    assert_eq!(process.next().as_deref(), Some("begun"));
    process.signal("STOP");
    interrupted(&store, 1);
    store.append("chat", &[Message::user("another question")]).unwrap();
    let before = store.entries("chat", .., usize::MAX).unwrap();
    process.signal("CONT");
    process.go();
    assert_eq!(process.next().as_deref(), Some("refused"));
    process.rest();
    assert_eq!(text(&store, 1), [Chunk::text("before ")]);
    assert_eq!(store.entries("chat", .., usize::MAX).unwrap(), before);
}

/// Nobody has written yet that it was interrupted: the lease alone decides.
#[test]
fn late_fragments_are_refused_before_anybody_noticed() {
    let Some(server) = crate::running() else { return };
    let url = server.url() + LEASE;
    let store = Store::open(&url).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("in time")).unwrap();
    store.sync().unwrap();
    let schema = url.split_once("search_path%3D").unwrap().1.split('&').next().unwrap();
    server.run(&format!("UPDATE {schema}.cs_holder SET until = clock_timestamp()")).unwrap();
    let _ = writer.push(0, Chunk::text("late"));
    store.sync().unwrap();
    assert!(matches!(writer.finish(None, None), Err(Error::MessageClosed { .. })));
    assert_eq!(text(&store, 0), [Chunk::text("in time")]);
    assert_eq!(state(&store, 0), MessageState::Interrupted);
    // The next message is begun under a new lease.
    store.begin("chat", Role::Assistant, Metadata::default()).unwrap().finish(None, None).unwrap();
    assert_eq!(state(&store, 1), MessageState::Complete);
}

/// Nobody knows a message whose begin was not answered: it is interrupted, and others of the same program go on.
#[test]
fn a_begin_without_an_answer_leaves_no_message_that_streams_for_ever() {
    let Some(server) = crate::running() else { return };
    let proxy = Proxy::start(server.port);
    let store = Store::open(&(through(&proxy, server) + LEASE)).unwrap();
    let mut other = store.begin("other", Role::Assistant, Metadata::default()).unwrap();
    proxy.cut(Cut::After, "cs_append_v1");
    let lost = store.begin("chat", Role::Assistant, Metadata::default());
    assert!(matches!(lost, Err(Error::OutcomeUnknown { .. })), "{lost:?}");
    assert_eq!(state(&store, 0), MessageState::Streaming);
    let mut next = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    thread::sleep(Duration::from_millis(2500));
    other.push(0, Chunk::text("still")).unwrap();
    other.finish(None, None).unwrap();
    interrupted(&store, 0);
    next.push(0, Chunk::text("here")).unwrap();
    next.finish(None, None).unwrap();
    assert_eq!(state(&store, 1), MessageState::Complete);
}

/// Lets the writing of records fail where a condition holds, until the trigger is dropped.
fn fail_records(server: &Server, schema: &str, condition: &str, code: &str) {
    server
        .run(&format!(
            "SET search_path TO {schema}; CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'a test' USING ERRCODE = '{code}'; END $$; \
             CREATE TRIGGER fail BEFORE INSERT ON cs_record FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION fail()"
        ))
        .unwrap();
}

/// One message that cannot be interrupted keeps no other one, and no program from opening the store.
#[test]
fn each_message_is_interrupted_by_itself() {
    let Some(server) = crate::running() else { return };
    let url = server.url() + LEASE;
    for name in ["chat", "damaged", "third"] {
        let mut process = Process::start("stream", &[&url, name]);
        assert_eq!(process.next().as_deref(), Some("begun"));
        process.signal("KILL");
        process.rest();
    }
    let schema = schema(&url);
    let damaged = Name::from("damaged").id().to_string().replace('-', "");
    fail_records(server, schema, &format!("NEW.conv_id = '\\x{damaged}'"), "data_corrupted");
    thread::sleep(Duration::from_millis(1200));
    let store = Store::open(&url).unwrap();
    let unfinished = || {
        let open = format!("SELECT count(*) FROM {schema}.cs_open WHERE done IS NULL");
        server.value(&open).unwrap().unwrap()
    };
    assert_eq!(unfinished(), "1");
    server.run(&format!("DROP TRIGGER fail ON {schema}.cs_record")).unwrap();
    let begun = Instant::now();
    while unfinished() != "0" {
        assert!(begun.elapsed() < Duration::from_secs(30));
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

/// What was collected for a message whose writer is gone is not written after its redaction.
#[test]
fn a_redaction_reaches_what_is_still_collected() {
    let Some(server) = crate::running() else { return };
    let store = StoreOptions::new().with_window(Duration::from_millis(400)).open(&server.url()).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("secret")).unwrap();
    drop(writer);
    store.redact("chat", 0, None).unwrap();
    thread::sleep(Duration::from_millis(900));
    let stored = store.entries("chat", .., usize::MAX).unwrap();
    assert!(!format!("{stored:?}").contains("secret"), "{stored:?}");
    assert_eq!(state(&store, 0), MessageState::Interrupted);
}

/// A part that was sent twice comes after a later one.
#[test]
fn a_part_that_comes_late_is_not_written_again() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let store = Store::open(&url).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    for word in ["one ", "two "] {
        writer.push(0, Chunk::text(word)).unwrap();
        store.sync().unwrap();
    }
    let before = store.entries("chat", .., usize::MAX).unwrap();
    server
        .run(&format!(
            "SET search_path TO {}; SELECT cs_push_v1(o.conv_id, t.incarnation, o.message, o.holder, 1, 0, r.body, 1, '{{}}', \
             '{{}}', 0) FROM cs_open o JOIN cs_conversation t ON t.conv_id = o.conv_id \
             JOIN cs_record r ON r.conv_id = o.conv_id AND r.first_seq = 2",
            schema(&url)
        ))
        .unwrap();
    assert_eq!(store.entries("chat", .., usize::MAX).unwrap(), before);
    writer.finish(None, None).unwrap();
    assert_eq!(text(&store, 0), [Chunk::text("one two ")]);
}

/// A finish that failed, and wrote nothing, is not made later: the message is interrupted where its writer goes.
#[test]
fn a_finish_that_failed_does_not_complete_the_message_later() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let store = Store::open(&url).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let schema = schema(&url);
    fail_records(server, schema, "true", "disk_full");
    writer.push(0, Chunk::text("said")).unwrap();
    let failed = writer.finish(Some(FinishReason::Stop), None).unwrap_err();
    assert!(matches!(failed, Error::Io { .. }), "{failed}");
    server.run(&format!("DROP TRIGGER fail ON {schema}.cs_record")).unwrap();
    store.sync().unwrap();
    assert_eq!(state(&store, 0), MessageState::Interrupted);
    assert_eq!(text(&store, 0), [Chunk::text("said")]);
}

/// The title of a fork was made of a text that its parent has redacted by now.
#[test]
fn a_title_of_a_text_that_is_redacted_meanwhile_is_made_again() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let store = Store::open(&url).unwrap();
    store.append("parent", &[Message::user("secret")]).unwrap();
    store.fork_to("parent", None, "fork").unwrap();
    store.set_title("fork", Some("mine")).unwrap();
    store.redact("parent", 0, None).unwrap();
    let [fork, parent] = ["fork", "parent"].map(|name| Name::from(name).id().to_string().replace('-', ""));
    let late = format!(
        "SET search_path TO {}; SELECT (cs_control_v1(t.conv_id, t.incarnation, t.commit_no, 0, '\\x00', 'secret', 1::smallint, 0, \
         '{{}}', 0, 0, '{{}}', '{{}}', ARRAY['\\x{parent}'::bytea, t.conv_id], 0)).o_outcome \
         FROM cs_conversation t WHERE t.conv_id = '\\x{fork}'",
        schema(&url)
    );
    assert_eq!(server.value(&late).unwrap().as_deref(), Some("8"));
    store.set_title("fork", None).unwrap();
    assert_eq!(store.describe("fork").unwrap().title, None);
}

/// Renewals have a connection of their own.
#[test]
fn a_lease_is_renewed_while_every_connection_waits() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let store = Store::open(&format!("{url}{LEASE}&pool=1")).unwrap();
    store.append("waits", &[Message::user("first")]).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("before")).unwrap();
    store.sync().unwrap();
    thread::scope(|scope| {
        let append = server.with_locked(&format!("{}.cs_conversation", schema(&url)), || {
            let append = scope.spawn(|| store.append("waits", &[Message::user("second")]));
            // Longer than the lease.
            thread::sleep(Duration::from_secs(3));
            append
        });
        append.join().unwrap().unwrap();
    });
    writer.push(0, Chunk::text(", and after")).unwrap();
    writer.finish(Some(FinishReason::Stop), None).unwrap();
    assert_eq!(text(&store, 0), [Chunk::text("before, and after")]);
}
