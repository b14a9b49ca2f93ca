//! Rows that say what the log never wrote: whatever they say, no call panics, and `verify` finds them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{Cursor, ListQuery, Store};

use crate::common::postgres::{Server, schema};

/// What is changed, of the conversation whose seqs 1 to 6 are in four records.
const DAMAGES: &[&str] = &[
    "UPDATE cs_record SET first_seq = 0 WHERE first_seq = 1",
    "UPDATE cs_record SET first_seq = -5 WHERE first_seq = 3",
    "UPDATE cs_record SET first_seq = 9223372036854775807 WHERE first_seq = 3",
    "UPDATE cs_record SET entries = 0",
    "UPDATE cs_record SET entries = -1 WHERE first_seq = 1",
    "UPDATE cs_record SET entries = 9223372036854775807 WHERE first_seq = 1",
    "UPDATE cs_record SET base = 9223372036854775807",
    "UPDATE cs_record SET base = -1 WHERE first_seq = 3",
    "UPDATE cs_record SET next_message = 9223372036854775807",
    "UPDATE cs_record SET next_message = 0 WHERE first_seq = 3",
    "UPDATE cs_record SET incarnation = incarnation + 1 WHERE first_seq = 3",
    "UPDATE cs_record SET body = ''",
    "UPDATE cs_record SET body = substr(body, 1, 5)",
    "UPDATE cs_record SET body = substr(body, 1, length(body) - 1) WHERE first_seq = 3",
    "UPDATE cs_record SET body = set_byte(body, length(body) - 1, 255 - get_byte(body, length(body) - 1))",
    "UPDATE cs_record SET body = set_byte(body, 0, 99) WHERE first_seq = 1",
    "DELETE FROM cs_record WHERE first_seq = 1",
    "DELETE FROM cs_record WHERE first_seq = 3",
    "DELETE FROM cs_record",
    "DELETE FROM cs_conversation",
    "DELETE FROM cs_item",
    "UPDATE cs_item SET seq = 9223372036854775807",
    "UPDATE cs_conversation SET next_seq = 0",
    "UPDATE cs_conversation SET next_seq = -1",
    "UPDATE cs_conversation SET next_seq = 9223372036854775807",
    "UPDATE cs_conversation SET next_seq = next_seq - 1",
    "UPDATE cs_conversation SET next_message = 9223372036854775807",
    "UPDATE cs_conversation SET next_message = 0",
    "UPDATE cs_conversation SET last_hide = 9223372036854775807",
    "UPDATE cs_conversation SET last_meta = 3",
    "UPDATE cs_conversation SET title = 'back', title_kind = 2",
    "UPDATE cs_conversation SET title = 'back'",
    "UPDATE cs_conversation SET title_message = 1",
    "UPDATE cs_conversation SET tags = ARRAY['back'::bytea]",
    "UPDATE cs_conversation SET last_hide = 1",
    "UPDATE cs_conversation SET open_messages = ARRAY[3]",
    "UPDATE cs_conversation SET incarnation = -1",
    "UPDATE cs_conversation SET owner = '\\xff'",
    "UPDATE cs_conversation SET tags = ARRAY['\\xff'::bytea]",
    "UPDATE cs_conversation SET open_messages = ARRAY[-1]",
    "UPDATE cs_conversation SET open_messages = ARRAY[9223372036854775807]",
    "UPDATE cs_conversation SET interrupted = ARRAY[0]",
];

/// Calls everything: what is refused is refused.
fn call_everything(store: &Store) {
    drop(store.load("chat"));
    drop(store.load_raw("chat"));
    drop(store.entries("chat", .., usize::MAX));
    drop(store.newest_entries("chat", usize::MAX));
    drop(store.newest_messages("chat", usize::MAX));
    drop(store.load_newest("chat", 2));
    drop(store.entries_since("chat", Cursor::from(2), 3));
    drop(store.list(&ListQuery::new()));
    drop(store.describe("chat"));
    drop(store.find_item("chat", "item"));
    drop(store.unfinished());
    drop(store.fork_to("chat", Some(2), "fork"));
    drop(store.set_title("chat", Some("a title")));
    drop(store.append("chat", &[Message::user("more")]));
    drop(store.redact("chat", 0, None));
    drop(store.rewind("chat", 1));
    drop(store.delete("fork"));
    drop(store.delete("chat"));
}

#[test]
fn rows_that_the_log_never_wrote_are_found_and_panic_nowhere() {
    let Some(server) = crate::running() else { return };
    let mut missed = Vec::new();
    for damage in DAMAGES {
        let url = server.url();
        let store = Store::open(&url).unwrap();
        let mut said = Message::user("second");
        said.metadata.id = Some("item".to_owned());
        store.append("chat", &[Message::user("first"), said]).unwrap();
        let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
        writer.push(0, Chunk::text("an answer")).unwrap();
        writer.finish(None, None).unwrap();
        store.append("chat", &[Message::user("last")]).unwrap();
        assert_eq!(store.verify(|_, _| ()).unwrap().problems, [], "before: {damage}");
        server.run(&format!("SET search_path TO {}; {damage}", schema(&url))).unwrap();
        // Another opening: nothing that is remembered hides it.
        let store = Store::open(&url).unwrap();
        let found = store.verify(|_, _| ());
        if found.is_ok_and(|found| found.problems.is_empty()) {
            missed.push(format!("not found: {damage}"));
        }
        if catch_unwind(AssertUnwindSafe(|| call_everything(&store))).is_err() {
            missed.push(format!("a call panics: {damage}"));
        }
    }
    assert_eq!(missed, Vec::<String>::new());
}

#[test]
fn what_was_redacted_is_not_in_the_tables_that_were_written_anew() {
    const SECRET: &str = "zq7xk9vw-zq7xk9vw";
    if crate::running().is_none() {
        return;
    }
    // Of its own: a snapshot of another test keeps dead rows, and nothing ends it from here.
    let server = Server::start(&[]).unwrap();
    let url = server.url();
    let store = Store::open(&url).unwrap();
    store.append("chat", &[Message::user(SECRET), Message::user("kept")]).unwrap();
    let holding = || {
        server.run("CHECKPOINT").unwrap();
        let files = format!(
            "SELECT count(*)::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '{}' \
             AND c.relkind IN ('r', 'i') AND position('{SECRET}'::bytea IN pg_read_binary_file(pg_relation_filepath(c.oid))) > 0",
            schema(&url)
        );
        server.value(&files).unwrap().unwrap()
    };
    // A reader that began before keeps it.
    let kept = server.within("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1", || {
        store.redact("chat", 0, None).unwrap();
        Store::vacuum(&url, |_, _| ()).unwrap();
        holding()
    });
    assert_ne!(kept, "0");
    let mut seen = Vec::new();
    let vacuumed = Store::vacuum(&url, |done, all| seen.push((done, all))).unwrap();
    assert!(vacuumed.bytes_after > 0 && seen.last() == Some(&(4, 4)), "{vacuumed:?}, {seen:?}");
    assert_eq!(holding(), "0");
    assert_eq!(store.load_raw("chat").unwrap().len(), 2);
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}
