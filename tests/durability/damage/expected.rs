//! A store of a thousand conversations, and what it holds.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use conversation_store::model::{Body, Chunk, FinishReason, Message, Metadata, Output, Role};
use conversation_store::{AppendOptions, Store, StoredMessage};

use crate::common::program::copy;

const CONVERSATIONS: usize = 1000;
/// So many of them have been deleted.
const DELETED: usize = 20;
/// Texts that are said in many of them.
const AGAIN: &str = "again";
pub(crate) const AFTER: &str = "after";
const LARGE: (&str, usize) = ("large ", 30_000);
const STREAMED: (&str, usize) = ("streamed ", 100);

/// The visible messages of a conversation: index and digest.
pub(crate) type Said = Vec<(u64, u64)>;

/// What a conversation holds.
pub(crate) struct Kept {
    pub(crate) last_seq: u64,
    pub(crate) said: Said,
}

/// All conversations, by their keys.
pub(crate) type Expected = BTreeMap<String, Kept>;

fn name(number: usize) -> String {
    format!("chat {number}")
}

/// Makes `closed`, `killed`, and `expected` in a directory.
pub(crate) fn make(engine: &str, dir: &Path) {
    let db = dir.join("original");
    let open = || Store::open(&format!("{engine}:{}?sync=never", db.display())).unwrap();
    write(&open(), 0);
    let store = open();
    write(&store, 1);
    store.sync().unwrap();
    copy(&db, &dir.join("killed"));
    store.close().unwrap();
    drop(store);
    copy(&db, &dir.join("closed"));
    let store = open();
    let mut text = String::new();
    for number in 0..CONVERSATIONS + DELETED {
        let name = name(number);
        match store.load_raw(&name) {
            Ok(messages) => {
                let last_seq = store.describe(&name).unwrap().last_seq;
                let said: Vec<String> = said(&messages).iter().map(|(at, digest)| format!("{at}={digest}")).collect();
                writeln!(text, "{name}\t{last_seq}\t{}", said.join(",")).unwrap();
            }
            Err(error) => assert!(number >= CONVERSATIONS, "{name}: {error}"),
        }
    }
    fs::write(dir.join("expected"), text).unwrap();
    fs::remove_dir_all(db).unwrap();
}

pub(crate) fn read(path: &Path) -> Expected {
    let text = fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let mut fields = line.split('\t');
        let mut field = || fields.next().unwrap();
        let (name, last_seq, said) = (field(), field(), field());
        let pair = |pair: &str| {
            let (at, digest) = pair.split_once('=').unwrap();
            (at.parse().unwrap(), digest.parse().unwrap())
        };
        let said = said.split(',').filter(|pair| !pair.is_empty()).map(pair).collect();
        (name.to_owned(), Kept { last_seq: last_seq.parse().unwrap(), said })
    };
    text.lines().map(line).collect()
}

pub(crate) fn said(messages: &[StoredMessage]) -> Said {
    messages.iter().map(|stored| (stored.index, digest(stored))).collect()
}

fn digest(stored: &StoredMessage) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{stored:?}").hash(&mut hasher);
    hasher.finish()
}

fn text(number: usize, pass: usize, round: usize, part: usize) -> String {
    format!("{number} {pass} {round} {part} ").repeat(90 + (number * 7 + round) % 190)
}

/// Whether each text of a message was said in this conversation, or in the one that it was forked from.
pub(crate) fn was_said(name: &str, message: &Message) -> bool {
    let number: usize = name.split(' ').next_back().unwrap().parse().unwrap();
    message.chunks.iter().all(|chunk| {
        let (Body::Text { text, .. } | Body::ToolResult { output: Output::Text(text), .. }) = &chunk.body else {
            return true;
        };
        if [LARGE, STREAMED].iter().any(|(word, times)| *text == word.repeat(*times)) {
            return true;
        }
        let mut words = text.split(' ').map(str::parse);
        match [(); 4].map(|()| words.next()) {
            [Some(Ok(from)), Some(Ok(pass)), Some(Ok(round)), Some(Ok(part))] => {
                (from == number || is_fork(number) && from + 1 == number)
                    && *text == self::text(from, pass, round, part)
            }
            _ => [AGAIN, AFTER, "[redacted]"].contains(&text.as_str()),
        }
    })
}

const fn is_fork(number: usize) -> bool {
    number % 50 == 49
}

/// What belongs to all conversations in one pass: each is spread over the log, as in use.
fn write(store: &Store, pass: usize) {
    for round in 0..3 {
        for number in 0..CONVERSATIONS + DELETED {
            let name = name(number);
            if is_fork(number) && pass == 0 && round == 0 {
                store.fork_to(self::name(number - 1), None, &name).unwrap();
                continue;
            }
            let text = |part| text(number, pass, round, part);
            let call = Chunk::tool_call(format!("call {pass} {round}"), "read", format!("{{\"path\":\"{name}\"}}"));
            let messages = match (number + round) % 3 {
                0 => vec![Message::user(text(0)), Message::assistant([Chunk::thinking("Hm."), Chunk::text(text(1))])],
                1 => vec![Message::assistant([call]), Message::tool(format!("call {pass} {round}"), text(2))],
                _ => vec![Message::user(text(3))],
            };
            let options = match number % 4 {
                0 => AppendOptions::new().with_idempotency_key(format!("{pass} {round}")),
                _ => AppendOptions::new(),
            };
            // Half of them rest in the second pass.
            if pass == 0 || number % 2 == 0 {
                store.append_with(&name, &messages, &options).unwrap();
            }
        }
    }
    for number in (0..CONVERSATIONS).step_by(40) {
        let mut writer = store.begin(name(number), Role::Assistant, Metadata::default()).unwrap();
        writer.push(0, Chunk::text(STREAMED.0.repeat(STREAMED.1))).unwrap();
        if number % 80 == 0 {
            writer.finish(Some(FinishReason::Stop), None).unwrap();
        }
    }
    for number in (3..CONVERSATIONS).step_by(70) {
        let last = store.newest_messages(name(number), 1).unwrap()[0].index;
        store.rewind(name(number), last).unwrap();
        store.append(name(number), &[Message::user(AGAIN)]).unwrap();
        store.redact(name(number + 1), 0, None).unwrap();
        store.append(name(number + 2), &[Message::user(LARGE.0.repeat(LARGE.1))]).unwrap();
    }
    if pass == 1 {
        for number in CONVERSATIONS..CONVERSATIONS + DELETED {
            store.delete(name(number)).unwrap();
        }
    }
}
