//! The bytes of version 1.

use super::super::{Body, Header, Origin, key};
use super::{ID, SEQ, entries, extra, header, json, origin, sealed, small_values};
use crate::model::{self, Audio, Chunk, ConversationId, File, Image, Message, Output, Part, PartBody, Role};

/// Sixteen bytes a line, in hexadecimal and as text.
fn dump(bytes: &[u8]) -> String {
    let line = |(at, bytes): (usize, &[u8])| {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = bytes.iter().map(|byte| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' });
        format!("{:04x}  {:<47}  {}\n", at * 16, hex.join(" "), text.collect::<String>())
    };
    bytes.chunks(16).enumerate().map(line).collect()
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

#[test]
fn bytes_of_chunks() {
    let dumps = bodies().into_iter().map(|(name, body)| {
        let body = Body::messages(&[Message::new(Role::Tool, [body.into()])], 0).unwrap();
        // What comes before the entries is the same for all.
        format!("{name}\n{}", dump(body.content()))
    });
    insta::assert_snapshot!("chunks", dumps.collect::<Vec<_>>().join("\n"));
}

#[test]
fn bytes_of_records() {
    let dumps = entries().into_iter().map(|(name, body)| format!("{name}\n{}", dump(&sealed(&header(None), body))));
    insta::assert_snapshot!("records", dumps.collect::<Vec<_>>().join("\n"));
}

#[test]
fn bytes_of_origins() {
    let first = Origin {
        owner: String::new(),
        key: None,
        incarnation: 0,
        created: 0,
        parent: None,
        last_hide: 0,
        last_meta: 0,
        first_message_index: 0,
    };
    let fork = header(Some(origin()));
    let cut = Header { cut: true, ..header(None) };
    let deleted = Header { deleted: true, ..header(Some(origin())) };
    let dumps = [
        ("of the first record", sealed(&header(Some(first)), Body::messages(&[Message::user("a")], 0).unwrap())),
        ("of a fork without entries", sealed(&fork, Body::new())),
        ("of a conversation that was deleted", sealed(&deleted, Body::new())),
        ("none, and the last message is cut", sealed(&cut, Body::messages(&[Message::user("a")], 0).unwrap())),
    ];
    let dumps = dumps.map(|(name, bytes)| format!("{name}\n{}", dump(&bytes)));
    insta::assert_snapshot!("origins", dumps.join("\n"));
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
        ("head", key::head(ID)),
        ("index", key::index(b"0wner-digest-16b", 1_700_000_000, ID)),
        ("receipt", key::receipt(ID, b"fedcba9876543210")),
        ("fork", key::fork(ID, other)),
        ("tombstone", key::tombstone(ID)),
        ("tag", key::tag(b"0wner-digest-16b", b"fedcba9876543210", ID)),
        ("unfinished", key::unfinished(ID)),
        ("lagging", key::lagging(ID)),
        ("meta", key::meta("commit")),
    ];
    let dumps = keys.map(|(name, key)| format!("{name}\n{}", dump(&key)));
    insta::assert_snapshot!("keys", dumps.join("\n"));
}
