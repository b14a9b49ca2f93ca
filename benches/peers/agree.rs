//! Before anything is measured: all engines do the same job, and give back the same.

use conversation_store::model::Timestamp;
use conversation_store::{Entry, StoredMessage};

use crate::engines::{Listed, Peer};
use crate::texts::{Texts, conversation};
use crate::workloads::Bench;

/// What an engine gives back, without the times of its clock.
#[derive(Debug, PartialEq)]
struct Answers {
    chat: Vec<StoredMessage>,
    turns: Vec<StoredMessage>,
    streamed: Vec<StoredMessage>,
    tail: Vec<Entry>,
    list: Vec<Listed>,
}

/// Compares all engines that read.
pub(crate) fn check(bench: &Bench) {
    let readers = bench.engines(|engine| engine.reads);
    let mut answers = Vec::new();
    for engine in &readers {
        let path = bench.path("agree", engine);
        let peer = (engine.open)(&path);
        write(&*peer);
        answers.push(read(&*peer));
        peer.close();
        if engine.keeps {
            let again = (engine.open)(&path);
            assert_eq!(read(&*again).turns, answers.last().unwrap().turns, "{}, opened again", engine.name);
            again.close();
        }
    }
    for (engine, answer) in readers.iter().zip(&answers) {
        assert_eq!(*answer, answers[0], "{} gives back something else than {}", engine.name, readers[0].name);
    }
    bench.remove("agree");
    eprintln!("{} engines give back the same", readers.len());
}

fn write(peer: &dyn Peer) {
    let mut texts = Texts::new();
    let (chat, turn) = (texts.chat(7, 300), texts.agent_turn(200));
    peer.append(conversation(0), None, &chat);
    for round in 0..3 {
        // Twice, and stored once.
        for _ in 0..2 {
            peer.append(conversation(1), Some(&format!("key-{round}")), &turn);
        }
        peer.append(conversation(0), None, &turn);
    }
    peer.fill(&mut std::iter::repeat_n((conversation(1), turn.as_slice()), 3));
    let deltas = texts.deltas(20, 20);
    peer.append(conversation(2), None, &chat);
    peer.stream(conversation(2), &deltas);
}

fn read(peer: &dyn Peer) -> Answers {
    let untimed = |mut messages: Vec<StoredMessage>| {
        for stored in &mut messages {
            assert!(stored.message.metadata.created_at.take().is_some());
        }
        messages
    };
    let epoch = Timestamp::from_micros(0);
    let mut streamed = untimed(peer.load(conversation(2)));
    for stored in &mut streamed {
        // How many entries the deltas became is each one's own affair.
        stored.last_seq = 0;
    }
    let mut tail = peer.tail(conversation(0), 10);
    tail.iter_mut().for_each(|entry| entry.created_at = epoch);
    let mut list = peer.list(50);
    // A minute may have ended in between.
    list.sort_by_key(|item| item.id);
    for item in &mut list {
        (item.created, item.last_activity) = (epoch, epoch);
        if item.id == conversation(2) {
            item.last_seq = 0;
        }
    }
    Answers {
        chat: untimed(peer.load(conversation(0))),
        turns: untimed(peer.load(conversation(1))),
        streamed,
        tail,
        list,
    }
}
