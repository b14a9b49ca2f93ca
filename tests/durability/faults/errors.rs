//! What a caller can tell apart, keep and send on.

use std::marker::PhantomData;
use std::mem::discriminant;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use conversation_store::model::{Chunk, ConversationId, Message, Metadata, Name, Role, Timestamp};
use conversation_store::provider::Finding;
use conversation_store::{
    AppendOptions, BackupSummary, Cursor, Entry, Error, ExpectedHead, Health, Item, ListCursor, ListItem, ListPage,
    NewConversation, NextStep, PendingCall, Problem, Receipt, Redaction, ReportLine, Rule, Store, StoredMessage,
    Summary, Unfinished, Verification,
};
use serde::Serialize;

use crate::faults::damage::{Kind, Raw};
use crate::faults::{Place, id, say, user};

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

/// Damages a conversation.
type Damage = fn(&Raw, ConversationId);

/// What a caller can ask of one conversation.
type Call = (&'static str, fn(&Store, &Name) -> Result<(), Error>);

const CALLS: &[Call] = &[
    ("append", |store, name| store.append(name, &[Message::user("x")]).map(drop)),
    ("append with a key", |store, name| {
        store.append_with(name, &[Message::user("x")], &AppendOptions::new().with_idempotency_key("k")).map(drop)
    }),
    ("begin", |store, name| store.begin(name, Role::Assistant, Metadata::default()).map(drop)),
    ("begin with", |store, name| {
        store.begin_with(name, Role::Assistant, Metadata::default(), &AppendOptions::new()).map(drop)
    }),
    ("create", |store, name| store.create(name, &NewConversation::new()).map(drop)),
    ("load", |store, name| store.load(name).map(drop)),
    ("load strict", |store, name| store.load_strict(name).map(drop)),
    ("load raw", |store, name| store.load_raw(name).map(drop)),
    ("load newest", |store, name| store.load_newest(name, 2).map(drop)),
    ("messages", |store, name| store.messages(name, 0, 9).map(drop)),
    ("newest messages", |store, name| store.newest_messages(name, 9).map(drop)),
    ("entries", |store, name| store.entries(name, 1.., 9).map(drop)),
    ("entries since", |store, name| store.entries_since(name, 0, 9).map(drop)),
    ("newest entries", |store, name| store.newest_entries(name, 9).map(drop)),
    ("tail", |store, name| store.tail(name, 0)?.next(Duration::ZERO).map(drop)),
    ("poll a tail", |store, name| {
        let mut tail = store.tail(name, 0)?;
        match tail.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(news)) => news.map(drop),
            _ => Ok(()),
        }
    }),
    ("set a title", |store, name| store.set_title(name, Some("x")).map(drop)),
    ("take back a title", |store, name| store.set_title(name, None).map(drop)),
    ("metadata", |store, name| store.metadata(name).map(drop)),
    ("tag", |store, name| store.tag(name, &["x"]).map(drop)),
    ("describe", |store, name| store.describe(name).map(drop)),
    ("find an item", |store, name| store.find_item(name, "x").map(drop)),
    ("fork", |store, name| store.fork(name, Some(2)).map(drop)),
    ("redact", |store, name| store.redact(name, 1, None).map(drop)),
    ("remove", |store, name| store.remove(name, 1, None).map(drop)),
    ("rewind", |store, name| store.rewind(name, 0).map(drop)),
    ("summarize", |store, name| store.summarize(name, 0, "x").map(drop)),
    ("delete", |store, name| store.delete_at(name, 3).map(drop)),
];

#[test]
fn damage_is_shown_under_the_name_that_the_caller_gave() {
    let in_a_record = |raw: &Raw, id| raw.flip(&raw.record(id, 2));
    let in_all_of_it =
        |raw: &Raw, id| [raw.record(id, 1), raw.key_of(Kind::Head, id)].iter().for_each(|key| raw.flip(key));
    let in_a_receipt = |raw: &Raw, id| raw.flip(&raw.key_of(Kind::Receipt, id));
    let damages: [(Damage, usize); 3] = [(in_a_record, 11), (in_all_of_it, CALLS.len()), (in_a_receipt, 1)];
    for name in [Name::from("chat-42"), Name::from("chat-42").with_owner("ada"), Name::from(ConversationId::new())] {
        let shown = name.to_string();
        for (damage, count) in damages {
            let place = Place::with(|store| {
                let once = AppendOptions::new().with_idempotency_key("k");
                store.append_with(&name, &[Message::user("x")], &once).unwrap();
                for text in ["y", "z"] {
                    store.append(&name, &[Message::user(text)]).unwrap();
                }
            });
            place.damage(|raw| damage(raw, name.id()));
            let store = place.open();
            let failed: Vec<_> =
                CALLS.iter().filter_map(|(what, call)| Some((*what, call(&store, &name).err()?))).collect();
            let of_damage: Vec<_> = failed.iter().filter(|(_, error)| matches!(error, Error::Corrupt { .. })).collect();
            assert!(of_damage.len() >= count, "{of_damage:#?}");
            let hidden =
                of_damage.iter().map(|(what, error)| format!("{what}: {error}")).filter(|text| !text.contains(&shown));
            assert_eq!(hidden.collect::<Vec<_>>(), [""; 0]);
        }
    }
}

#[test]
fn a_report_shows_damage_under_the_name_that_the_caller_gave() {
    let place = Place::with(|store| say(store, "chat-42", 1..=4));
    place.damage(|raw| raw.flip(&raw.record(id("chat-42"), 4)));
    let store = place.open();
    let mut conversation = store.load("chat-42").unwrap();
    let newest = store.load_newest("chat-42", 2).unwrap();
    user(&store, "chat-42", "more").unwrap();
    let before = conversation.report().to_vec();
    store.refresh(&mut conversation).unwrap();
    for report in [&before, newest.report(), conversation.report()] {
        let damaged: Vec<_> = report.iter().filter(|line| line.rule == Rule::DamagedRecord).collect();
        assert!(!damaged.is_empty(), "{report:?}");
        assert!(damaged.iter().all(|line| line.to_string().contains("conversation chat-42 at seq 4")), "{damaged:?}");
    }
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
