//! What right prompts for OpenAI chat show, case by case.

use crate::common::chat::{rendered, shape};
use crate::common::reported;
use conversation_store::model::{Body, Chunk, Image, Json, Message, Metadata, Native, Output, PartBody, Role};
use conversation_store::provider::{PromptOptions, Target, Thinking, render};
use conversation_store::{Error, Rule, Store};

/// The reports whose target is this wire, or any: read beside the `expect` of each case in `corruption.jsonl`.
#[test]
fn reported_failures_are_rendered_as_they_should_be() {
    let mut found = String::new();
    for case in reported::cases().iter().filter(|case| ["openai_chat", "any"].contains(&case.target.as_str())) {
        let prompt =
            crate::common::prompts::prompt(Target::OPENAI_CHAT, &case.messages, &PromptOptions::new()).unwrap();
        found += &format!("# {}\n{}\n\n", case.id, shape(prompt.request.get()).join("\n"));
    }
    let wanted = include_str!("../fixtures/expected/openai_chat.txt");
    for (wanted, found) in wanted.split("\n\n").zip(found.split("\n\n")) {
        assert_eq!(found, wanted);
    }
    assert_eq!(found, wanted);
}

fn deepseek() -> Target {
    "openai-chat/deepseek".parse().unwrap()
}

/// Parallel tool results with images were split by user messages: "tool_use ids were found without tool_result blocks".
#[test]
fn parallel_results_with_images_stay_together() {
    let image = |url: &str| {
        let image = PartBody::Image(Image { url: url.to_owned(), mime_type: None });
        Output::Parts(vec![PartBody::Text { text: format!("see {url}") }.into(), image.into()])
    };
    let result = |id: &str, url: &str| {
        let body = Body::ToolResult { tool_call_id: id.to_owned(), name: None, output: image(url), is_error: None };
        Message::new(Role::Tool, [body.into()])
    };
    let messages = [
        Message::user("compare"),
        Message::assistant([Chunk::tool_call("a", "read", "{}"), Chunk::tool_call("b", "read", "{}")]),
        result("a", "https://x.test/a.png"),
        Message::user("quick!"),
        result("b", "https://x.test/b.png"),
    ];
    let (shape, report) = rendered(Target::OPENAI_CHAT, &messages, &PromptOptions::new());
    assert_eq!(
        shape,
        [
            "user compare",
            "assistant",
            "call a read {}",
            "call b read {}",
            "result a: see https://x.test/a.png",
            "result b: see https://x.test/b.png",
            "user [Output of the tool call a:] [image https://x.test/a.png] [Output of the tool call b:] [image https://x.test/b.png]",
            "user quick!",
        ]
    );
    assert_eq!(report, [Rule::ResultMoved, Rule::MediaMoved, Rule::MediaMoved]);
    let (shape, _) = rendered(deepseek(), &messages, &PromptOptions::new());
    assert_eq!(shape[4], "result a: see https://x.test/a.png\n\n[image left out: the target takes none]");
    assert_eq!(shape[6], "user quick!");
}

/// A malformed arguments string, or an error marker, stored once, was refused on every later turn.
#[test]
fn malformed_arguments_become_an_object_and_errors_never_reach_a_prompt() {
    let messages = [
        Message::user("go"),
        Message::assistant([Chunk::tool_call("1", "run", "{\"cmd\":\"ls"), Chunk::error("overloaded")]),
        Message::tool("1", "bad arguments"),
    ];
    let (shape, report) = rendered(Target::OPENAI_CHAT, &messages, &PromptOptions::new());
    assert_eq!(
        shape,
        ["user go", "assistant", r#"call 1 run {"malformed_arguments":"{\"cmd\":\"ls"}"#, "result 1: bad arguments",]
    );
    assert_eq!(report, [Rule::ErrorChunkRemoved, Rule::ArgumentsRepaired]);
}

#[test]
fn thinking_goes_where_it_is_told() {
    let thinking = || Chunk::thinking("hm");
    let messages = [
        Message::assistant([thinking(), Chunk::text("hello")]),
        Message::user("run"),
        Message::assistant([thinking(), Chunk::tool_call("1", "run", "{}")]),
        Message::tool("1", "ok"),
        Message::assistant([Chunk::tool_call("2", "run", "{}")]),
        Message::tool("2", "ok"),
        Message::assistant([thinking()]),
    ];
    let lines = |target, thinking| {
        let shape = rendered(target, &messages, &PromptOptions::new().with_thinking(thinking)).0;
        shape.into_iter().filter(|line| line.starts_with("assistant")).collect::<Vec<_>>()
    };
    let tagged = "assistant <think>\nhm\n</think>";
    assert_eq!(lines(Target::OPENAI_CHAT, Thinking::Native), ["assistant hello", "assistant", "assistant", tagged]);
    assert_eq!(lines(Target::OPENAI_CHAT, Thinking::Omit), ["assistant hello", "assistant", "assistant"]);
    assert_eq!(
        lines(Target::OPENAI_CHAT, Thinking::Tagged),
        ["assistant [<think>\nhm\n</think>] [hello]", tagged, "assistant", tagged]
    );
    let (with, without) = ("assistant (thinks \"hm\")", "assistant (thinks \"\")");
    assert_eq!(lines(deepseek(), Thinking::Native), ["assistant hello", with, without, tagged]);
    assert_eq!(lines(deepseek(), Thinking::Omit), ["assistant hello", without, without]);
}

#[test]
fn only_the_same_provider_and_model_thinks_natively() {
    let mut message = Message::assistant([Chunk::thinking("hm"), Chunk::tool_call("1", "run", "{}")]);
    let mut reasoning = |provider: Option<&str>, model: Option<&str>, wanted: Option<&str>| {
        message.metadata.provider = provider.map(str::to_owned);
        message.metadata.model = model.map(str::to_owned);
        let mut options = PromptOptions::new();
        options.model = wanted.map(str::to_owned);
        rendered(deepseek(), std::slice::from_ref(&message), &options).0.concat().contains("hm")
    };
    assert!(reasoning(None, None, None));
    assert!(reasoning(Some("deepseek"), Some("v4"), Some("v4")));
    assert!(reasoning(Some("deepseek"), Some("v4"), None));
    assert!(!reasoning(Some("anthropic"), None, None));
    assert!(!reasoning(Some("deepseek"), Some("v4"), Some("reasoner")));
}

#[test]
fn more_calls_than_a_message_may_hold_are_said_in_several() {
    let calls = (0..300).map(|i| Chunk::tool_call(format!("c{i}"), "run", "{}"));
    let mut messages = vec![Message::user("go"), Message::assistant(calls)];
    messages.extend((0..300).map(|i| Message::tool(format!("c{i}"), "ok")));
    let (shape, _) = rendered(Target::OPENAI_CHAT, &messages, &PromptOptions::new());
    assert_eq!(shape.iter().filter(|line| *line == "assistant").count(), 3);
    assert_eq!(shape.iter().filter(|line| line.starts_with("result")).count(), 300);
}

#[test]
fn nothing_to_send_is_an_error() {
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::assistant([Chunk::error("overloaded")])]).unwrap();
    let result = render(Target::OPENAI_CHAT, &store.load("chat").unwrap(), &PromptOptions::new());
    assert!(matches!(result, Err(Error::NothingToSend(_))), "{result:?}");
}

#[test]
fn a_lone_surrogate_is_replaced_and_reported_and_the_raw_is_kept() {
    let line = r#"{"role":"user","chunks":[{"type":"text","text":"fine"},{"type":"text","text":"cut \ud83d"}]}"#;
    let message = Message::from_json(line).unwrap();
    let (shape, report) = rendered(Target::OPENAI_CHAT, &[message], &PromptOptions::new());
    assert_eq!(shape, ["user [fine] [cut \u{fffd}]"]);
    assert_eq!(report, [Rule::SurrogateReplaced]);
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::from_json(line).unwrap()]).unwrap();
    let loaded = store.load("chat").unwrap();
    let kept = &loaded.messages()[0].message.chunks[1];
    assert_eq!(kept.native.as_ref().unwrap().json.as_str(), r#"{"type":"text","text":"cut \ud83d"}"#);
}

#[test]
fn streaming_messages_are_taken_as_they_are() {
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::user("go")]).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("I am")).unwrap();
    writer.push(1, Chunk::tool_call("1", "run", "{\"a")).unwrap();
    store.sync().unwrap();
    let prompt = render(Target::OPENAI_CHAT, &store.load("chat").unwrap(), &PromptOptions::new()).unwrap();
    let rules: Vec<Rule> = prompt.report.iter().map(|line| line.rule).collect();
    assert_eq!(rules, [Rule::StreamingTakenAsInterrupted, Rule::PendingAnswered, Rule::ArgumentsRepaired]);
    let shape = shape(prompt.request.get());
    assert_eq!(shape[1], "assistant I am");
    assert!(shape[3].starts_with("result 1: Not run"), "{shape:?}");
}

/// What came with a call or a message goes back as it came only where it still says the same.
#[test]
fn what_came_with_a_call_goes_back_only_with_that_call() {
    let native = |arguments: &str| {
        let function = serde_json::json!({ "name": "f", "arguments": arguments });
        let call = serde_json::json!({ "id": "1", "type": "function", "function": function, "index": 0 });
        Native { wire: "openai-chat".to_owned(), json: Json::new(call.to_string()).unwrap() }
    };
    let prompt = |provider: &str, given: &str| {
        let call = Chunk { native: Some(native(given)), ..Chunk::tool_call("1", "f", "{}") };
        let mut message = Message::assistant([call]);
        message.metadata.provider = Some(provider.to_owned());
        let store = Store::open("memory:").unwrap();
        store.append("chat", &[Message::user("go"), message, Message::tool("1", "ok")]).unwrap();
        let target = "openai-chat/groq".parse().unwrap();
        let prompt = render(target, &store.load("chat").unwrap(), &PromptOptions::new()).unwrap();
        (prompt.request.get().contains("\"index\":0"), prompt.request.get().contains("changed"))
    };
    assert_eq!(prompt("groq", "{}"), (true, false));
    assert_eq!(prompt("groq", "{\"changed\":1}"), (false, false), "the call was changed since");
    assert_eq!(prompt("mistral", "{}"), (false, false), "another server's");
}

/// A field of the server's own is there once, and none that a message has anyway.
#[test]
fn fields_of_a_message_are_there_once() {
    let field = |kind: &str, json: &str| {
        let json = Json::new(json).unwrap();
        Chunk::from(Body::Opaque { provider: "compatible".to_owned(), kind: kind.to_owned(), json })
    };
    let fields = [field("mood", "1"), field("mood", "2"), field("role", "\"user\"")];
    let mut message = Message::assistant([Chunk::text("hello")].into_iter().chain(fields));
    message.metadata.provider = Some("compatible".to_owned());
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::user("go"), message, Message::user("on")]).unwrap();
    let target = "openai-chat/compatible".parse().unwrap();
    let prompt = render(target, &store.load("chat").unwrap(), &PromptOptions::new()).unwrap();
    let request = prompt.request.get();
    assert!(request.contains("\"mood\":1") && !request.contains("\"mood\":2"), "{request}");
    assert_eq!(request.matches("\"role\":\"user\"").count(), 2, "{request}");
}

/// OC-24.
#[test]
fn the_name_of_a_speaker_goes_back_if_it_is_taken() {
    let named = |name: &str| {
        let line =
            format!("{{\"role\":\"user\",\"name\":{name:?},\"chunks\":[{{\"type\":\"text\",\"text\":\"hi\"}}]}}");
        let store = Store::open("memory:").unwrap();
        store.append("chat", &[Message::from_json(&line).unwrap()]).unwrap();
        let prompt = render(Target::OPENAI_CHAT, &store.load("chat").unwrap(), &PromptOptions::new()).unwrap();
        prompt.request.get().contains("\"name\"")
    };
    assert!(named("ada") && !named("ada lovelace") && !named(&"x".repeat(65)));
}
