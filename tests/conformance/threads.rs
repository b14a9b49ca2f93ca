//! Sixteen threads at once: every append gets its own seqs and message indexes, without gap or repeat.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::place::Place;
use conversation_store::model::{Chunk, FinishReason, Message, Metadata, Role};
use conversation_store::{AppendOptions, Begun, Durability, Error, ExpectedHead, Receipt, Store, StoreOptions};

crate::tests![
    on_one_conversation,
    on_many_conversations,
    with_writers_side_by_side,
    readers_see_whole_prefixes_only,
    of_appends_with_one_key_one_is_written,
    a_key_is_appended_once_to_a_conversation_that_is_there,
    of_different_contents_under_one_key_one_is_appended,
    of_tabs_that_answer_at_once_one_begins,
    of_appends_that_expect_one_head_one_is_taken,
    structure_changes_beside_appends,
];

const THREADS: usize = 16;

/// A text that tells who wrote it, and as which.
fn said(thread: usize, append: usize, message: usize) -> String {
    format!("{thread}/{append}/{message}")
}

/// Appends from all threads, every third buffered; gives all receipts with what was said.
fn append_all(
    buffers: bool,
    store: &Store,
    appends: usize,
    name: impl Fn(usize, usize) -> String + Sync,
) -> Vec<(Receipt, Vec<String>)> {
    let start = Barrier::new(THREADS);
    let receipts = thread::scope(|scope| {
        let (start, name) = (&start, &name);
        let threads = (0..THREADS).map(|thread| {
            scope.spawn(move || {
                start.wait();
                let append = |append: usize| {
                    let texts: Vec<String> = (0..1 + append % 3).map(|message| said(thread, append, message)).collect();
                    let messages: Vec<Message> = texts.iter().map(Message::user).collect();
                    let durability = if append % 3 == 1 { Durability::Buffered } else { Durability::Durable };
                    let options = AppendOptions::new().with_durability(durability);
                    let receipt = store.append_with(name(thread, append), &messages, &options).unwrap();
                    assert_eq!(receipt.durable, durability == Durability::Durable || !buffers);
                    assert!(!receipt.duplicate);
                    (receipt, texts)
                };
                (0..appends).map(append).collect::<Vec<_>>()
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    store.sync().unwrap();
    receipts
}

/// The receipts of one conversation cover its seqs and message indexes, and what stands there is what was said.
fn assert_covered(store: &Store, name: &str, receipts: &[&(Receipt, Vec<String>)]) {
    let mut seqs = BTreeSet::new();
    let mut texts = BTreeMap::new();
    for (receipt, said) in receipts {
        assert_eq!(receipt.message_indexes.len(), said.len());
        assert_eq!(receipt.last_seq - receipt.first_seq + 1, said.len() as u64);
        for ((seq, index), text) in (receipt.first_seq..).zip(&receipt.message_indexes).zip(said) {
            assert!(seqs.insert(seq), "seq {seq} was given twice");
            assert!(texts.insert(*index, (seq, text.clone())).is_none(), "message {index} was given twice");
        }
    }
    let count = seqs.len() as u64;
    assert_eq!(seqs, (1..=count).collect());
    assert_eq!(texts.keys().copied().collect::<BTreeSet<_>>(), (0..count).collect());
    let loaded = store.load_raw(name).unwrap();
    assert_eq!(loaded.len() as u64, count);
    for stored in loaded {
        let (seq, text) = &texts[&stored.index];
        assert_eq!((stored.first_seq, &stored.message.chunks), (*seq, &vec![Chunk::text(text)]));
    }
    let entries = store.entries(name, .., usize::MAX).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), (1..=count).collect::<Vec<_>>());
}

fn on_one_conversation(place: &Place) {
    let store = place.quick_store();
    let receipts = append_all(place.buffers(), &store, 60, |_, _| "one".to_owned());
    assert_covered(&store, "one", &receipts.iter().collect::<Vec<_>>());
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

fn on_many_conversations(place: &Place) {
    let store = place.quick_store();
    let name = |thread: usize, append: usize| format!("conversation {}", (thread * 7 + append) % 20);
    let receipts = append_all(place.buffers(), &store, 60, name);
    for at in 0..20 {
        let name = format!("conversation {at}");
        let id = store.describe(&name).unwrap().id;
        let own: Vec<_> = receipts.iter().filter(|(receipt, _)| receipt.conversation == id).collect();
        assert!(own.len() > THREADS);
        assert_covered(&store, &name, &own);
    }
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

fn with_writers_side_by_side(place: &Place) {
    let store = place.quick_store();
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, start) = (&store, &start);
            scope.spawn(move || {
                start.wait();
                for _ in 0..5 {
                    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
                    for piece in 0..20 {
                        writer.push(0, Chunk::text(format!("{thread}.{piece} "))).unwrap();
                        writer.push(1, Chunk::thinking(format!("{thread} "))).unwrap();
                        if piece % 10 == 0 {
                            store.append("chat", &[Message::user("meanwhile")]).unwrap();
                        }
                    }
                    writer.finish(Some(FinishReason::Stop), None).unwrap();
                }
            });
        }
    });
    let messages = store.load_raw("chat").unwrap();
    let mut answers = BTreeMap::new();
    for stored in messages.iter().filter(|stored| stored.message.role == Role::Assistant) {
        *answers.entry(format!("{:?}", stored.message.chunks)).or_insert(0) += 1;
    }
    let expected = (0..THREADS).map(|thread| {
        let text: String = (0..20).map(|piece| format!("{thread}.{piece} ")).collect();
        let thinking = format!("{thread} ").repeat(20);
        (format!("{:?}", vec![Chunk::text(text), Chunk::thinking(thinking)]), 5)
    });
    assert_eq!(answers, expected.collect());
    assert_eq!(messages.len(), THREADS * 5 * 3);
    let entries = store.entries("chat", .., usize::MAX).unwrap();
    assert!(entries.iter().map(|entry| entry.seq).eq(1..=entries.len() as u64));
}

fn readers_see_whole_prefixes_only(place: &Place) {
    let store = place.quick_store();
    store.append("chat", &[Message::user("first"), Message::user("second")]).unwrap();
    let done = AtomicBool::new(false);
    let read = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut before = 0;
                while !done.load(Ordering::Acquire) {
                    let messages = store.load_raw("chat").unwrap();
                    assert!(messages.iter().map(|stored| stored.index).eq(0..messages.len() as u64));
                    // Every append has two messages: none is half there.
                    assert!(messages.len().is_multiple_of(2) && messages.len() >= before);
                    before = messages.len();
                    read.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for append in 0..400 {
            let durability = if append % 2 == 0 { Durability::Buffered } else { Durability::Durable };
            let options = AppendOptions::new().with_durability(durability);
            store.append_with("chat", &[Message::user("a"), Message::user("b")], &options).unwrap();
        }
        // The readers may come to run late.
        while read.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        done.store(true, Ordering::Release);
    });
    assert_eq!(store.load_raw("chat").unwrap().len(), 802);
}

fn of_appends_with_one_key_one_is_written(place: &Place) {
    let store = place.quick_store();
    let start = Barrier::new(8);
    let append = || {
        start.wait();
        let options = AppendOptions::new().with_idempotency_key("request");
        store.append_with("chat", &[Message::user("once")], &options).unwrap()
    };
    let receipts: Vec<Receipt> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(append)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(receipts.iter().filter(|receipt| !receipt.duplicate).count(), 1);
    for receipt in receipts {
        assert_eq!((receipt.first_seq, receipt.last_seq, receipt.message_indexes), (1, 1, vec![0]));
        assert!(receipt.durable);
    }
    assert_eq!(store.load_raw("chat").unwrap().len(), 1);
}

/// What becomes of appends that threads make at once with one key: `said` by each thread.
fn at_once(
    store: &Store,
    name: &str,
    key: &str,
    threads: usize,
    said: impl Fn(usize) -> String + Sync,
) -> Vec<Result<Receipt, Error>> {
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        let (start, said) = (&start, &said);
        let append = move |thread: usize| {
            let durability = if thread.is_multiple_of(2) { Durability::Durable } else { Durability::Buffered };
            let options = AppendOptions::new().with_idempotency_key(key).with_durability(durability);
            start.wait();
            store.append_with(name, &[Message::user(said(thread))], &options)
        };
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || append(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn a_key_is_appended_once_to_a_conversation_that_is_there(place: &Place) {
    let url = place.url();
    let store = StoreOptions::new().with_window(Duration::from_millis(1)).open(&url).unwrap();
    store.append("chat", &[Message::user("first")]).unwrap();
    let (mut doubled, mut wrong) = (Vec::new(), Vec::new());
    let mut seqs = Vec::new();
    for round in 0..300 {
        let (threads, key) = (if round % 2 == 0 { 2 } else { THREADS }, format!("key {round}"));
        let results = at_once(&store, "chat", &key, threads, |_| key.clone());
        let receipts: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        if receipts.iter().filter(|receipt| !receipt.duplicate).count() != 1 {
            doubled.push(round);
        }
        let range = |receipt: &Receipt| (receipt.first_seq, receipt.last_seq);
        if receipts.iter().any(|receipt| range(receipt) != range(&receipts[0])) {
            wrong.push(round);
        }
        seqs.push((key, receipts[0].first_seq));
    }
    assert!(doubled.is_empty() && wrong.is_empty(), "{url}: doubled {doubled:?}, unlike {wrong:?}");
    // And across restarts.
    store.close().unwrap();
    drop(store);
    if !place.survives() {
        return;
    }
    let store = Store::open(&url).unwrap();
    assert_eq!(store.load_raw("chat").unwrap().len(), 301);
    for (key, first_seq) in seqs {
        let options = AppendOptions::new().with_idempotency_key(&key);
        let receipt = store.append_with("chat", &[Message::user(&key)], &options).unwrap();
        assert_eq!((receipt.first_seq, receipt.duplicate, receipt.durable), (first_seq, true, true));
    }
    assert_eq!(store.load_raw("chat").unwrap().len(), 301);
}

fn of_different_contents_under_one_key_one_is_appended(place: &Place) {
    let url = place.url();
    let store = StoreOptions::new().with_window(Duration::from_millis(1)).open(&url).unwrap();
    store.append("chat", &[Message::user("first")]).unwrap();
    let mut wrong = Vec::new();
    for round in 0..300 {
        let threads = if round % 2 == 0 { 2 } else { THREADS };
        let results = at_once(&store, "chat", &format!("key {round}"), threads, |thread| thread.to_string());
        let reused = results.iter().filter(|result| matches!(result, Err(Error::KeyReused { .. }))).count();
        if reused != threads - 1 {
            wrong.push(round);
        }
    }
    assert_eq!(wrong, Vec::<i32>::new(), "{url}");
    store.sync().unwrap();
    assert_eq!(store.load_raw("chat").unwrap().len(), 301);
}

fn of_tabs_that_answer_at_once_one_begins(place: &Place) {
    let url = place.url();
    let store = StoreOptions::new().with_window(Duration::from_millis(1)).open(&url).unwrap();
    for round in 0..50 {
        let asked = store.append("chat", &[Message::user("question")]).unwrap().last_seq;
        let key = format!("request {round}");
        let start = Barrier::new(THREADS);
        let begin = |thread: usize| {
            // Half of them are one request that is repeated, the others are requests of their own.
            let options = AppendOptions::new().with_expected(ExpectedHead::At(asked));
            let own = format!("{key} of {thread}");
            let options = options.with_idempotency_key(if thread.is_multiple_of(2) { &key } else { &own });
            start.wait();
            store.begin_with("chat", Role::Assistant, Metadata::default(), &options)
        };
        let results: Vec<_> = thread::scope(|scope| {
            let begin = &begin;
            let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || begin(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (mut writers, mut duplicates) = (Vec::new(), 0);
        for result in results {
            match result {
                Ok(Begun::Writer(writer)) => writers.push(writer),
                Ok(Begun::Duplicate(receipt)) => {
                    assert!(receipt.duplicate && receipt.durable && receipt.first_seq == asked + 1);
                    duplicates += 1;
                }
                Err(error) => assert!(matches!(error, Error::StaleHead { .. }), "{error}"),
            }
        }
        assert_eq!(writers.len(), 1);
        assert!([0, THREADS / 2 - 1].contains(&duplicates), "{duplicates} duplicates");
        writers.remove(0).finish(Some(FinishReason::Stop), None).unwrap();
    }
    assert_eq!(store.load_raw("chat").unwrap().len(), 100);
    store.close().unwrap();
    drop(store);
    if !place.survives() {
        return;
    }
    // Another opening, and so another epoch, knows the key; its message is not another's.
    let store = Store::open(&url).unwrap();
    let options = AppendOptions::new().with_idempotency_key("answer");
    let begin = |store: &Store, role| store.begin_with("chat", role, Metadata::default(), &options);
    assert!(matches!(begin(&store, Role::Assistant).unwrap(), Begun::Writer(_)));
    drop(store);
    let store = Store::open(&url).unwrap();
    assert!(matches!(begin(&store, Role::Assistant).unwrap(), Begun::Duplicate(_)));
    assert!(matches!(begin(&store, Role::User), Err(Error::KeyReused { .. })));
    let appended = store.append_with("chat", &[Message::new(Role::Assistant, [])], &options);
    assert!(matches!(appended, Err(Error::KeyReused { .. })));
}

fn of_appends_that_expect_one_head_one_is_taken(place: &Place) {
    let store = place.store();
    store.append("chat", &[Message::user("a")]).unwrap();
    let start = Barrier::new(THREADS);
    let append = || {
        start.wait();
        let options = AppendOptions::new().with_expected(ExpectedHead::At(1));
        store.append_with("chat", &[Message::user("b")], &options)
    };
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(append)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let conflicts = results.iter().filter(|result| matches!(result, Err(Error::StaleHead { actual: 2, .. })));
    assert_eq!(conflicts.count(), THREADS - 1);
}

fn structure_changes_beside_appends(place: &Place) {
    let store = place.quick_store();
    store.append("root", &[Message::user("a")]).unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for round in 0..10 {
                    store.append("root", &[Message::user("b")]).unwrap();
                    let fork = format!("fork {thread} {round}");
                    store.fork_to("root", None, &fork).unwrap();
                    let shared = store.load_raw(&fork).unwrap().len();
                    store.append(&fork, &[Message::user("own")]).unwrap();
                    assert_eq!(store.load_raw(&fork).unwrap().len(), shared + 1);
                    if round % 2 == 0 {
                        store.delete(&fork).unwrap();
                    } else {
                        store.rewind(&fork, 0).unwrap();
                        assert_eq!(store.load_raw(&fork).unwrap(), []);
                    }
                }
            });
        }
    });
    assert_eq!(store.load_raw("root").unwrap().len(), 1 + THREADS * 10);
    let found = store.verify(|_, _| ()).unwrap();
    assert_eq!((found.problems, found.conversations), (vec![], 1 + THREADS as u64 * 5));
}
