//! Bytes that are no answer, and what servers write otherwise than OpenAI.

use conversation_store::Error;
use conversation_store::model::{Body, Chunk, FinishReason, Message};
use conversation_store::provider::{Decoder, Event, Target, decode};

const CHAT: Target = Target::OPENAI_CHAT;

fn answer(body: &str) -> Message {
    decode(CHAT, body.as_bytes()).unwrap()
}

#[test]
fn what_is_no_answer_is_an_error_chunk() {
    let table = [
        (
            "<html><h1>502 Bad Gateway</h1>\n</html>",
            "the answer holds what is no JSON: <html><h1>502 Bad Gateway</h1>\n</html>",
        ),
        ("upstream connect error", "the answer holds what is no JSON: upstream connect error"),
        (r#"{"detail":"Not Found"}"#, "Not Found"),
        (r#"{"object":"error","message":"too long","code":400}"#, "too long"),
        ("event: error\ndata: {\"message\":\"boom\"}\n\n", "boom"),
        (
            "data: {\"choices\":}\n\n",
            "the answer holds what is no JSON: expected value at line 1 column 12: {\"choices\":}",
        ),
        ("data: oops\n\n", "the answer holds what is no JSON: oops"),
    ];
    for (body, wanted) in table {
        let message = answer(body);
        assert_eq!(message.finish_reason, Some(FinishReason::Error), "{body}");
        assert_eq!(message.chunks.len(), 1, "{body}");
        assert!(matches!(&message.chunks[0].body, Body::Error { message, .. } if message == wanted), "{message:?}");
    }
}

#[test]
fn nothing_is_interrupted_and_comments_are_nothing() {
    for body in
        ["", " \r\n", "\u{feff}", ": ping\n\n", "da", "{\"choices\":[{\"message\":{\"content\":\"a", "[", "data: {\"ch"]
    {
        let message = answer(body);
        assert_eq!((message.chunks.len(), message.finish_reason), (0, Some(FinishReason::Interrupted)), "{body}");
    }
    assert_eq!(answer("data: [DONE]\n\n").finish_reason, None);
}

#[test]
fn a_response_with_items_has_ended_unless_it_states_that_it_goes_on() {
    let said = r#"[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"4"}]}]"#;
    let table = [
        ("complete", said, FinishReason::Stop),
        ("done", said, FinishReason::Other("done".to_owned())),
        ("in_progress", said, FinishReason::Interrupted),
        ("queued", "[]", FinishReason::Interrupted),
        ("starting", "[]", FinishReason::Interrupted),
    ];
    for (status, output, wanted) in table {
        let body = format!(r#"{{"object":"response","status":"{status}","output":{output}}}"#);
        let message = decode(Target::OPENAI_RESPONSES, body.as_bytes()).unwrap();
        assert_eq!(message.finish_reason, Some(wanted), "{status}");
    }
}

#[test]
fn lines_of_json_and_arrays_are_streams_too() {
    let one = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
    let two = r#"{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}"#;
    for body in [
        format!("{one}\n{two}"),
        format!("[{one},\r\n{two}]"),
        format!("\n{one}{two}\n"),
        format!("data:{one}\ndata:{two}"),
    ] {
        let message = answer(&body);
        assert_eq!(
            (message.chunks, message.finish_reason),
            (vec![Chunk::text("ab")], Some(FinishReason::Stop)),
            "{body}"
        );
    }
}

#[test]
fn half_characters_do_not_end_a_stream() {
    let message = answer(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n",
    );
    assert_eq!(message.chunks, [Chunk::text("a\u{fffd}b")]);
    let message = decode(CHAT, b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\"}}]}\n\n").unwrap();
    assert_eq!(message.chunks, [Chunk::text("a\u{fffd}")]);
}

/// Pieces of calls, each in a delta of its own, and the calls that they are.
#[test]
fn pieces_of_calls_find_their_call() {
    type Row<'a> = (&'a [&'a str], &'a [(&'a str, &'a str, &'a str)]);
    let table: &[Row<'_>] = &[
        // As the API reference has it.
        (
            &[
                r#""index":0,"id":"a","function":{"name":"f","arguments":""}"#,
                r#""index":0,"function":{"arguments":"{}"}"#,
            ],
            &[("a", "f", "{}")],
        ),
        // Pieces of two calls in turns.
        (
            &[
                r#""index":0,"id":"a","function":{"name":"f"}"#,
                r#""index":1,"id":"b","function":{"name":"g"}"#,
                r#""index":0,"function":{"arguments":"{}"}"#,
                r#""index":1,"function":{"arguments":"[]"}"#,
            ],
            &[("a", "f", "{}"), ("b", "g", "[]")],
        ),
        // Another id with every piece, as some local servers have it.
        (
            &[
                r#""index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}"#,
                r#""index":0,"id":"b","function":{"name":"f","arguments":":1"}"#,
                r#""index":0,"id":"c","function":{"name":null,"arguments":"}"}"#,
            ],
            &[("a", "f", "{\"x\":1}")],
        ),
        // The id comes late; the name once more.
        (
            &[r#""index":0,"function":{"name":"f"}"#, r#""index":0,"id":"a","function":{"name":"f","arguments":"{}"}"#],
            &[("a", "f", "{}")],
        ),
        // Neither index nor id.
        (
            &[
                r#""function":{"name":"f","arguments":{"x":1}}"#,
                r#""function":{"name":"f","arguments":{}}"#,
                r#""name":"g","arguments":"{","type":"function""#,
                r#""function":{"arguments":"}"}"#,
            ],
            &[("", "f", "{\"x\":1}"), ("", "f", "{}"), ("", "g", "{}")],
        ),
        // Ids tell calls apart that have no index.
        (
            &[
                r#""id":"a","function":{"name":"f"}"#,
                r#""id":"b","function":{"name":"f"}"#,
                r#""id":"a","function":{"arguments":"{}"}"#,
            ],
            &[("a", "f", "{}"), ("b", "f", "")],
        ),
    ];
    for (pieces, wanted) in table {
        let body: String = pieces
            .iter()
            .map(|piece| format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{{piece}}}]}}}}]}}\n\n"))
            .collect();
        let wanted: Vec<Chunk> =
            wanted.iter().map(|(id, name, arguments)| Chunk::tool_call(*id, *name, *arguments)).collect();
        assert_eq!(answer(&body).chunks, wanted, "{body}");
    }
}

#[test]
fn audio_in_pieces_that_are_each_encoded_is_one_piece() {
    let piece = |data: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"audio\":{{\"data\":\"{data}\"}}}}}}]}}\n\n");
    let message = answer(&[piece("QQ=="), piece("QkM="), piece("RA==")].concat());
    assert!(matches!(&message.chunks[0].body, Body::Audio(audio) if audio.data.as_deref() == Some("QUJDRA==")));
}

#[test]
fn usage_stays_as_it_is_written() {
    let message = answer(r#"{"choices":[],"usage":{"total_tokens": 1.50e1 ,"a":[]}}"#);
    assert_eq!(message.usage.unwrap().as_str(), r#"{"total_tokens": 1.50e1 ,"a":[]}"#);
}

#[test]
fn what_is_not_known_is_kept() {
    let message =
        answer(r#"{"choices":[{"message":{"content":"a","mood":{"b":1},"empty":[]}}],"weather":"fine","content":1}"#);
    assert_eq!(message.metadata.extra.get("weather").unwrap().as_str(), "\"fine\"");
    let opaque: Vec<String> = message
        .chunks
        .iter()
        .filter(|chunk| matches!(chunk.body, Body::Opaque { .. }))
        .map(|chunk| format!("{:?}", chunk.body))
        .collect();
    assert_eq!(opaque, [r#"Opaque { provider: "openai", kind: "mood", json: {"b":1} }"#]);
    let message = answer(r#"{"id":"x","choices":[]}"#);
    assert_eq!(message.metadata.id.as_deref(), Some("x"));
    let message = answer(r#"{"type":"surprise","a":1}"#);
    assert!(matches!(&message.chunks[0].body, Body::Opaque { kind, .. } if kind == "surprise"));
}

#[test]
fn more_than_is_kept_is_a_typed_error() {
    let mut decoder = Decoder::new(CHAT);
    decoder.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"").unwrap();
    let megabyte = vec![b'a'; 1024 * 1024];
    let refused = (0..70).find_map(|_| decoder.push(&megabyte).err()).unwrap();
    assert!(matches!(refused, Error::LimitExceeded { .. }), "{refused}");
    assert!(decoder.push(b"\"}}]}\n\n").is_err());
    assert!(matches!(decoder.finish().last(), Some(Event::Finish { reason: Some(FinishReason::Interrupted), .. })));
}
