//! The bytes of version 1, what is read from them, and what becomes of them when they are damaged.

mod bytes;
mod damage;
mod reading;

use super::envelope::List;
use super::v1;
use super::{
    Body, Commit, ForkPoint, Fragment, Head, Header, InterruptCause, Lag, Line, Meta, Origin, Parent, Receipt, Record,
    Remove, Rewind, StoreInfo, TitleSource, Tombstone, key, role, seal, seal_record,
};
use crate::error::{Error, Result};
use crate::model::{Chunk, ConversationId, Extra, FinishReason, Json, Message, Metadata, Native, Role, Timestamp};

const ID: ConversationId = ConversationId::from_bytes(*b"0123456789abcdef");
const SEQ: u64 = 41;
const PARENT: Parent = Parent { conversation: *b"fedcba9876543210", at_seq: 40, incarnation: 1 << 40, commit: 251 };

fn header(origin: Option<Origin>) -> Header {
    Header {
        time: 1_700_000_000_000_001,
        base: 7,
        next_message_index: 9,
        commit: 300,
        cut: false,
        deleted: false,
        origin,
    }
}

fn origin() -> Origin {
    Origin {
        owner: "ada".to_owned(),
        key: Some("chat-42".to_owned()),
        incarnation: u64::MAX,
        created: -1,
        parent: Some(PARENT),
        last_hide: 12,
        last_meta: 13,
        first_message_index: 7,
    }
}

/// A record's value.
fn sealed(header: &Header, body: Body) -> Vec<u8> {
    seal_record(ID, SEQ, header, body).unwrap().1
}

fn json(text: &str) -> Json {
    Json::new(text).unwrap()
}

fn native() -> Option<Native> {
    Some(Native { wire: "wire".to_owned(), json: json("[1]") })
}

fn extra() -> Extra {
    let mut extra = Extra::new();
    extra.push("x", json("1.0"));
    extra.push("y\"", json("null"));
    extra
}

/// A message with everything that is known about one.
fn full_message() -> Message {
    let some = |text: &str| Some(text.to_owned());
    let chunk = Chunk { body: Chunk::text("a").body, id: some("i"), native: native(), extra: extra() };
    Message {
        role: Role::Assistant,
        chunks: vec![chunk, Chunk::text("b")],
        finish_reason: Some(FinishReason::Stop),
        usage: Some(json("{\"t\":1}")),
        metadata: Metadata {
            model: some("m"),
            provider: some("p"),
            created_at: Some(Timestamp::from_micros(-2)),
            turn_id: some("t"),
            step_id: some("s"),
            id: some("i"),
            native: native(),
            extra: extra(),
        },
    }
}

/// A record of every kind of entry.
fn entries() -> Vec<(&'static str, Body)> {
    let full = full_message();
    let with = |add: &dyn Fn(&mut Body) -> Result<()>| {
        let mut body = Body::new();
        add(&mut body).unwrap();
        body
    };
    let meta = |title, tags: Option<Vec<_>>, metadata| {
        Body::meta(&Meta { title, tags: tags.map(Vec::into_iter).map(List::from_iter), metadata, previous: 3 }).unwrap()
    };
    let summary = |tokens| Body::summary(&v1::Summary { through: 6, text: "s", tokens }).unwrap();
    let redact = |chunk| Body::new().with_entry(v1::REDACT, &v1::Redact { message: 7, chunk });
    let fragments = [(0, Chunk::text("a")), (300, Chunk::tool_call("", "", "{"))];
    let fragments = fragments.map(|(chunk_index, chunk)| Fragment { chunk_index, chunk });
    vec![
        ("messages", Body::messages(&[full.clone(), Message::user("c")], 0).unwrap()),
        ("message without chunks", Body::messages(&[Message::new(Role::User, [])], 0).unwrap()),
        ("begin", with(&|body| body.begin(0, Role::Assistant, Some(3), &full))),
        ("fragments", Body::fragments(Role::Assistant, &fragments).unwrap()),
        ("finish", with(&|body| body.finish(&Message::new(Role::Tool, [])).map(drop))),
        ("finish, full", with(&|body| body.finish(&full).map(drop))),
        ("meta", meta(None, None, None)),
        ("meta, title", meta(Some(Some("t")), Some(vec!["a", "b"]), Some("{\"a\":1}"))),
        ("meta, no title", meta(Some(None), Some(Vec::new()), None)),
        ("rewind", Body::rewind(Rewind { to: 1, end: 300, previous: 70_000 }).unwrap()),
        ("summary", summary(None)),
        ("summary, full", summary(Some((5_000_000_000, 250)))),
        ("redact", redact(None)),
        ("redact, chunk", redact(Some(2))),
        ("interrupt", with(&|body| body.interrupt(InterruptCause::Dropped))),
        ("interrupt, reopened", with(&|body| body.interrupt(InterruptCause::Reopened))),
        ("remove", Body::removal(Remove { message: 7, chunk: None, previous: 0 }).unwrap()),
        ("remove, chunk", Body::removal(Remove { message: 7, chunk: Some(2), previous: 300 }).unwrap()),
        ("empty", Body::new()),
    ]
}

/// The small values: name, key, bytes.
fn small_values() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let bare = Head {
        next_seq: 1,
        next_message_index: 0,
        last_hide: 0,
        last_meta: 0,
        created: 0,
        last_activity: 0,
        incarnation: 0,
        owner: String::new(),
        key: None,
        parent: None,
        title: None,
        title_source: TitleSource::Pending,
        tags: Vec::new(),
        open: Vec::new(),
        interrupted: Vec::new(),
        lag: Lag::default(),
    };
    let full = Head {
        next_seq: 42,
        next_message_index: 300,
        last_hide: 70_000,
        last_meta: 251,
        created: 1_700_000_000_000_001,
        last_activity: 1_700_000_000_000_002,
        incarnation: u64::MAX,
        owner: "ada".to_owned(),
        key: Some("chat-42".to_owned()),
        parent: Some(PARENT),
        title: Some("t".to_owned()),
        title_source: TitleSource::Message(5),
        tags: vec!["a".to_owned(), "b".to_owned()],
        open: vec![299],
        interrupted: vec![251, 7],
        lag: Lag::default(),
    };
    let by_caller = Head { title_source: TitleSource::Caller, ..full.clone() };
    let lagging = Head { lag: Lag(999_999), ..bare.clone() };
    let receipt = Receipt {
        first_seq: 41,
        last_seq: 44,
        first_message_index: 7,
        messages: 2,
        content_digest: *b"0123456789abcdef",
    };
    let fork = key::fork(ID, ConversationId::from_bytes(*b"fedcba9876543210"));
    let value = |name, key: Vec<u8>, bytes: Result<Vec<u8>>| (name, key, bytes.unwrap());
    let (head, k, d) = (key::head(ID), key::receipt(ID, b"fedcba9876543210"), key::tombstone(ID));
    let (store, epoch, commit) = (key::meta("store"), key::meta("epoch"), key::meta("commit"));
    vec![
        value("head", head.clone(), seal(&head, &bare)),
        value("head, full", head.clone(), seal(&head, &full)),
        value("head, the caller's title", head.clone(), seal(&head, &by_caller)),
        value("head, not at its place", head.clone(), seal(&head, &lagging)),
        value("receipt", k.clone(), seal(&k, &receipt)),
        value("tombstone", d.clone(), seal(&d, &Tombstone { parent: None, incarnation: 251 })),
        value("tombstone of a fork", d.clone(), seal(&d, &Tombstone { parent: Some(PARENT), incarnation: 251 })),
        value("fork point", fork.clone(), seal(&fork, &ForkPoint { at_seq: 40, parent: 300, child: 70_000 })),
        value("store", store.clone(), seal(&store, &StoreInfo { store_id: *b"0123456789abcdef", format_version: 1 })),
        value("epoch", epoch.clone(), seal(&epoch, &7_u64)),
        value("commit", commit.clone(), seal(&commit, &Commit { number: 300, conversations: 2, entries: 70_000 })),
    ]
}

/// Everything that a record's entries say, or the first error.
fn read(bytes: &[u8]) -> Result<Vec<(u64, String)>> {
    let record = Record::open(ID, SEQ, bytes)?;
    let mut said = Vec::new();
    for line in record.lines() {
        let (seq, line) = line?;
        let text = match &line {
            Line::Chunk(chunk) => {
                let header = chunk.header.as_ref().map(|header| header.metadata().map(|_| header.usage()));
                format!("{:?} {:?} {:?}", role(chunk.role)?, chunk.chunk()?, header.transpose()?.transpose()?)
            }
            Line::Begin(begin) => format!("{:?} {:?}", role(begin.role)?, begin.header.metadata()?),
            Line::Finish(finish) => {
                let header = &finish.header;
                format!("{:?} {:?} {:?}", role(finish.role)?, header.finish_reason(), header.usage()?)
            }
            Line::Meta(_)
            | Line::Rewind(_)
            | Line::Summary(_)
            | Line::Redact(_)
            | Line::Remove(_)
            | Line::Interrupt(_)
            | Line::Unknown(_) => {
                format!("{line:?}")
            }
        };
        said.push((seq, text));
    }
    assert!(record.len() >= said.len() as u64);
    Ok(said)
}

fn is_corrupt<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Corrupt { .. }))
}
