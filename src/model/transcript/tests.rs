use proptest::prelude::*;

use super::Line;
use crate::model::{Body, Chunk, FinishReason, Message, Native, Output, Part, PartBody, arbitrary};

fn only_chunk(chunk: &str) -> Chunk {
    let mut message = Message::from_json(&format!(r#"{{"role":"user","chunks":[{chunk}]}}"#)).unwrap();
    assert_eq!(message.chunks.len(), 1);
    message.chunks.remove(0)
}

proptest! {
    #[test]
    fn a_message_reads_back_as_it_was(message in arbitrary::message()) {
        let text = message.to_json();
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(Message::from_json(&text).unwrap(), message);
    }

    #[test]
    fn a_line_reads_back_with_its_conversation(message in arbitrary::message(), name in "(?s).{0,8}") {
        let line = Line { conversation: Some(name), message, replaced_surrogates: Vec::new() };
        prop_assert_eq!(Line::from_json(&serde_json::to_string(&line).unwrap()).unwrap(), line);
    }

    #[test]
    fn any_text_is_a_line_or_an_error_in_it(text in "(?s).{0,40}") {
        if let Err(error) = Line::from_json(&text) {
            prop_assert!(error.column >= 1 && error.column <= text.chars().count() + 1, "{}", error);
        }
    }

    #[test]
    fn a_line_that_is_cut_off_is_an_error(message in arbitrary::message(), at in any::<prop::sample::Index>()) {
        let text = message.to_json();
        let cut: String = text.chars().take(at.index(text.chars().count())).collect();
        let error = Message::from_json(&cut).unwrap_err();
        prop_assert!(error.column <= cut.chars().count() + 1, "{}: {}", error, cut);
    }
}

#[test]
fn every_field_stands_where_the_format_says() {
    // As it is written, in the order of docs/transcript.md.
    let lines = [
        r#"{"conversation":"chat-42","role":"assistant","chunks":[],"finish_reason":"stop","model":"m","provider":"p","created_at":"2026-01-02T03:04:05.000006Z","turn_id":"t","step_id":"s","usage":{"total":1.0},"id":"msg_1","native":{"wire":"anthropic","json":{"b":1,"a":2}},"x":[1]}"#,
        r#"{"role":"user","chunks":[{"type":"text","text":"a","annotations":[1],"id":"i","native":{"wire":"w","json":1},"x":null}]}"#,
        r#"{"role":"assistant","chunks":[{"type":"thinking","text":"a","signature":"s","redacted":"r","id":"i"}]}"#,
        r#"{"role":"assistant","chunks":[{"type":"refusal","text":"a"}]}"#,
        r#"{"role":"assistant","chunks":[{"type":"tool_call","id":"1","name":"n","arguments":"{}","signature":"s","server":true,"item_id":"i"}]}"#,
        r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"1","name":"n","content":"a","is_error":true,"id":"i"}]}"#,
        r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"1","content":[{"type":"text","text":"a"},{"type":"image","url":"u","mime_type":"m"},{"type":"audio","url":"u","data":"d","mime_type":"m","transcript":"t"},{"type":"file","name":"n","url":"u","data":"d","mime_type":"m"},{"type":"json","json":{"z":0}},{"type":"x_part","y":1}]}]}"#,
        r#"{"role":"user","chunks":[{"type":"image","url":"u","mime_type":"m"}]}"#,
        r#"{"role":"user","chunks":[{"type":"audio","url":"u","data":"d","mime_type":"m","transcript":"t"}]}"#,
        r#"{"role":"user","chunks":[{"type":"file","name":"n","url":"u","data":"d","mime_type":"m"}]}"#,
        r#"{"role":"assistant","chunks":[{"type":"error","message":"m","code":"429"}]}"#,
        r#"{"role":"assistant","chunks":[{"type":"opaque","provider":"p","kind":"k","json":{"k":[1E2]}}]}"#,
        r#"{"role":"system","chunks":[{"type":"x_widget","deep":{"er":1.50}}]}"#,
    ];
    for text in lines {
        let line = Line::from_json(text).unwrap();
        assert_eq!(serde_json::to_string(&line).unwrap(), text);
    }
}

#[test]
fn what_is_lenient() {
    let call = |arguments: &str| match only_chunk(&format!(
        r#"{{"type":"tool_call","id":"1","name":"n","arguments":{arguments}}}"#
    ))
    .body
    {
        Body::ToolCall { arguments, .. } => arguments,
        other => panic!("{other:?}"),
    };
    assert_eq!(call(r#""{\"a\" : 1}""#), r#"{"a" : 1}"#);
    assert_eq!(call(r#"{"a" : 1}"#), r#"{"a" : 1}"#, "an object is kept as its JSON text");
    assert_eq!(call("[1, 2]"), "[1, 2]");
    assert_eq!(call("null"), "");
    assert_eq!(only_chunk(r#"{"type":"tool_call"}"#), Chunk::tool_call("", "", ""));

    let content = |content: &str| match only_chunk(&format!(
        r#"{{"type":"tool_result","tool_call_id":"1","content":{content}}}"#
    ))
    .body
    {
        Body::ToolResult { output, .. } => output,
        other => panic!("{other:?}"),
    };
    let json = |text: &str| Output::Parts(vec![Part::from(PartBody::Json { json: super::line::json(text).unwrap() })]);
    assert_eq!(content("null"), Output::Text(String::new()));
    assert_eq!(content(r#"{"a": 1.0}"#), json(r#"{"a": 1.0}"#));
    assert_eq!(content("42"), json("42"));
    assert_eq!(content("[]"), Output::Parts(Vec::new()));
    // A list is one value too, unless it is one of parts.
    assert_eq!(content(r#"["a", 1]"#), json(r#"["a", 1]"#));
    assert_eq!(content(r#"[{"id": 1}, {"id": 2}]"#), json(r#"[{"id": 1}, {"id": 2}]"#));
    // Nothing is a value: a tool may give it back.
    assert_eq!(content(r#"[{"type": "json", "json": null}]"#), json("null"));
    assert_eq!(only_chunk(r#"{"type":"tool_result"}"#), Chunk::tool_result("", ""));

    assert_eq!(only_chunk(r#"{"type":"thinking"}"#), Chunk::thinking(""));
    // An id or a code that is no string is no id of ours: it stays among the unknown fields.
    let chunk = only_chunk(r#"{"type":"error","message":"m","code":429,"id":7}"#);
    assert_eq!(chunk.body, Body::Error { message: "m".to_owned(), code: None });
    assert_eq!(chunk.extra.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["code", "id"]);
    // Null counts as absent, for every field that is known.
    assert_eq!(only_chunk(r#"{"type":"text","text":"a","annotations":null,"id":null,"native":null}"#).native, None);
    // The providers' own words for why the model stopped.
    let line = r#"{"role":"assistant","chunks":[],"finish_reason":"max_tokens"}"#;
    assert_eq!(Message::from_json(line).unwrap().finish_reason, Some(FinishReason::Length));
}

#[test]
fn unknown_kinds_and_fields_survive() {
    let chunk = only_chunk(r#"{"x_first":1.0,"type":"x_widget","id":"i","x_last":{"b":1,"a":[]}}"#);
    assert_eq!(chunk.body, Body::Unknown { kind: "x_widget".to_owned() });
    assert_eq!(chunk.id.as_deref(), Some("i"));
    let fields: Vec<_> = chunk.extra.iter().map(|(name, json)| (name, json.as_str())).collect();
    assert_eq!(fields, [("x_first", "1.0"), ("x_last", r#"{"b":1,"a":[]}"#)]);
}

#[test]
fn lone_surrogates_are_replaced_and_kept_raw() {
    let raw = r#"{"type":"text","text":"a\ud83d"}"#;
    let whole = r#"{"type":"text","text":"\ud83d\ude00"}"#;
    let text = format!(r#"{{"role":"user","chunks":[{whole},{raw}]}}"#);
    let line = Line::from_json(&text).unwrap();
    assert_eq!(line.replaced_surrogates, [1]);
    let [first, second] = line.message.chunks.as_slice() else { panic!("two chunks") };
    assert_eq!(first, &Chunk::text("\u{1f600}"));
    assert_eq!(second.body, Chunk::text("a\u{fffd}").body);
    assert_eq!(second.native, Some(Native { wire: "transcript".to_owned(), json: super::line::json(raw).unwrap() }));
    assert!(super::was_mended(second.native.as_ref()) && !super::was_mended(first.native.as_ref()));
    // Written and read again it is the same, however often.
    let again = Line::from_json(&line.message.to_json()).unwrap();
    assert_eq!((again.message, again.replaced_surrogates), (line.message, vec![]));
    // JSON that is kept as it is may hold them.
    let block = r#"{"type":"text","text":"\ud83d"}"#;
    let kept = format!(r#"{{"type":"text","text":"a","native":{{"wire":"other","json":{block}}}}}"#);
    let opaque = format!(r#"{{"type":"opaque","provider":"p","kind":"k","json":{block}}}"#);
    for chunks in [format!("{kept},{opaque}"), format!("{kept},{opaque},{raw}")] {
        let line = Line::from_json(&format!(r#"{{"role":"user","chunks":[{chunks}]}}"#)).unwrap();
        let [kept, opaque, ..] = line.message.chunks.as_slice() else { panic!("two chunks") };
        assert_eq!(kept.native.as_ref().map(|native| (&*native.wire, native.json.as_str())), Some(("other", block)));
        assert_eq!(opaque.native, None);
        assert_eq!(Line::from_json(&line.message.to_json()).unwrap().message, line.message);
    }
    // So may what is unknown of the message.
    let line = Line::from_json(&format!(r#"{{"role":"user","chunks":[{raw}],"mine":{block},"null":null}}"#)).unwrap();
    let extra: Vec<_> = line.message.metadata.extra.iter().map(|(name, json)| (name, json.as_str())).collect();
    assert_eq!(extra, [("mine", block), ("null", "null")]);
    // What is still to be mended counts, and is kept with all that was kept before.
    let more = r#"{"type":"text","text":"b\udc00","native":{"wire":"transcript","json":"\ud83d"}}"#;
    let line = Line::from_json(&format!(r#"{{"role":"user","chunks":[{more}]}}"#)).unwrap();
    assert_eq!(line.replaced_surrogates, [0]);
    let kept = line.message.chunks[0].native.as_ref().map(|native| native.json.as_str());
    assert_eq!(kept, Some(more));
}

#[test]
fn a_bad_line_tells_its_column_and_field() {
    let deep = format!(r#"{{"role":"user","chunks":[],"x":{}{}}}"#, "[".repeat(129), "]".repeat(129));
    let table = [
        ("", 1, "line"),
        ("[]", 1, "line"),
        ("nonsense", 2, "line"),
        (r#"{"role":"user","chunks":[]"#, 26, "line"),
        (r#"{"role":"user","chunks":[],"é":"é"#, 33, "line"),
        (r#"{"role":"user","chunks":[]} x"#, 29, "line"),
        (r#"{"chunks":[]}"#, 1, "role"),
        (r#"{"role":"user"}"#, 1, "chunks"),
        (r#"{"role":"bot","chunks":[]}"#, 9, "role"),
        (r#"{"role":5,"chunks":[]}"#, 9, "role"),
        (r#"{"role":"user","chunks":{}}"#, 25, "chunks"),
        (r#"{"role":"user","chunks":["a"]}"#, 28, "chunks[0]"),
        (r#"{"role":"user","chunks":[{"text":"a"}]}"#, 26, "chunks[0].type"),
        (r#"{"role":"user","chunks":[{"type":"text"}]}"#, 26, "chunks[0].text"),
        (r#"{"role":"user","chunks":[{"type":"text","text":7}]}"#, 48, "chunks[0].text"),
        (r#"{"role":"user","chunks":[{"type":"text","text":"é"},{"type":"text","text":[]}]}"#, 75, "chunks[1].text"),
        (r#"{"role":"user","chunks":[{"type":"image"}]}"#, 26, "chunks[0].url"),
        (r#"{"role":"user","chunks":[{"type":"error"}]}"#, 26, "chunks[0].message"),
        (r#"{"role":"user","chunks":[{"type":"opaque","provider":"p","kind":"k"}]}"#, 26, "chunks[0].json"),
        (r#"{"role":"user","chunks":[{"type":"tool_call","server":"yes"}]}"#, 55, "chunks[0].server"),
        (r#"{"role":"user","chunks":[{"type":"tool_result","is_error":1}]}"#, 59, "chunks[0].is_error"),
        (
            r#"{"role":"user","chunks":[{"type":"tool_result","content":[{"type":"text"}]}]}"#,
            59,
            "chunks[0].content[0].text",
        ),
        (r#"{"role":"user","chunks":[],"created_at":"yesterday"}"#, 41, "created_at"),
        (r#"{"role":"user","chunks":[],"native":{"json":1}}"#, 37, "native.wire"),
        (r#"{"role":"user","role":"user","chunks":[]}"#, 9, "role"),
        (deep.as_str(), 32, "x"),
    ];
    for (text, column, place) in table {
        let error = Line::from_json(text).unwrap_err();
        assert_eq!((error.column, error.place.as_str()), (column, place), "{text}: {error}");
        assert!(!error.problem.contains(" line ") && !error.problem.is_empty(), "{error}");
    }
}
