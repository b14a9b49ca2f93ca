//! What a caller can tell apart, keep and send on.

use std::marker::PhantomData;
use std::mem::discriminant;

use conversation_store::model::{Chunk, ConversationId, Message, Metadata, Role, Timestamp};
use conversation_store::provider::Finding;
use conversation_store::{
    AppendOptions, BackupSummary, Cursor, Entry, Error, ExpectedHead, Health, Item, ListCursor, ListItem, ListPage,
    NextStep, PendingCall, Problem, Receipt, Redaction, ReportLine, Store, StoredMessage, Summary, Unfinished,
    Verification,
};
use serde::Serialize;

use crate::{Place, say, user};

// 17

#[test]
fn what_a_server_answers_unlike_is_of_unlike_kinds() {
    let store = Store::open("memory:").unwrap();
    say(&store, "chat", 1..=3);
    say(&store, "other", 1..=3);
    store.fork_to("other", None, "fork").unwrap();
    store.delete("other").unwrap();
    let expected = AppendOptions::new().with_expected(ExpectedHead::At(2));
    let errors = [
        ("a stale head", store.append_with("chat", &[Message::user("x")], &expected).map(|_| ()).unwrap_err()),
        ("a taken name", store.fork_to("chat", None, "fork").unwrap_err()),
        ("a cursor that is too large", store.entries_since("chat", 100, 10).map(|_| ()).unwrap_err()),
        ("deleted, but shared", user(&store, "other", "again").map(|_| ()).unwrap_err()),
    ];
    let mut same = Vec::new();
    for (at, (what, error)) in errors.iter().enumerate() {
        same.extend(
            errors[..at]
                .iter()
                .filter(|(_, before)| discriminant(before) == discriminant(error))
                .map(|(other, _)| (*other, *what)),
        );
    }
    assert!(same.is_empty(), "{same:?}");
}

#[test]
fn a_store_that_takes_no_writes_is_no_bad_input() {
    let place = Place::with(|store| say(store, "chat", 1..=2));
    let store = place.read_only();
    let error = user(&store, "chat", "more").unwrap_err();
    assert!(!matches!(error, Error::InvalidInput(_)), "read-only: {error:?}");
}

#[test]
fn a_message_that_is_being_written_is_no_bad_input() {
    let store = Store::open("memory:").unwrap();
    let writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let error = store.redact("chat", 0, None).unwrap_err();
    assert!(!matches!(error, Error::InvalidInput(_)), "{error:?}");
    drop(writer);
}

#[test]
fn a_store_that_was_closed_did_not_fail() {
    let store = Store::open("memory:").unwrap();
    store.close().unwrap();
    let error = user(&store, "chat", "more").unwrap_err();
    assert!(!matches!(error, Error::Poisoned { .. }), "{error:?}");
}

#[test]
fn an_error_shows_the_name_that_the_caller_gave() {
    let store = Store::open("memory:").unwrap();
    say(&store, "chat-42", 1..=3);
    let (at, once) =
        (AppendOptions::new().with_expected(ExpectedHead::At(2)), AppendOptions::new().with_idempotency_key("k"));
    let message = |text: &str| [Message::user(text)];
    store.append_with("chat-42", &message("a"), &once).unwrap();
    let errors = [
        store.append_with("chat-42", &message("a"), &at).unwrap_err(),
        store.append_with("chat-42", &message("b"), &once).unwrap_err(),
        store.entries_since("chat-42", 100, 10).map(|_| ()).unwrap_err(),
    ];
    let hidden: Vec<String> = errors.iter().map(ToString::to_string).filter(|text| !text.contains("chat-42")).collect();
    assert!(hidden.is_empty(), "{hidden:#?}");
}

// 18

struct Probe<T>(PhantomData<T>);

trait Otherwise {
    const SERIALIZES: bool = false;
}

impl<T> Otherwise for Probe<T> {}

impl<T: Serialize> Probe<T> {
    const SERIALIZES: bool = true;
}

#[test]
fn what_the_program_prints_can_be_serialized() {
    macro_rules! without {
        ($($type:ty),* $(,)?) => { [$((stringify!($type), Probe::<$type>::SERIALIZES)),*] };
    }
    let types = without![
        Receipt,
        ListItem,
        ListPage,
        StoredMessage,
        ConversationId,
        Timestamp,
        ReportLine,
        Cursor,
        Item,
        Redaction,
        BackupSummary,
        Verification,
        ListCursor,
        Entry,
        Summary,
        NextStep,
        PendingCall,
        Health,
        Problem,
        Unfinished,
        Finding,
    ];
    let missing: Vec<&str> = types.iter().filter(|(_, is)| !is).map(|(name, _)| *name).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let probe_can_tell = without![Error];
    assert_eq!(probe_can_tell, [("Error", false)]);
}

#[test]
fn debugging_a_store_prints_nothing_that_was_said() {
    const SECRET: &str = "hunter2hunter2";
    let place = Place::new();
    for store in [Store::open("memory:").unwrap(), place.open()] {
        user(&store, "chat", SECRET).unwrap();
        let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
        writer.push(0, Chunk::text(SECRET)).unwrap();
        let printed = format!("{store:?} {writer:?} {:?}", store.tail("chat", 0).unwrap());
        let bytes = format!("{:?}", SECRET.as_bytes());
        assert!(!printed.contains(SECRET) && !printed.contains(bytes.trim_matches(['[', ']'])), "{printed}");
    }
}

// 19

#[test]
fn structs_that_will_grow_are_open() {
    let growing = [
        "ListItem",
        "ListPage",
        "ListQuery",
        "Receipt",
        "AppendOptions",
        "Redaction",
        "Item",
        "BackupSummary",
        "Verification",
        "Problem",
        "StoredMessage",
        "Health",
    ];
    let mut closed = Vec::new();
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut found = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            for name in growing {
                let Some((before, _)) = text.split_once(&format!("\npub struct {name} {{")) else { continue };
                found += 1;
                let attributes = before.rsplit("\n\n").next().unwrap_or_default();
                if !attributes.contains("#[non_exhaustive]") {
                    closed.push(name);
                }
            }
        }
    }
    assert_eq!(found, growing.len());
    assert!(closed.is_empty(), "{closed:?}");
}
