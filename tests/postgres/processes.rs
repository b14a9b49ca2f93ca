//! Many processes write one store.

use std::collections::{BTreeMap, BTreeSet};

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{AppendOptions, Begun, Error, ExpectedHead, Receipt, Store};

use crate::process::{Process, say, wait};

const PROCESSES: usize = 4;
const APPENDS: usize = 60;
/// In place of a key of one process.
const SHARED: &str = "shared";

/// Begins the answer that others begin too, round by round.
pub(crate) fn answer(arguments: &[&str]) {
    let store = Store::open(arguments[0]).unwrap();
    let own_key = arguments[1];
    say("ready");
    loop {
        let mut line = String::new();
        if std::io::stdin().read_line(&mut line).unwrap() == 0 {
            return;
        }
        let asked = store.describe("chat").unwrap().last_seq;
        let key = if own_key == SHARED { format!("request {asked}") } else { format!("{own_key} {asked}") };
        let options = AppendOptions::new().with_expected(ExpectedHead::At(asked)).with_idempotency_key(key);
        match store.begin_with("chat", Role::Assistant, Metadata::default(), &options) {
            Ok(Begun::Writer(mut writer)) => {
                writer.push(0, Chunk::text(format!("answer to {asked}"))).unwrap();
                writer.finish(None, None).unwrap();
                say("writer");
            }
            Ok(Begun::Duplicate(receipt)) => say(format!("duplicate {}", receipt.first_seq)),
            Err(Error::StaleHead { .. }) => say("stale"),
            Err(error) => say(error),
        }
    }
}

#[test]
fn of_processes_that_begin_one_answer_one_gets_it() {
    let Some(server) = crate::running() else { return };
    for is_shared in [false, true] {
        let url = server.url();
        let store = Store::open(&url).unwrap();
        store.append("chat", &[Message::user("first")]).unwrap();
        let keys: Vec<String> =
            (0..PROCESSES).map(|at| if is_shared { SHARED.to_owned() } else { format!("request of {at}") }).collect();
        let mut processes: Vec<_> = keys.iter().map(|key| Process::start("answer", &[&url, key])).collect();
        for process in &mut processes {
            assert_eq!(process.next().as_deref(), Some("ready"));
        }
        for round in 0..25 {
            let asked = store.append("chat", &[Message::user(format!("question {round}"))]).unwrap().last_seq;
            processes.iter_mut().for_each(Process::go);
            let said: Vec<_> = processes.iter_mut().map(|process| process.next().unwrap()).collect();
            // One that comes late finds another question's end, and begins its own answer: then the answers differ.
            let writers = said.iter().filter(|said| *said == "writer").count();
            let answers = store.load_raw("chat").unwrap();
            let to_this =
                answers.iter().filter(|stored| stored.message.chunks == [Chunk::text(format!("answer to {asked}"))]);
            assert_eq!(to_this.count(), 1, "round {round}: {said:?}");
            assert!(writers >= 1, "round {round}: {said:?}");
            let others = ["writer", "stale", "duplicate"];
            assert!(said.iter().all(|said| others.iter().any(|known| said.starts_with(known))), "{said:?}");
        }
        drop(processes);
        assert_eq!(store.unfinished().unwrap(), []);
        assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    }
}

/// Appends to one conversation that all share, with keys of which each is shared by all.
pub(crate) fn append(arguments: &[&str]) {
    let store = Store::open(arguments[0]).unwrap();
    say("ready");
    wait();
    for at in 0..APPENDS {
        let texts: Vec<_> =
            (0..1 + at % 3).map(|part| Message::user(format!("{}/{at}/{part}", arguments[1]))).collect();
        let receipt = store.append("chat", &texts).unwrap();
        say(format!("own {at} {}", shown(&receipt)));
        let options = AppendOptions::new().with_idempotency_key(format!("key {at}"));
        let receipt = store.append_with("chat", &[Message::user(format!("shared {at}"))], &options).unwrap();
        say(format!("shared {at} {} {}", receipt.duplicate, shown(&receipt)));
    }
}

fn shown(receipt: &Receipt) -> String {
    format!("{} {} {:?}", receipt.first_seq, receipt.last_seq, receipt.message_indexes)
}

#[test]
fn what_processes_append_at_once_has_no_hole_and_nothing_twice() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let store = Store::open(&url).unwrap();
    let mut processes: Vec<_> = (0..PROCESSES).map(|at| Process::start("append", &[&url, &at.to_string()])).collect();
    for process in &mut processes {
        assert_eq!(process.next().as_deref(), Some("ready"));
    }
    processes.iter_mut().for_each(Process::go);
    let said: Vec<String> = processes.into_iter().flat_map(Process::rest).collect();
    assert_eq!(said.len(), 2 * PROCESSES * APPENDS);
    let mut shared: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for line in &said {
        let (kind, rest) = line.split_once(' ').unwrap();
        let (at, rest) = rest.split_once(' ').unwrap();
        if kind == "shared" {
            shared.entry(at).or_default().push(rest.split_once(' ').unwrap());
        } else {
            assert!(taken.insert(rest), "two appends were answered alike: {line}");
        }
    }
    for (at, receipts) in shared {
        assert_eq!(receipts.len(), PROCESSES);
        assert_eq!(receipts.iter().filter(|(duplicate, _)| *duplicate == "false").count(), 1, "key {at}: {receipts:?}");
        assert!(receipts.iter().all(|(_, receipt)| *receipt == receipts[0].1), "key {at}: {receipts:?}");
    }
    let messages = store.load_raw("chat").unwrap();
    assert_eq!(messages.len(), PROCESSES * (APPENDS / 3) * 6 + APPENDS);
    let texts: BTreeSet<_> = messages.iter().map(|stored| format!("{:?}", stored.message.chunks)).collect();
    assert_eq!(texts.len(), messages.len());
    let entries = store.entries("chat", .., usize::MAX).unwrap();
    assert!(entries.iter().map(|entry| entry.seq).eq(1..=entries.len() as u64));
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}
