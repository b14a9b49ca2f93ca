//! Any message, for property tests.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::string::string_regex;

use super::{
    Audio, Body, Chunk, Extra, File, FinishReason, Image, Json, Message, Metadata, Native, Output, Part, PartBody,
    Role, Timestamp,
};

/// Characters of every plane, NUL and the non-characters among them.
fn text() -> impl Strategy<Value = String> {
    static TEXT: LazyLock<SBoxedStrategy<String>> = LazyLock::new(|| {
        let odd = string_regex("[a-z\"\\\\{}\u{0}\u{7f}\u{2028}\u{fdd0}\u{ffff}]{0,12}").unwrap();
        prop_oneof![3 => string_regex("(?s).{0,12}").unwrap(), 1 => odd].sboxed()
    });
    TEXT.clone()
}

fn json() -> impl Strategy<Value = Json> {
    let texts = [
        "1",
        "-0.0",
        "1e400",
        "12345678901234567890123",
        "true",
        r#""\ud83d\ude00 \u0000""#,
        r#"{"b":1.0,"a":[1E3,null],"b":2}"#,
        r#"{ "spaced" : [ ] }"#,
        "[[[]]]",
    ];
    prop::sample::select(texts.to_vec()).prop_map(|text| Json::new(text).unwrap())
}

/// Fields of names that this crate does not know.
fn extra() -> impl Strategy<Value = Extra> {
    let value = prop_oneof![4 => json(), 1 => Just(Json::new("null").unwrap())];
    let name = string_regex("x_[a-zé\" ]{0,4}").unwrap();
    vec((name, value), 0..3).prop_map(|fields| {
        let mut extra = Extra::new();
        fields.into_iter().for_each(|(name, value)| extra.push(name, value));
        extra
    })
}

/// A kind that this crate does not know.
fn unknown() -> impl Strategy<Value = String> {
    string_regex("x_[a-z]{0,4}").unwrap()
}

fn native() -> impl Strategy<Value = Native> {
    (prop::sample::select(vec!["anthropic", "transcript"]), json())
        .prop_map(|(wire, json)| Native { wire: wire.to_owned(), json })
}

fn image() -> impl Strategy<Value = Image> {
    (text(), option::of(text())).prop_map(|(url, mime_type)| Image { url, mime_type })
}

fn audio() -> impl Strategy<Value = Audio> {
    let texts = || option::of(text());
    (texts(), texts(), texts(), texts()).prop_map(|(url, data, mime_type, transcript)| Audio {
        url,
        data,
        mime_type,
        transcript,
    })
}

fn file() -> impl Strategy<Value = File> {
    let texts = || option::of(text());
    (texts(), texts(), texts(), texts()).prop_map(|(name, url, data, mime_type)| File { name, url, data, mime_type })
}

fn part() -> impl Strategy<Value = Part> {
    let body = prop_oneof![
        text().prop_map(|text| PartBody::Text { text }),
        image().prop_map(PartBody::Image),
        audio().prop_map(PartBody::Audio),
        file().prop_map(PartBody::File),
        json().prop_map(|json| PartBody::Json { json }),
        unknown().prop_map(|kind| PartBody::Unknown { kind }),
    ];
    (body, extra()).prop_map(|(body, extra)| Part { body, extra })
}

fn output() -> impl Strategy<Value = Output> {
    prop_oneof![text().prop_map(Output::Text), vec(part(), 0..3).prop_map(Output::Parts)]
}

fn body() -> impl Strategy<Value = Body> {
    let some = || option::of(text());
    prop_oneof![
        (text(), option::of(json())).prop_map(|(text, annotations)| Body::Text { text, annotations }),
        (text(), some(), some()).prop_map(|(text, signature, redacted)| Body::Thinking { text, signature, redacted }),
        text().prop_map(|text| Body::Refusal { text }),
        (text(), text(), text(), some(), any::<bool>()).prop_map(|(id, name, arguments, signature, server)| {
            Body::ToolCall { id, name, arguments, signature, server }
        }),
        (text(), some(), output(), option::of(any::<bool>())).prop_map(|(tool_call_id, name, output, is_error)| {
            Body::ToolResult { tool_call_id, name, output, is_error }
        }),
        image().prop_map(Body::Image),
        audio().prop_map(Body::Audio),
        file().prop_map(Body::File),
        (text(), some()).prop_map(|(message, code)| Body::Error { message, code }),
        (text(), text(), json()).prop_map(|(provider, kind, json)| Body::Opaque { provider, kind, json }),
        unknown().prop_map(|kind| Body::Unknown { kind }),
    ]
}

fn chunk() -> impl Strategy<Value = Chunk> {
    (body(), option::of(text()), option::of(native()), extra()).prop_map(|(body, id, native, extra)| Chunk {
        body,
        id,
        native,
        extra,
    })
}

fn finish_reason() -> impl Strategy<Value = FinishReason> {
    use FinishReason::{ContentFilter, Error, Interrupted, Length, Other, Refusal, Stop, ToolCalls};
    let other = Other("pause_turn".to_owned());
    prop::sample::select(vec![Stop, Length, ToolCalls, ContentFilter, Refusal, Error, Interrupted, other])
}

/// A moment between the years 1653 and 2286.
fn timestamp() -> impl Strategy<Value = Timestamp> {
    (-10_000_000_000_000_000..10_000_000_000_000_000_i64).prop_map(Timestamp::from_micros)
}

fn metadata() -> impl Strategy<Value = Metadata> {
    let some = || option::weighted(0.3, text());
    let texts = (some(), some(), some(), some(), some());
    (texts, option::of(timestamp()), option::of(native()), extra()).prop_map(|(texts, created_at, native, extra)| {
        let (model, provider, turn_id, step_id, id) = texts;
        Metadata { model, provider, created_at, turn_id, step_id, id, native, extra }
    })
}

/// Any message.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    let role = prop::sample::select(Role::ALL.to_vec());
    let said = (role, vec(chunk(), 0..4));
    (said, option::of(finish_reason()), option::of(json()), metadata()).prop_map(
        |((role, chunks), finish_reason, usage, metadata)| Message { role, chunks, finish_reason, usage, metadata },
    )
}
