//! Logs as nobody should write them: odd ids, empty names, broken arguments, blank texts, results before calls, repeats,
//! all roles, all finish reasons, foreign signatures, messages without chunks, what each wire may have one day.

use std::sync::LazyLock;

use conversation_store::model::{
    Audio, Body, Chunk, File, FinishReason, Image, Json, Message, Output, Part, PartBody, Role,
};
use conversation_store::provider::PromptOptions;
use conversation_store::{MessageState, StoredMessage};
use proptest::prelude::*;
use proptest::string::string_regex;
use proptest::test_runner::{RngSeed, TestError, TestRunner};

use super::stored::stored;
use super::{blocks, cases, config, items, unknown};

/// A log of up to this many messages. Each text that is not blank stands in it once.
pub(crate) fn log(messages: usize) -> impl Strategy<Value = Vec<StoredMessage>> {
    let one = |message: Message| vec![message];
    let said = prop_oneof![
        16 => message().prop_map(one),
        2 => blocks::message().prop_map(one),
        4 => items::message().prop_map(one),
        1 => unknown::messages(),
    ];
    proptest::collection::vec((said, state()), 0..messages).prop_map(|said| {
        let mut unique = 0;
        let messages = said.into_iter().flat_map(|(said, state)| said.into_iter().map(move |message| (message, state)));
        let placed = (0..).zip(messages).map(|(index, (mut message, state))| {
            for chunk in &mut message.chunks {
                mark(chunk, &mut unique);
            }
            if state == MessageState::Interrupted && message.finish_reason.is_none() {
                message.finish_reason = Some(FinishReason::Interrupted);
            }
            let mut stored = stored(index, state, message);
            stored.index *= 2;
            stored
        });
        placed.collect()
    })
}

/// Runs a property over hostile logs of up to so many messages, each with one of the options, on two threads. Without
/// proptest's macro: the value is shown in full when it fails.
pub(crate) fn for_hostile_logs(
    messages: usize,
    options: Vec<PromptOptions>,
    default_cases: u32,
    property: impl Fn(&[StoredMessage], &PromptOptions) + Sync,
) {
    let cases = cases("CONVO_HOSTILE_CASES", default_cases).div_ceil(2);
    let run = |thread| {
        let logs = (log(messages), proptest::sample::select(options.clone()));
        let mut config = config(cases);
        // A fixed seed, PROPTEST_RNG_SEED, is another for each thread.
        if let RngSeed::Fixed(seed) = &mut config.rng_seed {
            *seed = seed.wrapping_add(thread);
        }
        let result = TestRunner::new(config).run(&logs, |(messages, options)| {
            property(&messages, &options);
            Ok(())
        });
        if let Err(TestError::Fail(reason, (messages, options))) = result {
            let messages: String = messages.iter().map(|stored| format!("{stored:?}\n")).collect();
            panic!("{reason}\n{options:?}\n{messages}");
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(|| run(1));
        run(0);
    });
}

/// Makes the chunk's texts its own, unless they stand in a provider's own block too.
fn mark(chunk: &mut Chunk, unique: &mut u32) {
    if chunk.native.is_some() {
        return;
    }
    let mut own = |text: &mut String| {
        if !text.trim().is_empty() {
            *unique += 1;
            text.push_str(&format!(" <{unique}>"));
        }
    };
    match &mut chunk.body {
        Body::Text { text, .. } | Body::Thinking { text, .. } | Body::Refusal { text } => own(text),
        Body::ToolResult { output: Output::Text(text), .. } => own(text),
        Body::ToolResult { output: Output::Parts(parts), .. } => {
            for part in parts {
                if let PartBody::Text { text } = &mut part.body {
                    own(text);
                }
            }
        }
        _ => {}
    }
}

fn state() -> impl Strategy<Value = MessageState> {
    prop_oneof![
        8 => Just(MessageState::Complete),
        1 => Just(MessageState::Interrupted),
        1 => Just(MessageState::Streaming),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        1 => Just(Role::System), 4 => Just(Role::User), 5 => Just(Role::Assistant), 5 => Just(Role::Tool),
    ];
    let provider = prop_oneof![4 => Just(None), 1 => word().prop_map(Some)];
    let chunks = Role::ALL.map(|role| (role, chunk(role)));
    (role, finish_reason(), provider).prop_flat_map(move |(role, finish_reason, provider)| {
        let (_, chunk) = chunks.iter().find(|(of, _)| *of == role).unwrap();
        proptest::collection::vec(chunk.clone(), 0..4).prop_map(move |chunks| {
            let mut message = Message::new(role, chunks);
            message.finish_reason.clone_from(&finish_reason);
            message.metadata.provider.clone_from(&provider);
            message.metadata.model.clone_from(&provider);
            message
        })
    })
}

fn finish_reason() -> impl Strategy<Value = Option<FinishReason>> {
    const WORDS: &[&str] =
        &["stop", "length", "tool_calls", "content_filter", "refusal", "error", "interrupted", "pause_turn"];
    proptest::option::of(proptest::sample::select(WORDS).prop_map(FinishReason::from))
}

/// Mostly what the role would say, sometimes anything.
fn chunk(role: Role) -> BoxedStrategy<Chunk> {
    let fitting = match role {
        Role::System | Role::User => text_chunk(),
        Role::Assistant => prop_oneof![text_chunk(), thinking(), tool_call(), tool_call()].boxed(),
        Role::Tool => tool_result(),
    };
    prop_oneof![4 => fitting, 1 => any_chunk()].boxed()
}

fn any_chunk() -> BoxedStrategy<Chunk> {
    // A vendor with two wires has blocks of each.
    let opaque = proptest::sample::select(vec![
        ("openai", "web_search", r#"{"b":1.00,"a":2}"#),
        ("openai", "hologram_output", r#"{"type":"hologram_output","call_id":"h","beam":1}"#),
        ("openai", "additional_tools", r#"{"type":"additional_tools","role":"developer","tools":[]}"#),
        ("openai", "input_video", r#"{"type":"input_video","beam":1}"#),
        ("openai-chat", "hologram", r#"{"type":"hologram","beam":1}"#),
        ("bedrock", "hologram", r#"{"type":"hologram","beam":1}"#),
        ("bedrock", "hologram", r#"{"hologram":{"beam":1}}"#),
    ]);
    let opaque = opaque.prop_map(|(provider, kind, json)| Body::Opaque {
        provider: provider.to_owned(),
        kind: kind.to_owned(),
        json: Json::new(json).unwrap(),
    });
    prop_oneof![
        text_chunk(),
        thinking(),
        tool_call(),
        tool_result(),
        text().prop_map(|text| Body::Refusal { text }.into()),
        image().prop_map(|image| Body::Image(image).into()),
        audio().prop_map(|audio| Body::Audio(audio).into()),
        file().prop_map(|file| Body::File(file).into()),
        Just(Chunk::error("boom")),
        opaque.prop_map(Chunk::from),
        Just(Body::Unknown { kind: "hologram".to_owned() }.into()),
    ]
    .boxed()
}

fn text_chunk() -> BoxedStrategy<Chunk> {
    text().prop_map(Chunk::text).boxed()
}

fn thinking() -> BoxedStrategy<Chunk> {
    let opaque =
        || prop_oneof![3 => Just(None), 1 => Just(Some("c2ln".to_owned())), 1 => Just(Some("not base64!".to_owned()))];
    (text(), opaque(), opaque())
        .prop_map(|(text, signature, redacted)| Body::Thinking { text, signature, redacted }.into())
        .boxed()
}

fn tool_call() -> BoxedStrategy<Chunk> {
    let signature = prop_oneof![5 => Just(None), 1 => Just(Some("c2ln".to_owned()))];
    (id(), name(), arguments(), signature, proptest::bool::weighted(0.1))
        .prop_map(|(id, name, arguments, signature, server)| {
            Body::ToolCall { id, name, arguments, signature, server }.into()
        })
        .boxed()
}

fn tool_result() -> BoxedStrategy<Chunk> {
    let part = prop_oneof![
        text().prop_map(|text| PartBody::Text { text }),
        image().prop_map(PartBody::Image),
        audio().prop_map(PartBody::Audio),
        file().prop_map(PartBody::File),
        Just(PartBody::Json { json: Json::new(r#"{"n": 1}"#).unwrap() }),
        Just(PartBody::Unknown { kind: "hologram".to_owned() }),
    ];
    let output = prop_oneof![
        2 => text().prop_map(Output::Text),
        1 => proptest::collection::vec(part.prop_map(Part::from), 0..3).prop_map(Output::Parts),
    ];
    (id(), proptest::option::of(name()), output, proptest::option::of(any::<bool>()))
        .prop_map(|(tool_call_id, name, output, is_error)| {
            Body::ToolResult { tool_call_id, name, output, is_error }.into()
        })
        .boxed()
}

/// Few, so that they repeat.
fn id() -> impl Strategy<Value = String> {
    let long = "call_".to_owned() + &"x".repeat(90);
    prop_oneof![
        6 => proptest::sample::select(["call_0", "call_1", "call_2", "toolu_9"].as_slice()).prop_map(str::to_owned),
        1 => proptest::sample::select(["", "functions.bash:0", "a|b c", "ä"].as_slice()).prop_map(str::to_owned),
        1 => Just(long),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("read_file".to_owned()),
        1 => proptest::sample::select(["", "browser.tabs.open", "9lives", "naïve tool"].as_slice()).prop_map(str::to_owned),
        1 => Just("mcp__".to_owned() + &"long_name_".repeat(20)),
    ]
}

fn arguments() -> impl Strategy<Value = String> {
    const FIXED: &[&str] = &[
        "{}",
        r#"{"path":"a"}"#,
        "",
        " ",
        "null",
        "[]",
        "[1]",
        "\"x\"",
        r#"{"a":"#,
        r#"{"a":1}{"b":2}"#,
        "{\"a\":NaN}",
        r#"{"a":"\ud83d"}"#,
        r#"{"n": 1.0e5, "n": 2}"#,
        "not json",
        "{\"a\":\"\u{0}\"}",
    ];
    prop_oneof![8 => proptest::sample::select(FIXED).prop_map(str::to_owned), 1 => text()]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => word(),
        1 => proptest::sample::select(["", " ", "\n\t", "\u{a0}", "ends here \n", "\u{0}NUL", "\u{feff}", "😀", "]}\"", "\\"].as_slice())
            .prop_map(str::to_owned),
        1 => anything(),
    ]
}

/// What `any` gives, whose expression is read again for each text.
fn anything() -> SBoxedStrategy<String> {
    static ANYTHING: LazyLock<SBoxedStrategy<String>> = LazyLock::new(|| string_regex("\\PC*").unwrap().sboxed());
    ANYTHING.clone()
}

fn word() -> impl Strategy<Value = String> {
    proptest::sample::select(["deepseek", "openai", "hello", "ok"].as_slice()).prop_map(str::to_owned)
}

fn image() -> impl Strategy<Value = Image> {
    const URLS: &[&str] = &[
        "https://x.test/a.png",
        "data:image/png;base64,iVBORw0KGgo=",
        "data:image/png;base64,iVBORw0",
        "data:image/png;base64,/9j/4AAQSkZJRgABAQAAAQABAAD/2wBD",
        "data:image/svg+xml;base64,PHN2Zy8+",
        "data:image/jpg;base64,/9j/4AAQ",
        "data:image/png;base64,%%%",
        "file:///etc/passwd",
        "",
    ];
    let label = proptest::option::of(Just("image/png".to_owned()));
    (proptest::sample::select(URLS), label).prop_map(|(url, mime_type)| Image { url: url.to_owned(), mime_type })
}

fn audio() -> impl Strategy<Value = Audio> {
    let data = proptest::option::of(proptest::sample::select(["UklGRg==", "%%%", "UklGRg"].as_slice()));
    let transcript = proptest::option::of(text());
    let kind = proptest::option::of(proptest::sample::select(["audio/wav", "audio/ogg"].as_slice()));
    (data, transcript, kind).prop_map(|(data, transcript, kind)| Audio {
        url: None,
        data: data.map(str::to_owned),
        mime_type: kind.map(str::to_owned),
        transcript,
    })
}

fn file() -> impl Strategy<Value = File> {
    let data =
        proptest::option::of(proptest::sample::select(["JVBERi0=", "%%%", "data:text/plain;base64,QQ=="].as_slice()));
    let url = proptest::option::of(Just("https://x.test/a.pdf".to_owned()));
    (data, url, proptest::option::of(word())).prop_map(|(data, url, name)| File {
        name,
        url,
        data: data.map(str::to_owned),
        mime_type: None,
    })
}
