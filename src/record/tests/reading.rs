//! What was written is read back.

use std::borrow::Cow;

use proptest::prelude::*;

use super::super::v1;
use super::super::{Body, Header, Line, Record, Tombstone, key, role, seal, seal_record};
use super::damage::mend;
use super::{ID, SEQ, entries, extra, header, is_corrupt, origin, read, sealed};
use crate::error::{Error, Result};
use crate::model::{ConversationId, Message, arbitrary};

#[test]
fn keys_read_back() {
    let other = ConversationId::from_bytes([255; 16]);
    for id in [ID, other] {
        for number in [0, 1, u64::MAX] {
            assert_eq!(key::parse_record(&key::record(id, number)), Some((id, number)));
            assert_eq!(
                key::parse_index(&key::index(b"0wner-digest-16b", number, id)),
                Some((*b"0wner-digest-16b", number, id))
            );
        }
        assert_eq!(key::parse_id(&key::head(id)), Some(id));
        assert_eq!(key::parse_fork(&key::fork(ID, id)), Some(id));
    }
    assert_eq!(key::parse_record(b"c0123"), None);
    assert_eq!(key::parse_index(b"i0123"), None);
    assert_eq!(key::after(b"a\xff\xff"), b"b");
    assert!(key::after(&[255]).is_empty());
}

#[test]
fn every_entry_reads_back() {
    for (name, body) in entries() {
        let count = body.entries();
        let bytes = sealed(&header(Some(origin())), body);
        let said = read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(said.iter().map(|(seq, _)| *seq).eq(SEQ..SEQ + count), "{name}");
        let record = Record::open(ID, SEQ, &bytes).unwrap();
        assert_eq!(record.len(), count, "{name}");
        let Header { time, base, next_message_index, origin: Some(origin), .. } = record.header else {
            panic!("{name}")
        };
        assert_eq!((time, base, next_message_index), (1_700_000_000_000_001, 7, 9));
        assert_eq!(format!("{origin:?}"), format!("{:?}", super::origin()));
    }
}

proptest! {
    #[test]
    fn any_message_reads_back(message in arbitrary::message()) {
        let bytes = sealed(&header(None), Body::messages(std::slice::from_ref(&message), 0).unwrap());
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
}

#[test]
fn an_unknown_kind_is_kept_and_skipped() {
    let body = Body::messages(&[Message::user("a")], 0).unwrap();
    let body = body.with_entry(127, &"from the future").with_entry(v1::REDACT, &v1::Redact { message: 7, chunk: None });
    let bytes = sealed(&header(None), body);
    let record = Record::open(ID, SEQ, &bytes).unwrap();
    assert_eq!(record.len(), 3);
    let lines: Vec<_> = record.lines().collect::<Result<_>>().unwrap();
    assert!(matches!(
        lines.as_slice(),
        [(41, Line::Chunk(_)), (42, Line::Unknown(127)), (43, Line::Redact(v1::Redact { message: 7, chunk: None }))]
    ));
}

#[test]
fn what_must_not_be_passed_over_is_refused() {
    let body = || Body::messages(&[Message::user("a")], 0).unwrap();
    let newer = |result: Result<()>| matches!(result, Err(Error::UnsupportedVersion { found: 2, supported: 1, .. }));
    for kind in [128, 200, 255] {
        let bytes = sealed(&header(None), body().with_entry(kind, &0_u8));
        let record = Record::open(ID, SEQ, &bytes).unwrap();
        // What is before it can be read, and how many there are is known.
        assert_eq!((record.len(), record.lines().filter_map(Result::ok).count()), (2, 1));
        assert!(newer(read(&bytes).map(drop)), "kind {kind}");
    }
    for flag in [8, 16, 32, 64, 128] {
        let mut bytes = sealed(&header(None), body());
        bytes[1] |= flag;
        mend(&mut bytes);
        let result = read(&bytes).map(drop);
        assert!(if flag < 32 { result.is_ok() } else { newer(result) }, "flag {flag}");
    }
}

#[test]
fn fields_that_a_later_program_added_are_passed_over() {
    for (name, body) in entries() {
        let (plain, mut grown) = (sealed(&header(Some(origin())), body), Vec::new());
        let record = Record::open(ID, SEQ, &plain).unwrap();
        // Header and origin stay; each entry gets a byte at its end, and the origin one at its own.
        let length = usize::from(plain[41]) + 42;
        grown.extend_from_slice(&plain[..length]);
        grown.push(7);
        grown[41] += 1;
        for (_, entry) in record.raw_entries() {
            grown.extend_from_slice(&u32::try_from(entry.len() + 1).unwrap().to_be_bytes());
            grown.extend_from_slice(entry);
            grown.push(7);
        }
        mend(&mut grown);
        assert_eq!(read(&grown).unwrap(), read(&plain).unwrap(), "{name}");
    }
    let key = key::tombstone(ID);
    let value = Tombstone { parent: None, incarnation: 251 };
    assert_eq!(Tombstone::open(&key, &seal(&key, &(value.clone(), 7_u64)).unwrap()).unwrap(), value);
}

#[test]
fn a_record_of_any_size_is_one_value() {
    for length in [1, 20_000, 1_000_000] {
        let message = Message::user("x".repeat(length));
        let body = Body::messages(std::slice::from_ref(&message), 0).unwrap();
        let (key, bytes) = seal_record(ID, SEQ, &header(Some(origin())), body).unwrap();
        assert_eq!(key, key::record(ID, SEQ));
        let record = Record::open(ID, SEQ, &bytes).unwrap();
        let Some(Ok((SEQ, Line::Chunk(chunk)))) = record.lines().next() else { panic!("a chunk") };
        assert_eq!(chunk.chunk().unwrap(), message.chunks[0]);
        // What is missing in it, or too much, is found.
        assert!(is_corrupt(&read(&bytes[..bytes.len() - 1])));
        assert!(is_corrupt(&read(&[&bytes[..], b"x"].concat())));
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
        content: v1::Content::Refusal { text: super::super::envelope::Text("a") },
    };
    let bytes = sealed(&header(None), Body::new().with_entry(v1::CHUNK, &line));
    let record = Record::open(ID, SEQ, &bytes).unwrap();
    let Some(Ok((_, Line::Chunk(chunk)))) = record.lines().next() else { panic!("a chunk") };
    assert_eq!(chunk.chunk().unwrap().extra, extra());
}
