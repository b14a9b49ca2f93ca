//! Values that damage took or brought back: reported, never overwritten, derived again, and deleted by who may.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::super::{Embedded, Opening};
use super::engines::{Forgetful, all};
use crate::embedded::engine::{Batch, Engine, Memory};
use crate::embedded::{recovery, stored};
use crate::error::Error;
use crate::log::{AppendOptions, Changes, ForkAt, ListQuery, Log};
use crate::model::{Chunk, Message, Name, Timestamp};
use crate::record::{self, Head, TitleSource, key};

fn open_as<E: Engine + 'static>(engine: &Arc<E>, opening: Opening) -> Embedded {
    let clock = Arc::new(|| Timestamp::from_micros(1_767_323_045_000_000));
    Embedded::open(Arc::clone(engine) as Arc<dyn Engine>, clock, Duration::from_secs(3600), opening).unwrap()
}

pub(super) fn open(engine: &Arc<Memory>) -> Embedded {
    open_as(engine, Opening::default())
}

fn append(log: &Embedded, name: &str, texts: &[&str]) {
    let messages: Vec<Message> = texts.iter().map(|text| Message::user(*text)).collect();
    let key: String = texts.concat().chars().take(9).collect();
    let options = AppendOptions::new().with_idempotency_key(key);
    log.core().appender.append(&name.into(), &messages, &Changes::new(), &options).unwrap();
}

pub(super) fn problems(log: &Embedded) -> Vec<String> {
    let found = recovery::verify(log.core(), &mut |_, _| ()).unwrap().problems;
    found.iter().map(ToString::to_string).collect()
}

fn count(log: &Embedded, name: &str) -> usize {
    let grouped = super::load(log, name).unwrap();
    assert!(grouped.damage.is_empty(), "{:?}", grouped.damage);
    grouped.messages.len()
}

/// A store with a conversation of two appends, a fork of it, one with a record in parts.
pub(super) fn store() -> Arc<Memory> {
    let engine = Arc::new(Memory::default());
    let log = open(&engine);
    append(&log, "a", &["one", "two"]);
    append(&log, "a", &["three"]);
    append(&log, "b", &[&"large ".repeat(20_000)]);
    log.core().families.fork(&"a".into(), ForkAt { seq: Some(2), time: None }, &"fork".into()).unwrap();
    append(&log, "fork", &["own"]);
    assert_eq!(problems(&log), [""; 0]);
    engine
}

/// Takes all values of a kind that belong to a conversation.
pub(super) fn take(engine: &dyn Engine, kind: u8, name: impl Into<Name>) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let id = name.into().id();
    let is_meant = |key: &[u8]| match key.first() {
        Some(&key::INDEX) => kind == key::INDEX && key::parse_index(key).is_some_and(|(_, _, of)| of == id),
        _ => key.starts_with(&key::prefix(kind, id)),
    };
    let taken: Vec<_> = all(engine).into_iter().filter(|(key, _)| is_meant(key)).collect();
    assert!(!taken.is_empty());
    let ops = taken.iter().map(|(key, _)| (key.clone(), None)).collect();
    engine.write(Batch { ops }).unwrap();
    taken
}

fn change_head(engine: &Memory, name: &str, change: impl FnOnce(&mut Head)) {
    let key = key::head(Name::from(name).id());
    let bytes = engine.get(&key).unwrap().unwrap();
    let mut head: Head = record::open("a head", &key, &bytes).unwrap();
    change(&mut head);
    let value = record::seal(&key, &head).unwrap();
    engine.write(Batch { ops: vec![(key, Some(value))] }).unwrap();
}

#[test]
fn what_vanished_without_a_trace_is_missed_until_that_is_accepted() {
    let engine = store();
    for kind in [key::RECORD, key::HEAD, key::INDEX, key::RECEIPT] {
        take(&*engine, kind, "b");
    }
    let missed = "store: it holds 2 conversations with 4 entries, and was left with 3 and 5: something is missing, or \
                  back, that left no other trace";
    let log = open(&engine);
    assert_eq!(problems(&log), [missed]);
    append(&log, "c", &["more"]);
    assert_eq!(
        problems(&log),
        [missed.replace("2 conv", "3 conv").replace("4 en", "5 en").replace("3 and 5", "4 and 6")]
    );
    let dir = tempfile::tempdir().unwrap();
    recovery::backup(log.core(), &dir.path().join("backup"), &mut |_, _| ()).unwrap();
    drop(log);
    // Neither a backup nor an opening makes it forgotten.
    let restored = Arc::new(Memory::default());
    let as_engine: Arc<dyn Engine> = Arc::clone(&restored) as Arc<dyn Engine>;
    super::super::restore(&dir.path().join("backup"), &as_engine, &mut |_, _| ()).unwrap();
    for engine in [&engine, &restored] {
        assert_eq!(problems(&open(engine)).len(), 1);
        let log = open_as(engine, Opening { accept_loss: true, ..Opening::default() });
        assert_eq!(problems(&log), [""; 0]);
        drop(log);
        assert_eq!(problems(&open(engine)), [""; 0]);
    }
}

#[test]
fn nothing_is_written_over_by_a_head_that_went_back() {
    for reads_first in [false, true] {
        let engine = store();
        change_head(&engine, "a", |head| (head.next_seq, head.next_message_index) = (3, 2));
        let log = open(&engine);
        let id = Name::from("a").id();
        assert!(problems(&log).contains(&format!("conversation {id}: the head ends before the last record")));
        if reads_first {
            assert_eq!(count(&log, "a"), 3);
        }
        append(&log, "a", &["four"]);
        assert_eq!(count(&log, "a"), 4);
        assert_eq!(count(&log, "fork"), 3);
        assert_eq!(problems(&log), [""; 0], "the next append made it whole");
    }
}

#[test]
fn a_head_that_is_lost_is_derived_and_backed_up() {
    let engine = store();
    take(&*engine, key::HEAD, "b");
    let log = open(&engine);
    assert_eq!(count(&log, "b"), 1);
    let dir = tempfile::tempdir().unwrap();
    let summary = recovery::backup(log.core(), &dir.path().join("backup"), &mut |_, _| ()).unwrap();
    assert_eq!(summary.conversations, 3);
    append(&log, "b", &["more"]);
    assert_eq!(problems(&log), [""; 0]);
}

/// Title and tags of a conversation.
fn named(log: &Embedded, name: &str) -> (Option<String>, Vec<String>) {
    let item = super::describe(log, name);
    (item.title, item.tags)
}

#[test]
fn a_fork_whose_head_is_lost_has_title_and_tags_of_its_parent_still() {
    type Change = fn(&Embedded);
    let table: &[(Change, Change, &str, &[&str])] = &[
        (|_| (), |_| (), "one", &["work"]),
        (|log| _ = super::set_title(log, "a", "said").unwrap(), |_| (), "said", &["work"]),
        (|_| (), |log| _ = super::set_title(log, "fork", "own").unwrap(), "own", &["work"]),
        (|_| (), |log| _ = super::change_tags(log, "fork", &["work"], &["own"]).unwrap(), "one", &["own"]),
        (|_| (), |log| _ = super::change_tags(log, "fork", &["work"], &[]).unwrap(), "one", &[]),
        (|log| _ = super::rewind(log, "a", 1).unwrap(), |_| (), "one", &["work"]),
        (|log| _ = super::rewind(log, "a", 0).unwrap(), |_| (), "new", &["work"]),
        (|_| (), |log| _ = super::rewind(log, "fork", 0).unwrap(), "new", &["work"]),
        // Later changes to the parent are not the fork's.
        (|_| (), |log| _ = super::set_title(log, "a", "late").unwrap(), "one", &["work"]),
        (|_| (), |log| _ = super::change_tags(log, "a", &["work"], &["late"]).unwrap(), "one", &["work"]),
        (|_| (), |log| _ = super::rewind(log, "a", 0).unwrap(), "one", &["work"]),
        (|_| (), |log| log.core().families.delete(&"a".into(), None).unwrap(), "one", &["work"]),
    ];
    for (at, (before, after, title, tags)) in table.iter().enumerate() {
        let engine = Arc::new(Memory::default());
        let log = open(&engine);
        append(&log, "a", &["one", "two"]);
        super::change_tags(&log, "a", &[], &["work"]).unwrap();
        before(&log);
        log.core().families.fork(&"a".into(), ForkAt::default(), &"fork".into()).unwrap();
        after(&log);
        append(&log, "fork", &["new"]);
        log.core().families.fork(&"fork".into(), ForkAt::default(), &"fork of the fork".into()).unwrap();
        let expected = (Some((*title).to_owned()), tags.iter().map(|tag| (*tag).to_owned()).collect());
        drop(log);
        for lost in [&["fork"][..], &["fork of the fork"], &["fork", "fork of the fork"]] {
            for accept_loss in [false, true] {
                let engine = Forgetful::of(&*engine);
                lost.iter().for_each(|name| drop(take(&*engine, key::HEAD, *name)));
                for opening in [Opening { accept_loss, ..Opening::default() }, Opening::default()] {
                    let log = open_as(&engine, opening);
                    for name in ["fork", "fork of the fork"] {
                        assert_eq!(named(&log, name), expected, "{at}: {name} of {lost:?}, {accept_loss}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_fork_that_lost_its_head_and_its_parent_is_still_found() {
    let engine = store();
    take(&*engine, key::HEAD, "fork");
    take(&*engine, key::HEAD, "a");
    take(&*engine, key::RECORD, "a");
    let log = open(&engine);
    assert_eq!(named(&log, "fork").0.as_deref(), Some("own"));
}

/// Heads are derived from records, and those of forks from other conversations' too: that ends, whatever they state.
#[test]
fn forks_of_each_other_end() {
    let engine = Arc::new(Memory::default());
    for (child, parent, at_seq) in [("a", "b", 4), ("b", "a", 7), ("c", "c", 5)] {
        let conversation = *Name::from(parent).id().as_bytes();
        let parent = Some(record::Parent { conversation, at_seq, incarnation: 1, commit: 1 });
        let origin = record::Origin {
            owner: String::new(),
            key: None,
            incarnation: 1,
            created: 1,
            parent,
            last_hide: 0,
            last_meta: 0,
            first_message_index: 0,
        };
        let header = record::Header {
            time: 1,
            base: 0,
            next_message_index: 0,
            commit: 1,
            cut: false,
            deleted: false,
            origin: Some(origin),
        };
        let (key, value) =
            record::seal_record(Name::from(child).id(), at_seq + 1, &header, record::Body::new()).unwrap();
        // A damaged head proves that there is a conversation.
        let head = (key::head(Name::from(child).id()), Some(vec![1, 2, 3]));
        engine.write(Batch { ops: vec![(key, Some(value)), head] }).unwrap();
    }
    let store = record::StoreInfo { store_id: [1; 16], format_version: 1 };
    let marker = key::meta("store");
    let value = record::seal(&marker, &store).unwrap();
    engine.write(Batch { ops: vec![(marker, Some(value))] }).unwrap();
    let log = open_as(&engine, Opening { accept_loss: true, ..Opening::default() });
    for name in ["a", "b", "c"] {
        assert_eq!(named(&log, name), (None, Vec::new()));
    }
}

#[test]
fn a_damaged_commit_is_told_and_can_be_accepted() {
    let engine = store();
    engine.write(Batch { ops: vec![(key::meta("commit"), Some(vec![1, 2, 3, 4, 5, 6]))] }).unwrap();
    let clock = Arc::new(Timestamp::now);
    let opened =
        Embedded::open(Arc::clone(&engine) as Arc<dyn Engine>, clock, Duration::from_secs(1), Opening::default());
    let log = opened.unwrap();
    assert_eq!(log.core().health().damage, ["the number of its last commit is damaged or missing"]);
    assert!(!problems(&log).is_empty());
    assert_eq!(count(&log, "a"), 3, "it is read");
    let appended =
        log.core().appender.append(&"a".into(), &[Message::user("x")], &Changes::new(), &AppendOptions::new());
    assert!(matches!(appended, Err(Error::Corrupt { .. })), "{appended:?}");
    drop(log);
    let log = open_as(&engine, Opening { accept_loss: true, ..Opening::default() });
    assert_eq!(problems(&log), [""; 0]);
    // What was lost may have had any of the next numbers.
    assert!(log.core().commit.lock().last_commit().number > 1 << 32);
}

/// Without a loss being accepted.
#[test]
fn what_is_derived_anew_hides_nothing_that_is_missing() {
    let engine = store();
    let (last, stray) =
        (key::record(Name::from("a").id(), 3), key::index(&record::digest(b""), 7, Name::from("b").id()));
    engine.write(Batch { ops: vec![(last, None), (stray.clone(), Some(Vec::new()))] }).unwrap();
    recovery::rebuild_all(&*engine, false).unwrap();
    assert!(engine.get(&stray).unwrap().is_none());
    let found = problems(&open(&engine));
    assert!(
        found.iter().any(|problem| problem.contains("seq 3: the record that should be here is missing")),
        "{found:?}"
    );
}

/// The next opening knows it, too.
#[test]
fn the_name_of_what_forks_read_is_not_free() {
    let engine = store();
    open(&engine).core().families.delete(&"a".into(), None).unwrap();
    let log = open(&engine);
    let refused =
        log.core().appender.append(&"a".into(), &[Message::user("x")], &Changes::new(), &AppendOptions::new());
    assert!(matches!(refused, Err(Error::SharedByForks { .. })), "{refused:?}");
    log.core().families.delete(&"fork".into(), None).unwrap();
    append(&log, "a", &["x"]);
    assert_eq!(problems(&log), [""; 0]);
}

/// Of a conversation that was deleted, and of one that was not.
#[test]
fn verify_tells_what_is_damaged_of_what_forks_read() {
    let is_found = |deleted: bool, name: &str, detail: &str| {
        let engine = store();
        if deleted {
            open(&engine).core().families.delete(&"a".into(), None).unwrap();
        }
        garble(&*engine, key::RECORD, "a");
        let found = recovery::verify(open(&engine).core(), &mut |_, _| ()).unwrap().problems;
        let id = Some(Name::from(name).id());
        found.iter().any(|problem| problem.conversation == id && problem.detail.contains(detail))
    };
    for deleted in [false, true] {
        assert!(is_found(deleted, "a", "the checksum does not match"), "{deleted}");
        assert!(is_found(deleted, "fork", "which it shares with"), "{deleted}");
    }
}

/// Flips a bit in the values of a kind that belong to a conversation.
pub(super) fn garble(engine: &dyn Engine, kind: u8, name: &str) {
    let garbled = take(engine, kind, name).into_iter().map(|(key, value)| {
        let mut value = value.unwrap();
        *value.last_mut().unwrap() ^= 1;
        (key, Some(value))
    });
    engine.write(Batch { ops: garbled.collect() }).unwrap();
}

/// The list derives it, as readers do.
#[test]
fn a_conversation_whose_head_is_damaged_is_listed() {
    let engine = store();
    let log = open(&engine);
    garble(&*engine, key::HEAD, "b");
    let page = log.list(&ListQuery::new()).unwrap();
    let ids: Vec<_> = page.items.iter().map(|item| item.id).collect();
    assert!(ids.contains(&Name::from("b").id()) && ids.len() == 3, "{page:?}");
    assert!(page.unreadable.is_empty());
}

/// What it reads is held with it, where nothing but its first record says what that is.
#[test]
fn a_damaged_conversation_is_held_with_what_it_reads() {
    let engine = store();
    let (fork, parent) = (Name::from("fork").id(), Name::from("a").id());
    let log = open(&engine);
    take(&*engine, key::HEAD, "fork");
    take(&*engine, key::INDEX, "fork");
    assert!(log.core().catalogue.published_head(fork).is_err(), "else this shows nothing");
    assert!(log.core().families.hold(&[fork]).unwrap().has(parent));
}

/// Where a fork is noted of which nothing is left, that is forgotten with the next deletion.
#[test]
fn a_stray_fork_point_goes_when_something_is_erased() {
    let engine = store();
    let [parent, gone, fork] = ["a", "gone", "fork"].map(|name| Name::from(name).id());
    let point = engine.get(&key::fork(parent, fork)).unwrap().unwrap();
    let stray = key::fork(parent, gone);
    engine.write(Batch { ops: vec![(stray.clone(), Some(point))] }).unwrap();
    let log = open(&engine);
    log.core().families.delete(&"b".into(), None).unwrap();
    assert!(engine.get(&stray).unwrap().is_none());
    assert!(engine.get(&key::fork(parent, fork)).unwrap().is_some());
    assert_eq!(problems(&log), [""; 0]);
}

#[test]
fn verify_tells_what_does_not_fit_together() {
    type Damage = fn(&Memory);
    let table: &[(Damage, &str, &str)] = &[
        (|engine| drop(take(engine, key::HEAD, "a")), "a", "it has records, but no head"),
        (|engine| drop(take(engine, key::INDEX, "a")), "a", "an index of conversations does not list it"),
        (
            |engine| drop(take(engine, key::FORK, "a")),
            "fork",
            "the conversation that it was forked from does not know of it",
        ),
        (|engine| garble(engine, key::RECORD, "b"), "b", "a record: the checksum does not match"),
        (
            |engine| drop(take(engine, key::RECORD, "b")),
            "b",
            "it has a head, and nothing that proves it: it is left as it is; `delete` removes it",
        ),
        (
            |engine| change_head(engine, "a", |head| head.next_message_index += 1),
            "a",
            "the head's message index is not that of the last record",
        ),
        (
            |engine| change_head(engine, "a", |head| head.key = Some("z".to_owned())),
            "a",
            "what it is differs between head and first record",
        ),
        (
            |engine| change_head(engine, "a", |head| head.last_activity += 120_000_000),
            "a",
            "its place in an index of conversations is wrong",
        ),
        (
            |engine| change_head(engine, "a", |head| head.title = Some("back".to_owned())),
            "a",
            "its title is not what its entries give",
        ),
        (
            |engine| {
                change_head(engine, "a", |head| {
                    (head.title, head.title_source) = (Some("one".to_owned()), TitleSource::Caller);
                });
            },
            "a",
            "its title is not what its entries give",
        ),
        (
            |engine| change_head(engine, "a", |head| head.tags = vec!["back".to_owned()]),
            "a",
            "its tags are not what its entries give",
        ),
        (
            |engine| change_head(engine, "a", |head| head.interrupted = vec![2]),
            "a",
            "the head has interrupted messages that its records do not have",
        ),
        (
            |engine| change_head(engine, "a", |head| head.last_hide = 1),
            "a",
            "the head's last rewind or removal is not that of its records",
        ),
        (
            |engine| change_head(engine, "a", |head| head.last_meta = 1),
            "a",
            "the head's last change of title, tags or metadata is not that of its records",
        ),
        (|engine| change_head(engine, "a", |head| head.next_seq = 3), "a", "the head ends before the last record"),
        (
            |engine| garble(engine, key::RECEIPT, "a"),
            "a",
            "an idempotency record is damaged, or is not of the entries that it names",
        ),
        (
            |engine| {
                take(engine, key::HEAD, "b");
                take(engine, key::RECORD, "b");
            },
            "b",
            "it has idempotency records, but no head",
        ),
        (
            |engine| {
                take(engine, key::HEAD, "b");
                take(engine, key::RECORD, "b");
            },
            "b",
            "it is in an index of conversations, but has no head",
        ),
    ];
    for (damage, name, detail) in table {
        let engine = store();
        damage(&engine);
        let log = open(&engine);
        let found = recovery::verify(log.core(), &mut |_, _| ()).unwrap().problems;
        let id = Some(Name::from(*name).id());
        assert!(
            found.iter().any(|problem| problem.conversation == id && problem.detail == *detail),
            "{detail}: {found:?}"
        );
    }
}

#[test]
fn a_key_of_the_listing_that_is_none_is_told() {
    let engine = store();
    engine.write(Batch { ops: vec![(vec![key::INDEX, 1], Some(Vec::new()))] }).unwrap();
    assert_eq!(problems(&open(&engine)), ["store: a key of an index of conversations cannot be read"]);
}

#[test]
fn a_record_under_another_index_is_told() {
    let engine = store();
    let id = Name::from("a").id();
    // What would be there if the index had begun again with the second append.
    let body = record::Body::messages(&[Message::user("three")], 5).unwrap();
    let header =
        record::Header { time: 1, base: 0, next_message_index: 3, commit: 1, cut: false, deleted: false, origin: None };
    let (key, value) = record::seal_record(id, 3, &header, body).unwrap();
    engine.write(Batch { ops: vec![(key, Some(value))] }).unwrap();
    let found = recovery::verify(open(&engine).core(), &mut |_, _| ()).unwrap().problems;
    let detail = "the indexes of its messages do not follow those before it";
    assert!(found.iter().any(|problem| problem.seq == Some(3) && problem.detail == detail), "{found:?}");
}

/// A store with a conversation that nothing identifies but, perhaps, the list.
fn unknown(name: &Name, is_listed: bool) -> Arc<Memory> {
    let engine = Arc::new(Memory::default());
    let log = open(&engine);
    log.core().appender.append(name, &[Message::user("text")], &Changes::new(), &AppendOptions::new()).unwrap();
    drop(log);
    let damaged = [key::head(name.id()), key::record(name.id(), 1)];
    engine.write(Batch { ops: damaged.map(|key| (key, Some(vec![1, 2, 3]))).into() }).unwrap();
    if !is_listed {
        take(&*engine, key::INDEX, name);
    }
    engine
}

#[test]
fn what_nothing_identifies_is_deleted_by_its_owner_or_without_one() {
    let named = Name::from("chat").with_owner("ada");
    // Its id is that of the key without an owner.
    let id_of_a_key = Name::from(Name::from("chat").id()).with_owner("ada");
    let by_id = Name::from(named.id());
    let [ada, eve] = ["ada", "eve"].map(|owner| by_id.clone().with_owner(owner));
    let (not_found, damaged) = (Some("not_found"), Some("corrupt"));
    let table = [
        (&named, true, &named, None),
        (&named, true, &by_id, None),
        (&named, true, &ada, None),
        (&named, true, &eve, not_found),
        (&named, false, &named, None),
        (&named, false, &by_id, None),
        // Nobody knows.
        (&named, false, &ada, damaged),
        (&named, false, &eve, damaged),
        (&id_of_a_key, true, &id_of_a_key, None),
        (&id_of_a_key, true, &Name::from("chat"), not_found),
    ];
    for (conversation, is_listed, name, error) in table {
        let engine = unknown(conversation, is_listed);
        let log = open(&engine);
        let before = all(&*engine);
        let deleted = log.core().families.delete(name, None);
        let shown = format!("{conversation:?}, listed: {is_listed}, {name:?}: {deleted:?}");
        assert_eq!(deleted.as_ref().err().map(Error::code), error, "{shown}");
        let is_left = engine.get(&key::record(conversation.id(), 1)).unwrap().is_some();
        assert_eq!(is_left, error.is_some(), "{shown}");
        assert!(error.is_none() || all(&*engine) == before, "{shown}");
        if error.is_none() {
            let again = log
                .core()
                .appender
                .append(conversation, &[Message::user("again")], &Changes::new(), &AppendOptions::new())
                .unwrap();
            assert_eq!(again.first_seq, 1, "{shown}");
        }
    }
}

#[test]
fn an_index_that_is_damaged_is_told_and_made_anew() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::default());
    let clock = Arc::new(|| Timestamp::from_micros(0));
    let log = Embedded::open(Arc::clone(&engine), clock, Duration::from_secs(3600), Opening::default()).unwrap();
    let (core, name) = (log.core(), Name::from("chat"));
    let said = Message::assistant(["a", "b"].map(|id| Chunk { id: Some(id.to_owned()), ..Chunk::text(id) }));
    core.appender.append(&name, &[said], &Changes::new(), &AppendOptions::new()).unwrap();
    let id = name.id();
    let keys = stored::item_keys(&*engine, id, u64::MAX).unwrap();
    assert_eq!(keys.len(), 2);
    let problems = |log: &Embedded| -> Vec<String> {
        let verified = recovery::verify(log.core(), &mut |_, _| ()).unwrap();
        verified.problems.into_iter().map(|problem| problem.detail).collect()
    };
    assert_eq!(problems(&log), Vec::<String>::new());

    let mut batch = Batch::default();
    batch.remove(keys.first().unwrap().clone());
    batch.put(key::item(id, &[7; 16], 2), Vec::new());
    batch.put(key::item(Name::from("nobody").id(), &[7; 16], 1), Vec::new());
    engine.write(batch).unwrap();
    let wanted =
        ["the index of its item ids is not what its entries give", "it is in the index of item ids, but has no head"];
    assert_eq!(problems(&log), wanted);

    recovery::rebuild_all(&*engine, true).unwrap();
    assert_eq!(problems(&log), Vec::<String>::new());
    assert_eq!(stored::item_keys(&*engine, id, u64::MAX).unwrap(), keys);
    assert_eq!(stored::item_keys(&*engine, Name::from("nobody").id(), u64::MAX).unwrap(), BTreeSet::new());
}

/// What an opening does not mend by itself: nobody writes.
#[test]
fn verify_tells_an_unfinished_message_that_nothing_began() {
    let engine = store();
    change_head(&engine, "a", |head| head.open = vec![2]);
    let found = problems(&open_as(&engine, Opening { read_only: true, ..Opening::default() }));
    let wanted = "the head's unfinished messages are not those of its records";
    assert!(found.iter().any(|problem| problem.ends_with(wanted)), "{found:?}");
}
