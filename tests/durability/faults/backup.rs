//! A backup is one moment, and nothing that its caller does meanwhile blocks.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use conversation_store::model::Message;
use conversation_store::{AppendOptions, Durability, Store};

use crate::common::program::number;
use crate::faults::{Place, said, say, texts, user, within};

fn open_backup(place: &Place, name: &str) -> Store {
    Store::open(&format!("backup:{}", place.file(name).display())).unwrap()
}

// 31

#[test]
fn a_backup_under_load_is_one_moment_across_conversations() {
    const CONVERSATIONS: usize = 2000;
    let place = Place::new();
    // With syncs: the writer must not outrun the backup.
    let store = Store::open(&format!("sled:{}", place.path().display())).unwrap();
    let name = |at: usize| format!("chat {at}");
    for at in 0..CONVERSATIONS {
        let text = "long ago ".repeat(200);
        let buffered = AppendOptions::new().with_durability(Durability::Buffered);
        store.append_with(name(at), &[Message::user(text)], &buffered).unwrap();
    }
    let (mut torn, mut shown) = (0, Vec::new());
    let backups = number("CONVO_FAULT_BACKUPS", 10);
    for backup in 0..backups {
        let stop = AtomicBool::new(false);
        // One writer, each append acknowledged before the next: what a backup holds must be a prefix of this.
        let order = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut order = Vec::new();
                for round in 1.. {
                    for at in (0..CONVERSATIONS).step_by(37) {
                        if stop.load(Ordering::Acquire) {
                            return order;
                        }
                        let text = format!("{backup} {round} {at}");
                        store.append(name(at), &[Message::user(&text)]).unwrap();
                        order.push((at, text));
                    }
                }
                order
            });
            store.backup(place.file(&format!("backup {backup}")), |_, _| ()).unwrap();
            stop.store(true, Ordering::Release);
            writer.join().unwrap()
        });
        let backup = open_backup(&place, &format!("backup {backup}"));
        let held: BTreeMap<usize, HashSet<String>> =
            (0..CONVERSATIONS).step_by(37).map(|at| (at, HashSet::from_iter(texts(&backup, &name(at))))).collect();
        let is_held: Vec<bool> = order.iter().map(|(at, text)| held[at].contains(text)).collect();
        let last = is_held.iter().rposition(|is_held| *is_held);
        let missing = last.map_or(0, |last| is_held[..last].iter().filter(|is_held| !**is_held).count());
        torn += u64::from(missing > 0);
        shown.push((missing, order.len()));
    }
    assert_eq!(torn, 0, "of {backups} backups; earlier appends that are missing, of all meanwhile: {shown:?}");
}

// 32

#[test]
fn a_fork_from_the_progress_of_a_backup_returns() {
    let place = Place::new();
    let store = place.open();
    say(&store, "chat", 1..=3);
    let file = place.file("backup");
    let used = store.clone();
    within("a backup whose progress forks", move || {
        used.backup(file, |done, _| used.fork_to("chat", None, format!("fork {done}")).unwrap()).unwrap();
    });
    assert_eq!(texts(&store, "fork 1"), said("chat", 1..=3));
    within("a fork after it", move || store.fork("chat", None).unwrap());
}

#[test]
fn a_redaction_and_a_deletion_from_the_progress_of_a_backup_return() {
    let place = Place::new();
    let store = place.open();
    ["a", "b", "c"].iter().for_each(|name| say(&store, name, 1..=3));
    let file = place.file("backup");
    let used = store.clone();
    within("a backup whose progress redacts and deletes", move || {
        used.backup(file, |done, _| {
            if done == 1 {
                used.redact("a", 0, None).unwrap();
                used.delete("b").unwrap();
            }
        })
        .unwrap();
    });
    assert_eq!(texts(&store, "c"), said("c", 1..=3));
}

#[test]
fn an_append_from_the_progress_of_verify_and_backup_returns() {
    let place = Place::new();
    let store = place.open();
    say(&store, "chat", 1..=3);
    let file = place.file("backup");
    let used = store.clone();
    within("verify and backup whose progress writes", move || {
        used.verify(|_, _| {
            used.fork("chat", None).unwrap();
        })
        .unwrap();
        used.backup(file, |_, _| {
            user(&used, "chat", "more").unwrap();
        })
        .unwrap();
    });
}

// 34

#[test]
fn a_backup_leaves_a_file_of_the_user_alone() {
    let place = Place::new();
    let store = place.open();
    say(&store, "chat", 1..=3);
    let precious = place.file("backup.partial");
    std::fs::write(&precious, "precious").unwrap();
    let made = store.backup(place.file("backup"), |_, _| ());
    assert_eq!(std::fs::read_to_string(&precious).ok().as_deref(), Some("precious"), "{made:?}");
}
