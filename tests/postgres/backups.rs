//! Backups go from any log to any other, with the same bytes of log.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use conversation_store::model::{Chunk, FinishReason, Json, Message, Metadata, Name, Role, Timestamp};
use conversation_store::{AppendOptions, NewConversation, Store, StoreOptions};

/// Everything that a log can hold: forks of forks, deleted parents, redactions, streams, keys, owners, tags.
fn fill(store: &Store) {
    let user = |text: &str| Message::user(text);
    for at in 0..30 {
        let name = Name::from(format!("chat {at}")).with_owner(if at % 3 == 0 { "ada" } else { "" });
        let options = AppendOptions::new().with_idempotency_key(format!("key {at}"));
        store.append_with(&name, &[user("one"), user("two\0zero"), user("three")], &options).unwrap();
        let mut answer = Message::assistant([Chunk::text("answer"), Chunk::tool_call("call", "tool", "{}")]);
        answer.metadata.id = Some(format!("item {at}"));
        store.append(&name, &[answer]).unwrap();
        let mut writer = store.begin(&name, Role::Assistant, Metadata::default()).unwrap();
        for word in ["a", "b", "c"] {
            writer.push(0, Chunk::text(word)).unwrap();
            store.sync().unwrap();
        }
        writer.finish(Some(FinishReason::Stop), Some(Json::new("{\"total\":3}").unwrap())).unwrap();
        store.tag(&name, &["work", "later"]).unwrap();
        match at % 5 {
            0 => drop(store.rewind(&name, 3).unwrap()),
            1 => drop(store.redact(&name, 1, None).unwrap()),
            2 => drop(store.remove(&name, 0, None).unwrap()),
            3 => drop(store.summarize(&name, 2, "so far").unwrap()),
            _ => drop(store.begin(&name, Role::Assistant, Metadata::default()).unwrap()),
        }
        let owned = |text: String| Name::from(text).with_owner(if at % 3 == 0 { "ada" } else { "" });
        let (fork, of_fork) = (owned(format!("fork {at}")), owned(format!("fork of fork {at}")));
        store.fork_to(&name, Some(2 + at % 4), &fork).unwrap();
        if at % 2 == 0 {
            store.append(&fork, &[user("own"), user("more")]).unwrap();
        }
        store.fork_to(&fork, None, &of_fork).unwrap();
        if at % 4 == 0 {
            store.delete(&name).unwrap();
        }
        if at % 7 == 0 {
            store.delete(&fork).unwrap();
        }
    }
    store.create("made", &NewConversation::new().with_title("Made").with_tag("work")).unwrap();
    store.append("large", &[user(&"x".repeat(3_000_000))]).unwrap();
    // The message of a writer that is gone is ended in the background.
    store.sync().unwrap();
}

/// All that is read of a store.
fn read(store: &Store) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for owner in ["", "ada"] {
        let query = conversation_store::ListQuery::new().with_owner(owner).with_limit(1000);
        for item in store.list(&query).unwrap().items {
            let entries = store.entries(item.id, .., usize::MAX).unwrap();
            let loaded = store.load_raw(item.id).unwrap();
            all.insert(item.id.to_string(), format!("{item:?}\n{entries:?}\n{loaded:?}"));
        }
    }
    all
}

/// Keys and values of a backup: without what belongs to the store that wrote it.
fn pairs(file: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let bytes = fs::read(file).unwrap();
    let (mut at, mut raw) = (12, Vec::new());
    loop {
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let (length, stored) = (number(at), number(at + 4));
        if length == 0 {
            break;
        }
        raw.extend(lz4_flex::block::decompress(&bytes[at + 12..at + 12 + stored], length).unwrap());
        at += 12 + stored;
    }
    let (mut pairs, mut at) = (BTreeMap::new(), 0);
    while at < raw.len() {
        let number = |at: usize| u32::from_be_bytes(raw[at..at + 4].try_into().unwrap()) as usize;
        let (key, value) = (number(at), number(at + 4));
        at += 8;
        pairs.insert(raw[at..at + key].to_vec(), raw[at + key..at + key + value].to_vec());
        at += key + value;
    }
    for name in ["mepoch", "mcommit"] {
        pairs.remove(name.as_bytes());
    }
    pairs
}

#[test]
fn a_backup_goes_from_sled_to_postgresql_and_back() {
    let Some(server) = crate::running() else { return };
    let dir = crate::common::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    // Times from before 1970 to after it.
    let clock = AtomicI64::new(-1_000_000_000);
    let now = move || Timestamp::from_micros(clock.fetch_add(7_000_000, Ordering::Relaxed));
    let sled = StoreOptions::new().with_clock(now).open(&format!("sled:{}", file("sled").display())).unwrap();
    fill(&sled);
    let known = read(&sled);
    assert!(known.len() > 60, "{}", known.len());
    sled.backup(file("1"), |_, _| ()).unwrap();
    let url = server.url();
    let moved = Store::restore(file("1"), &url, |_, _| ()).unwrap();
    assert_eq!(moved.conversations, known.len() as u64);
    let postgres = Store::open(&url).unwrap();
    assert_eq!(read(&postgres), known);
    assert_eq!(postgres.verify(|_, _| ()).unwrap().problems, []);
    postgres.backup(file("2"), |_, _| ()).unwrap();
    let (first, second) = (pairs(&file("1")), pairs(&file("2")));
    let differing: Vec<_> =
        first.iter().filter(|(key, value)| second.get(*key) != Some(value)).map(|(key, _)| key).collect();
    assert!(
        differing.is_empty(),
        "{} of {} differ: {:?}",
        differing.len(),
        first.len(),
        &differing[..differing.len().min(5)]
    );
    assert_eq!(first.len(), second.len());
    let again = format!("sled:{}", file("again").display());
    Store::restore(file("2"), &again, |_, _| ()).unwrap();
    let again = Store::open(&again).unwrap();
    assert_eq!(read(&again), known);
    assert_eq!(again.verify(|_, _| ()).unwrap().problems, []);
    // What was restored goes on.
    for store in [&postgres, &again] {
        let receipt = store.append_with(
            "chat 1",
            &["one", "two\0zero", "three"].map(Message::user),
            &AppendOptions::new().with_idempotency_key("key 1"),
        );
        assert!(receipt.unwrap().duplicate);
        store.append("fork 1", &[Message::user("on")]).unwrap();
        store.delete("fork of fork 1").unwrap();
        assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    }
    // Only into what is empty.
    assert!(Store::restore(file("1"), &url, |_, _| ()).is_err());
}

#[test]
fn a_store_that_began_on_postgresql_goes_to_sled() {
    let Some(server) = crate::running() else { return };
    let dir = crate::common::tempdir().unwrap();
    let postgres = Store::open(&server.url()).unwrap();
    fill(&postgres);
    let known = read(&postgres);
    assert_eq!(postgres.verify(|_, _| ()).unwrap().problems, []);
    let file = dir.path().join("backup");
    postgres.backup(&file, |_, _| ()).unwrap();
    assert_eq!(read(&Store::open(&format!("backup:{}", file.display())).unwrap()), known);
    let url = format!("sled:{}", dir.path().join("sled").display());
    Store::restore(&file, &url, |_, _| ()).unwrap();
    let sled = Store::open(&url).unwrap();
    assert_eq!(read(&sled), known);
    assert_eq!(sled.verify(|_, _| ()).unwrap().problems, []);
}
