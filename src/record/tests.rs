//! The bytes of version 1, and what becomes of bytes that are damaged, cut off, newer, or noise.

use std::borrow::Cow;

use proptest::prelude::*;

use super::v1;
use super::{
    Body, Commit, Fragment, Head, Header, Line, Meta, Origin, PART_BYTES, Receipt, Record, Rewind, StoreInfo,
    TitleSource, Tombstone, key, open, parts, role, seal, seal_record,
};
use crate::error::{Error, Result};
use crate::model::{
    self, Audio, Chunk, ConversationId, Extra, File, FinishReason, Image, Json, Message, Metadata, Native, Output,
    Part, PartBody, Role, Timestamp, arbitrary,
};

const ID: ConversationId = ConversationId::from_bytes(*b"0123456789abcdef");
const SEQ: u64 = 41;

fn header(origin: Option<Origin>) -> Header {
    Header { time: 1_700_000_000_000_001, base: 7, next_message_index: 9, cut: false, origin }
}

fn origin() -> Origin {
    let parent = Some((*b"fedcba9876543210", 40));
    Origin { key: Some("chat-42".to_owned()), created: -1, parent, last_rewind: 12, first_message_index: 7 }
}

/// A record's values, joined.
fn joined(header: &Header, body: Body) -> Vec<u8> {
    seal_record(ID, SEQ, header, body).unwrap().into_iter().flat_map(|(_, value)| value).collect()
}

/// Sixteen bytes a line, in hexadecimal and as text.
fn dump(bytes: &[u8]) -> String {
    let line = |(at, bytes): (usize, &[u8])| {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = bytes.iter().map(|byte| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' });
        format!("{:04x}  {:<47}  {}\n", at * 16, hex.join(" "), text.collect::<String>())
    };
    bytes.chunks(16).enumerate().map(line).collect()
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

/// A chunk of every kind: with nothing that can be left out, and with all of it.
fn bodies() -> Vec<(&'static str, model::Body)> {
    use model::Body;
    let text = |text: &str| text.to_owned();
    let some = |text: &str| Some(text.to_owned());
    let image = || Image { url: text("u"), mime_type: some("m") };
    let audio = || Audio { url: some("u"), data: some("d"), mime_type: some("m"), transcript: some("t") };
    let file = || File { name: some("n"), url: some("u"), data: some("d"), mime_type: some("m") };
    let parts = vec![
        PartBody::Text { text: text("a") }.into(),
        PartBody::Image(image()).into(),
        PartBody::Audio(audio()).into(),
        PartBody::File(file()).into(),
        PartBody::Json { json: json("{\"a\":1}") }.into(),
        Part { body: PartBody::Unknown { kind: text("k") }, extra: extra() },
    ];
    let result = |name, output, is_error| Body::ToolResult { tool_call_id: text("1"), name, output, is_error };
    vec![
        ("text", Body::Text { text: text("a"), annotations: None }),
        ("text, full", Body::Text { text: text("é\0"), annotations: Some(json("[1]")) }),
        ("thinking", Body::Thinking { text: text("a"), signature: None, redacted: None }),
        ("thinking, full", Body::Thinking { text: text("a"), signature: some("s"), redacted: some("r") }),
        ("refusal", Body::Refusal { text: text("a") }),
        ("tool_call", Chunk::tool_call("1", "n", "{}").body),
        (
            "tool_call, full",
            Body::ToolCall { id: text("1"), name: text("n"), arguments: text("{"), signature: some("s"), server: true },
        ),
        ("tool_result", result(None, Output::Text(text("a")), None)),
        ("tool_result, full", result(some("n"), Output::Parts(parts), Some(true))),
        ("image", Body::Image(Image { url: text("u"), mime_type: None })),
        ("image, full", Body::Image(image())),
        ("audio", Body::Audio(Audio::default())),
        ("audio, full", Body::Audio(audio())),
        ("file", Body::File(File::default())),
        ("file, full", Body::File(file())),
        ("error", Body::Error { message: text("m"), code: None }),
        ("error, full", Body::Error { message: text("m"), code: some("429") }),
        ("opaque", Body::Opaque { provider: text("p"), kind: text("k"), json: json("{}") }),
        ("unknown", Body::Unknown { kind: text("k") }),
    ]
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
    let meta = |title, tags| Body::meta(&Meta { title, tags }).unwrap();
    let compaction = |tokens| Body::compaction(&v1::Compaction { through: 6, summary: "s", tokens }).unwrap();
    let redact = |chunk| Body::new().with_entry(v1::REDACT, &v1::Redact { message: 7, chunk });
    let fragments = [(0, Chunk::text("a")), (300, Chunk::tool_call("", "", "{"))];
    let fragments = fragments.map(|(chunk_index, chunk)| Fragment { chunk_index, chunk });
    vec![
        ("messages", Body::messages(&[full.clone(), Message::user("c")], 0).unwrap()),
        ("message without chunks", Body::messages(&[Message::new(Role::User, [])], 0).unwrap()),
        ("begin", with(&|body| body.begin(0, Role::Assistant, Some(3), &full))),
        ("fragments", Body::fragments(Role::Assistant, &fragments).unwrap()),
        ("finish", with(&|body| body.finish(&Message::new(Role::Tool, [])))),
        ("finish, full", with(&|body| body.finish(&full))),
        ("meta", meta(None, None)),
        ("meta, title", meta(Some(Some("t")), Some(vec!["a", "b"]))),
        ("meta, no title", meta(Some(None), Some(Vec::new()))),
        ("rewind", Body::rewind(Rewind { to: 1, end: 300, previous: 70_000 }).unwrap()),
        ("compaction", compaction(None)),
        ("compaction, full", compaction(Some((5_000_000_000, 250)))),
        ("redact", redact(None)),
        ("redact, chunk", redact(Some(2))),
        ("empty", Body::new()),
    ]
}

#[test]
fn bytes_of_chunks() {
    let dumps = bodies().into_iter().map(|(name, body)| {
        let body = Body::messages(&[Message::new(Role::Tool, [body.into()])], 0).unwrap();
        // What stands in front of the entries is the same for all.
        format!("{name}\n{}", dump(body.content()))
    });
    insta::assert_snapshot!("chunks", dumps.collect::<Vec<_>>().join("\n"));
}

#[test]
fn bytes_of_records() {
    let dumps = entries().into_iter().map(|(name, body)| format!("{name}\n{}", dump(&joined(&header(None), body))));
    insta::assert_snapshot!("records", dumps.collect::<Vec<_>>().join("\n"));
}

#[test]
fn bytes_of_origins() {
    let first = Origin { key: None, created: 0, parent: None, last_rewind: 0, first_message_index: 0 };
    let fork = header(Some(origin()));
    let cut = Header { cut: true, ..header(None) };
    let dumps = [
        ("of the first record", joined(&header(Some(first)), Body::messages(&[Message::user("a")], 0).unwrap())),
        ("of a fork without entries", joined(&fork, Body::new())),
        ("none, and the last message is cut", joined(&cut, Body::messages(&[Message::user("a")], 0).unwrap())),
    ];
    let dumps = dumps.map(|(name, bytes)| format!("{name}\n{}", dump(&bytes)));
    insta::assert_snapshot!("origins", dumps.join("\n"));
}

/// The small values: name, key, bytes.
fn small_values() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let bare = Head {
        next_seq: 1,
        next_message_index: 0,
        last_rewind: 0,
        created: 0,
        last_activity: 0,
        key: None,
        parent: None,
        title: None,
        title_source: TitleSource::Pending,
        tags: Vec::new(),
    };
    let full = Head {
        next_seq: 42,
        next_message_index: 300,
        last_rewind: 70_000,
        created: 1_700_000_000_000_001,
        last_activity: 1_700_000_000_000_002,
        key: Some("chat-42".to_owned()),
        parent: Some((*b"fedcba9876543210", 40)),
        title: Some("t".to_owned()),
        title_source: TitleSource::Message(5),
        tags: vec!["a".to_owned(), "b".to_owned()],
    };
    let by_caller = Head { title_source: TitleSource::Caller, ..full.clone() };
    let receipt =
        Receipt { first_seq: 41, last_seq: 44, message_indexes: vec![7, 8], content_digest: *b"0123456789abcdef" };
    let value = |name, key: Vec<u8>, bytes: Result<Vec<u8>>| (name, key, bytes.unwrap());
    let (head, k, d) = (key::head(ID), key::receipt(ID, b"fedcba9876543210"), key::tombstone(ID));
    let (store, epoch, commit) = (key::meta("store"), key::meta("epoch"), key::meta("commit"));
    vec![
        value("head", head.clone(), seal(&head, &bare)),
        value("head, full", head.clone(), seal(&head, &full)),
        value("head, the caller's title", head.clone(), seal(&head, &by_caller)),
        value("receipt", k.clone(), seal(&k, &receipt)),
        value("tombstone", d.clone(), seal(&d, &Tombstone { parent: None })),
        value("tombstone of a fork", d.clone(), seal(&d, &Tombstone { parent: Some((*b"fedcba9876543210", 5)) })),
        value("store", store.clone(), seal(&store, &StoreInfo { store_id: *b"0123456789abcdef", format_version: 1 })),
        value("epoch", epoch.clone(), seal(&epoch, &7_u64)),
        value("commit", commit.clone(), seal(&commit, &Commit { number: 300, conversations: 2, entries: 70_000 })),
    ]
}

#[test]
fn bytes_of_small_values() {
    let dumps = small_values().into_iter().map(|(name, _, bytes)| format!("{name}\n{}", dump(&bytes)));
    insta::assert_snapshot!("small_values", dumps.collect::<Vec<_>>().join("\n"));
}

#[test]
fn bytes_of_keys() {
    let other = ConversationId::from_bytes(*b"fedcba9876543210");
    let keys = [
        ("record", key::record(ID, SEQ)),
        ("part", key::part(ID, SEQ, 2)),
        ("head", key::head(ID)),
        ("index", key::index(28_333_333, ID)),
        ("receipt", key::receipt(ID, b"fedcba9876543210")),
        ("fork", key::fork(ID, other)),
        ("tombstone", key::tombstone(ID)),
        ("meta", key::meta("commit")),
    ];
    let dumps = keys.map(|(name, key)| format!("{name}\n{}", dump(&key)));
    insta::assert_snapshot!("keys", dumps.join("\n"));
}

#[test]
fn keys_read_back() {
    let other = ConversationId::from_bytes([255; 16]);
    for id in [ID, other] {
        for number in [0, 1, u64::MAX] {
            assert_eq!(key::parse_record(&key::record(id, number)), Some((id, number)));
            assert_eq!(key::parse_index(&key::index(number, id)), Some((number, id)));
        }
        assert_eq!(key::parse_id(&key::head(id)), Some(id));
        assert_eq!(key::parse_fork(&key::fork(ID, id)), Some(id));
    }
    assert_eq!(key::parse_record(b"c0123"), None);
    assert_eq!(key::parse_index(b"i0123"), None);
    assert_eq!(key::after(b"a\xff\xff"), b"b");
    assert!(key::after(&[255]).is_empty());
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
            Line::Meta(_) | Line::Rewind(_) | Line::Compaction(_) | Line::Redact(_) | Line::Unknown(_) => {
                format!("{line:?}")
            }
        };
        said.push((seq, text));
    }
    assert!(record.len() >= said.len() as u64);
    Ok(said)
}

/// Sets a record's checksum right again.
fn mend(bytes: &mut [u8]) {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&key::record(ID, SEQ));
    hasher.update(&bytes[..2]);
    hasher.update(&bytes[6..]);
    bytes[2..6].copy_from_slice(&hasher.finalize().to_be_bytes());
}

fn is_corrupt<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Corrupt { .. }))
}

#[test]
fn every_entry_reads_back() {
    for (name, body) in entries() {
        let count = body.entries();
        let bytes = joined(&header(Some(origin())), body);
        let said = read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(said.iter().map(|(seq, _)| *seq).eq(SEQ..SEQ + count), "{name}");
        let record = Record::open(ID, SEQ, &bytes).unwrap();
        assert_eq!(record.len(), count, "{name}");
        let Header { time, base, next_message_index, origin: Some(origin), cut: _ } = record.header else {
            panic!("{name}")
        };
        assert_eq!((time, base, next_message_index), (1_700_000_000_000_001, 7, 9));
        assert_eq!(format!("{origin:?}"), format!("{:?}", self::origin()));
    }
}

proptest! {
    #[test]
    fn any_message_reads_back(message in arbitrary::message()) {
        let bytes = joined(&header(None), Body::messages(std::slice::from_ref(&message), 0).unwrap());
        let record = Record::open(ID, SEQ, &bytes).unwrap();
        let mut chunks = Vec::new();
        for line in record.lines() {
            let (_, line) = line.unwrap();
            let header = match &line {
                Line::Chunk(chunk) => {
                    prop_assert_eq!(chunk.header.is_some(), chunks.is_empty());
                    prop_assert_eq!(role(chunk.role).unwrap(), message.role);
                    chunks.push(chunk.chunk().unwrap());
                    chunk.header.as_ref()
                }
                Line::Begin(begin) => {
                    prop_assert_eq!(begin.epoch, None);
                    Some(&begin.header)
                }
                other => panic!("{other:?}"),
            };
            if let Some(header) = header {
                prop_assert_eq!(&header.metadata().unwrap(), &message.metadata);
                prop_assert_eq!(header.finish_reason(), message.finish_reason.clone());
                prop_assert_eq!(&header.usage().unwrap(), &message.usage);
            }
        }
        prop_assert_eq!(chunks, message.chunks);
    }

    #[test]
    fn noise_is_an_error(noise in prop::collection::vec(any::<u8>(), 0..200), flags in 0..2_u8) {
        prop_assert!(read(&noise).is_err());
        // Even with a version and a checksum that fit it is no record that makes a reader fall.
        let mut noise = [vec![super::VERSION, flags, 0, 0, 0, 0], noise].concat();
        mend(&mut noise);
        let _ = read(&noise);
    }

    #[test]
    fn noise_among_the_entries_is_an_error(
        at in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 1..9),
        kind in any::<prop::sample::Index>(),
    ) {
        let mut entries = entries();
        let (_, body) = entries.swap_remove(kind.index(entries.len()));
        let mut bytes = joined(&header(Some(origin())), body);
        let at = 6 + at.index(bytes.len() - 6);
        let end = bytes.len().min(at + noise.len());
        bytes[at..end].copy_from_slice(&noise[..end - at]);
        mend(&mut bytes);
        // Whatever it says now: it is read, or it is an error.
        let _ = read(&bytes);
    }

    #[test]
    fn noise_is_no_small_value(noise in prop::collection::vec(any::<u8>(), 0..80)) {
        for (_, key, _) in small_values() {
            prop_assert!(open::<Head>("a head", &key, &noise).is_err());
        }
    }
}

#[test]
fn an_unknown_kind_is_kept_and_skipped() {
    let body = Body::messages(&[Message::user("a")], 0).unwrap();
    let body = body.with_entry(200, &"from the future").with_entry(v1::REDACT, &v1::Redact { message: 7, chunk: None });
    let bytes = joined(&header(None), body);
    let record = Record::open(ID, SEQ, &bytes).unwrap();
    assert_eq!(record.len(), 3);
    let lines: Vec<_> = record.lines().collect::<Result<_>>().unwrap();
    assert!(matches!(
        lines.as_slice(),
        [(41, Line::Chunk(_)), (42, Line::Unknown(200)), (43, Line::Redact(v1::Redact { message: 7, chunk: None }))]
    ));
}

#[test]
fn an_unknown_version_is_a_typed_error() {
    let mut record = joined(&header(None), Body::messages(&[Message::user("a")], 0).unwrap());
    let (key, mut head) = small_values().into_iter().map(|(_, key, bytes)| (key, bytes)).next().unwrap();
    for version in 0..=u8::MAX {
        (record[0], head[0]) = (version, version);
        mend(&mut record);
        let results =
            [read(&record).map(drop), open::<Head>("a head", &key, &head).map(drop), parts(&record).map(drop)];
        for result in results {
            match version {
                0 => assert!(is_corrupt(&result), "{result:?}"),
                1 => assert!(result.is_ok(), "{result:?}"),
                _ => assert!(
                    matches!(result, Err(Error::UnsupportedVersion { found, supported: 1, .. }) if found == u32::from(version)),
                    "{result:?}"
                ),
            }
        }
    }
}

#[test]
fn a_flipped_bit_is_corruption() {
    let flipped = |bytes: &[u8], check: &dyn Fn(&[u8]) -> bool| {
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&bytes), "bit {bit}");
        }
    };
    for (_, body) in entries() {
        flipped(&joined(&header(Some(origin())), body), &|bytes| match read(bytes) {
            // The version is the one byte that says more.
            Err(Error::UnsupportedVersion { .. }) => bytes[0] > 1,
            result => is_corrupt(&result),
        });
    }
    for (_, key, bytes) in small_values() {
        flipped(&bytes, &|bytes| match open::<Head>("a value", &key, bytes) {
            Err(Error::UnsupportedVersion { .. }) => bytes[0] > 1,
            result => is_corrupt(&result),
        });
    }
}

#[test]
fn a_value_under_another_key_is_corruption() {
    let bytes = joined(&header(None), Body::messages(&[Message::user("a")], 0).unwrap());
    assert!(Record::open(ID, SEQ, &bytes).is_ok());
    assert!(is_corrupt(&Record::open(ID, SEQ + 1, &bytes)));
    assert!(is_corrupt(&Record::open(ConversationId::from_bytes([0; 16]), SEQ, &bytes)));
    let (_, key, head) = small_values().swap_remove(0);
    assert!(open::<Head>("a head", &key, &head).is_ok());
    assert!(is_corrupt(&open::<Head>("a head", &key::head(ConversationId::from_bytes([0; 16])), &head)));
}

#[test]
fn a_value_that_is_cut_off_is_corruption() {
    for (_, body) in entries() {
        let bytes = joined(&header(Some(origin())), body);
        for length in 0..bytes.len() {
            assert!(is_corrupt(&read(&bytes[..length])), "{length} bytes");
            // A checksum over what is left does not make it whole.
            let mut cut = bytes[..length].to_vec();
            if length >= 6 {
                mend(&mut cut);
                let _ = read(&cut);
            }
            assert!(parts(&bytes[..length]).is_ok() == (length >= 34));
        }
    }
    for (_, key, bytes) in small_values() {
        for length in 0..bytes.len() {
            assert!(is_corrupt(&open::<Head>("a value", &key, &bytes[..length])), "{length} bytes");
        }
    }
}

#[test]
fn a_large_record_is_split() {
    for (length, count) in [(1, 1), (PART_BYTES - 100, 1), (PART_BYTES, 2), (5 * PART_BYTES, 6)] {
        let message = Message::user("x".repeat(length));
        let body = Body::messages(std::slice::from_ref(&message), 0).unwrap();
        let values = seal_record(ID, SEQ, &header(Some(origin())), body).unwrap();
        assert_eq!(values.len(), count);
        assert_eq!(parts(&values[0].1).unwrap() as usize, count - 1);
        assert!(values.iter().all(|(_, value)| value.len() <= PART_BYTES));
        let keys: Vec<_> = (0..).zip(&values).map(|(at, (key, _))| (at, key)).collect();
        for (at, key) in keys {
            let expected = if at == 0 { key::record(ID, SEQ) } else { key::part(ID, SEQ, at - 1) };
            assert_eq!(*key, expected);
        }
        let bytes: Vec<u8> = values.iter().flat_map(|(_, value)| value.clone()).collect();
        let record = Record::open(ID, SEQ, &bytes).unwrap();
        let Some(Ok((SEQ, Line::Chunk(chunk)))) = record.lines().next() else { panic!("a chunk") };
        assert_eq!(chunk.chunk().unwrap(), message.chunks[0]);
        // A part that is missing, doubled or exchanged is found.
        if count > 2 {
            let of = |order: &[usize]| order.iter().flat_map(|at| values[*at].1.clone()).collect::<Vec<u8>>();
            assert!(is_corrupt(&read(&of(&[0, 1, 2, 3, 4]))));
            assert!(is_corrupt(&read(&of(&[0, 1, 2, 3, 5, 4]))));
            assert!(is_corrupt(&read(&of(&[0, 1, 2, 3, 4, 5, 5]))));
        }
    }
}

#[test]
fn unknown_fields_are_kept_as_one_object() {
    let line = v1::ChunkLine {
        message: 0,
        chunk: 0,
        role: 1,
        header: None,
        id: None,
        native: None,
        extra: Some(Cow::Borrowed("{\"x\":1.0,\"y\\\"\":null}")),
        content: v1::Content::Refusal { text: "a" },
    };
    let bytes = joined(&header(None), Body::new().with_entry(v1::CHUNK, &line));
    let record = Record::open(ID, SEQ, &bytes).unwrap();
    let Some(Ok((_, Line::Chunk(chunk)))) = record.lines().next() else { panic!("a chunk") };
    assert_eq!(chunk.chunk().unwrap().extra, extra());
}
