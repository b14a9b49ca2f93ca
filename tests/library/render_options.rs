//! What the options of a prompt do: images, rounds of tools that are over, and tools that the caller declares.

use crate::common::chat::rendered;
use crate::common::{prompts, stored};
use conversation_store::model::{Body, Chunk, Image, Json, Message, Output, PartBody, Role};
use conversation_store::provider::{
    FinishedTools, Images, NoContent, PromptOptions, Target, Thinking, Tool, check, render,
};
use conversation_store::{Error, Rule, Store};
use serde_json::{Value, json};

/// Two turns with tools: one is over, one is not.
fn two_turns() -> Vec<Message> {
    let image = PartBody::Image(Image { url: "https://x.test/a.png".to_owned(), mime_type: None });
    let output = Output::Parts(vec![PartBody::Text { text: "seen".to_owned() }.into(), image.into()]);
    let seen = Body::ToolResult { tool_call_id: "2".to_owned(), name: None, output, is_error: Some(true) };
    vec![
        Message::user("look"),
        Message::assistant([
            Chunk::thinking("hm"),
            Chunk::text("I look."),
            Chunk::tool_call("1", "list", r#"{"path":"."}"#),
            Chunk::tool_call("2", "see", "{}"),
        ]),
        Message::new(Role::Tool, [Chunk::tool_result("1", "a.png"), seen.into()]),
        Message::assistant([Chunk::text("One picture.")]),
        Message::user("again"),
        Message::assistant([Chunk::thinking("hm"), Chunk::tool_call("1", "list", "{}")]),
        Message::tool("1", ""),
    ]
}

fn told(finished_tools: FinishedTools) -> (Vec<String>, Vec<Rule>) {
    rendered(Target::OPENAI_CHAT, &two_turns(), &PromptOptions::new().with_finished_tools(finished_tools))
}

/// What a model that sees no images is sent in their place, on each wire.
#[test]
fn images_are_left_out_on_request() {
    let image = Image { url: "data:image/png;base64,iVBORw0KGgo=".to_owned(), mime_type: None };
    let part = PartBody::Image(image.clone());
    let output = Output::Parts(vec![PartBody::Text { text: "done".to_owned() }.into(), part.into()]);
    let shot = Body::ToolResult { tool_call_id: "1".to_owned(), name: None, output, is_error: None };
    let messages = [
        Message::new(Role::User, [Chunk::text("draw"), Body::Image(image.clone()).into()]),
        Message::assistant([Body::Image(image).into(), Chunk::tool_call("1", "shot", "{}")]),
        Message::new(Role::Tool, [shot.into()]),
        Message::user("and?"),
    ];
    let store = Store::open("memory:").unwrap();
    store.append("chat", &messages).unwrap();
    let conversation = store.load("chat").unwrap();
    for target in prompts::targets() {
        let prompt = render(target, &conversation, &PromptOptions::new().with_images(Images::Omit)).unwrap();
        prompts::assert_accepted(target, &prompt);
        let request = prompt.request.get();
        assert!(!request.contains("iVBORw0KGgo"), "{request}");
        assert_eq!(request.matches("[image left out: the model takes none]").count(), 3, "{request}");
        let left_out = prompt.report.iter().filter(|line| line.rule == Rule::LeftOut);
        let sites: Vec<_> = left_out.map(|line| (line.message_index, line.chunk_index)).collect();
        assert_eq!(sites, [(Some(0), Some(1)), (Some(1), Some(0)), (Some(2), Some(0))], "{target}");
    }
}

/// An assistant's picture: where only the user may have one, both state whose it is.
#[test]
fn pictures_by_the_assistant_are_told_as_its_own() {
    let image = Image { url: "data:image/png;base64,iVBORw0KGgo=".to_owned(), mime_type: None };
    let messages = [Message::user("draw"), Message::assistant([Body::Image(image).into()]), Message::user("and?")];
    for target in prompts::targets() {
        let prompt = prompts::prompt(target, &stored::log(messages.clone()), &PromptOptions::new()).unwrap();
        prompts::assert_accepted(target, &prompt);
        let request = prompt.request.get();
        if !request.contains("iVBORw0KGgo") {
            assert!(request.contains("[image left out: "), "{target} {request}");
            continue;
        }
        let places = ["draw", "assistant", "[image: it is in", "Image by the assistant:", "iVBORw0KGgo", "and?"];
        let places = places.map(|text| {
            text.replace(
                "assistant",
                if target.wire().name == "gemini" && text.len() < 10 { "model" } else { "assistant" },
            )
        });
        let found: Vec<_> = places.iter().map(|text| request.find(text.as_str())).collect();
        assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{target} {found:?} {request}");
    }
}

/// One image cannot be read: it alone is words.
#[test]
fn bytes_that_are_no_image_are_words_and_the_other_images_stay() {
    let image = |data: &str| {
        let image = Image { url: format!("data:image/png;base64,{data}"), mime_type: None };
        Chunk::from(Body::Image(image))
    };
    let messages =
        [Message::new(Role::User, [image("iVBORw0KGgo="), image("aGVsbG8gd29ybGQ="), image("iVBORw0KGgoA")])];
    for target in prompts::targets() {
        let prompt = prompts::prompt(target, &stored::log(messages.clone()), &PromptOptions::new()).unwrap();
        let request = prompt.request.get();
        let all = request.matches("image left out").count();
        if request.contains("iVBORw0KGgo=") {
            assert!(all == 1 && request.contains("iVBORw0KGgoA"), "{target} {request}");
        } else {
            assert_eq!(all, 3, "{target} {request}");
        }
        assert!(!request.contains("aGVsbG8gd29ybGQ="), "{target} {request}");
        assert!(prompt.report.iter().any(|line| (line.rule, line.chunk_index) == (Rule::LeftOut, Some(1))));
    }
}

#[test]
fn long_results_are_shortened() {
    let options = PromptOptions::new().with_max_result_bytes(5);
    let messages = [
        Message::user("look"),
        Message::assistant([Chunk::tool_call("1", "list", "{}"), Chunk::tool_call("2", "list", "{}")]),
        Message::new(Role::Tool, [Chunk::tool_result("1", "a.png b.png"), Chunk::tool_result("2", "a.png")]),
    ];
    for target in prompts::targets() {
        let prompt = prompts::prompt(target, &stored::log(messages.clone()), &options).unwrap();
        prompts::assert_accepted(target, &prompt);
        let request = prompt.request.get();
        assert!(request.contains(r"a.png\n[6 more bytes left out]"), "{target} {request}");
        assert!(!request.contains("b.png"), "{target} {request}");
        let lines: Vec<_> = prompt.report.iter().filter(|line| line.rule == Rule::Altered).collect();
        assert!(
            matches!(lines[..], [line] if (line.message_index, line.chunk_index) == (Some(2), Some(0))),
            "{lines:?}"
        );
    }
}

/// Of the last two turns at least, in steps of two, on each wire that takes thinking back.
#[test]
fn thinking_is_sent_of_the_last_turns() {
    let turn = |turn: usize| {
        let thinking = Body::Thinking { text: format!("thought {turn}"), signature: None, redacted: None };
        let call = Chunk::tool_call(format!("call_{turn}"), "list", "{}");
        [
            Message::user(format!("ask {turn}")),
            Message::assistant([thinking.into(), call]),
            Message::tool(format!("call_{turn}"), "x"),
            Message::assistant([Chunk::text(format!("answer {turn}"))]),
        ]
    };
    let sent = |turns: usize, options: &PromptOptions| {
        let target: Target = "openai-chat/deepseek".parse().unwrap();
        let log: Vec<Message> = (0..turns).flat_map(turn).collect();
        let prompt = prompts::prompt(target, &stored::log(log), options).unwrap();
        prompts::assert_accepted(target, &prompt);
        let lines = prompt.report.iter().filter(|line| line.rule == Rule::ThinkingLeftOut).count();
        let sent: Vec<usize> =
            (0..turns).filter(|turn| prompt.request.get().contains(&format!("thought {turn}\""))).collect();
        assert_eq!(sent.len() + lines, turns, "{:?}", prompt.report);
        sent
    };
    let two = PromptOptions::new().with_thinking_turns(2);
    let table: [&[usize]; 7] = [&[], &[0], &[0, 1], &[0, 1, 2], &[2, 3], &[2, 3, 4], &[4, 5]];
    for (turns, wanted) in table.iter().enumerate().skip(1) {
        assert_eq!(sent(turns, &two), *wanted, "{turns}");
    }
    assert_eq!(sent(3, &PromptOptions::new().with_thinking_turns(0)), [0; 0]);
    assert_eq!(sent(3, &PromptOptions::new().with_thinking_turns(1)), [2]);
}

#[test]
fn finished_rounds_are_flattened() {
    let (shape, report) = told(FinishedTools::Flatten);
    let list = "[The tool list was called with {\"path\":\".\"} and gave:\n\na.png]";
    let see = "[The tool see was called with {} and failed:] [seen] [image https://x.test/a.png]";
    assert_eq!(
        shape[..5],
        ["user look", "assistant I look.", &format!("user {list} {see}"), "assistant One picture.", "user again"]
    );
    assert_eq!(shape[6], "call 1 list {}");
    let flattened = report.iter().filter(|rule| **rule == Rule::FinishedToolFlattened).count();
    assert_eq!((flattened, report.len()), (4, 6), "{report:?}");
}

#[test]
fn finished_rounds_are_dropped() {
    let (shape, report) = told(FinishedTools::Drop);
    assert_eq!(shape[..4], ["user look", "assistant I look.", "assistant One picture.", "user again"]);
    assert_eq!(shape[5], "call 1 list {}");
    let dropped = report.iter().filter(|rule| **rule == Rule::FinishedToolDropped).count();
    assert_eq!((dropped, report.len()), (4, 6), "{report:?}");
}

/// Thinking that is wanted as text stays.
#[test]
fn tagged_thinking_outlives_its_round() {
    let options = PromptOptions::new().with_finished_tools(FinishedTools::Drop).with_thinking(Thinking::Tagged);
    let (shape, _) = rendered(Target::OPENAI_CHAT, &two_turns(), &options);
    assert_eq!(shape[1], "assistant [<think>\nhm\n</think>] [I look.]");
}

/// As long as the user does not speak, a round is not over: the prompt of a running loop keeps its beginning.
#[test]
fn a_round_is_over_when_the_user_has_spoken() {
    let messages: Vec<Message> = two_turns().into_iter().take(4).collect();
    let kept = rendered(Target::OPENAI_CHAT, &messages, &PromptOptions::new());
    for how in [FinishedTools::Flatten, FinishedTools::Drop] {
        assert_eq!(rendered(Target::OPENAI_CHAT, &messages, &PromptOptions::new().with_finished_tools(how)), kept);
    }
}

/// Results that come as a user's message are not the user's words: the round of a call without a result is not over either.
#[test]
fn results_under_the_users_role_end_no_round() {
    let messages = [
        Message::assistant([Chunk::tool_call("1", "look", "{}"), Chunk::tool_call("2", "look", "{}")]),
        Message::new(Role::User, [Chunk::tool_result("2", "found")]),
        Message::assistant([Chunk::text("One is missing.")]),
    ];
    for how in [FinishedTools::Flatten, FinishedTools::Drop] {
        let options = PromptOptions::new().with_finished_tools(how);
        let running = rendered(Target::OPENAI_CHAT, &messages[..2], &options).0;
        let later = rendered(Target::OPENAI_CHAT, &messages, &options).0;
        assert_eq!(running.len(), 5, "{running:?}");
        assert!(later.starts_with(&running), "{later:?}");
    }
}

fn request(target: Target, options: &PromptOptions) -> Result<Value, Error> {
    let store = Store::open("memory:").unwrap();
    store.append("chat", &two_turns()).unwrap();
    let prompt = render(target, &store.load("chat").unwrap(), options)?;
    prompts::assert_accepted(target, &prompt);
    Ok(serde_json::from_str(prompt.request.get()).unwrap())
}

/// An empty string in place of null, where it is taken.
#[test]
fn calls_alone_have_the_content_that_is_asked_for() {
    let content = |target: &str, no_content| {
        let options = PromptOptions::new().with_no_content(no_content);
        let request = request(target.parse().unwrap(), &options).unwrap();
        let messages = request["messages"].as_array().unwrap();
        let calling = messages.iter().rfind(|message| message.get("tool_calls").is_some()).unwrap();
        calling.get("content").cloned()
    };
    for (target, by_default, empty) in [
        ("openai-chat", json!(null), json!("")),
        ("openai-chat/groq", json!(null), json!("")),
        ("openai-chat/vllm", json!(""), json!("")),
        ("openai-chat/databricks", json!(null), json!(null)),
    ] {
        assert_eq!(content(target, NoContent::Null), Some(by_default), "{target}");
        assert_eq!(content(target, NoContent::Empty), Some(empty), "{target}");
    }
}

/// Of a model that goes on with an assistant's words, they are the last.
#[test]
fn an_assistants_last_words_are_left_to_go_on_with_where_that_is_taken() {
    let messages = [Message::user("Count."), Message::assistant([Chunk::text("One, two,")])];
    let store = Store::open("memory:").unwrap();
    store.append("chat", &messages).unwrap();
    let conversation = store.load("chat").unwrap();
    let bridged = |target: Target, model: &str| {
        let prompt = render(target, &conversation, &PromptOptions::new().with_model(model)).unwrap();
        prompts::assert_accepted(target, &prompt);
        prompt.report.iter().any(|line| line.rule == Rule::BridgeAdded)
    };
    assert!(!bridged(Target::ANTHROPIC, "claude-3-5-sonnet"));
    assert!(bridged(Target::ANTHROPIC, "claude-opus-4-6"));
    assert!(bridged(Target::ANTHROPIC, "unknown"));
    assert!(!bridged(Target::OPENAI_CHAT, "any"));
    assert!(bridged(Target::OPENAI_CHAT.with_dialect("mistral").unwrap(), "any"));
}

#[test]
fn declared_tools_stand_in_each_wires_form() {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    let parameters: Value = serde_json::from_str(schema).unwrap();
    let list = Tool::new("list", Json::new(schema).unwrap()).with_description("Lists files.");
    let options = PromptOptions::new().with_tools([list]);
    let tools = |target: Target| request(target, &options).unwrap()["tools"].clone();
    let function = json!({"name": "list", "description": "Lists files.", "parameters": parameters});
    let chat = json!({"type": "function", "function": function});
    assert_eq!(tools(Target::OPENAI_CHAT), json!([chat]));
    let responses = json!({"type": "function", "name": "list", "description": "Lists files.", "parameters": parameters,
        "strict": false});
    assert_eq!(tools(Target::OPENAI_RESPONSES), json!([responses]));
    let anthropic = json!({"name": "list", "description": "Lists files.", "input_schema": parameters});
    assert_eq!(tools(Target::ANTHROPIC), json!([anthropic]));
    let gemini = json!({"name": "list", "description": "Lists files.", "parametersJsonSchema": parameters});
    assert_eq!(tools(Target::GEMINI), json!([{"functionDeclarations": [gemini]}]));
    let stub = json!({"type": "function", "function": {"name": "see", "parameters": {"type": "object"}}});
    assert_eq!(tools(Target::OPENAI_CHAT.with_dialect("databricks").unwrap()), json!([chat, stub]));
    let stub = json!({"name": "see", "input_schema": {"type": "object"}});
    assert_eq!(tools(Target::ANTHROPIC.with_dialect("bedrock").unwrap()), json!([anthropic, stub]));
}

#[test]
fn a_declared_name_is_mapped_as_in_the_calls() {
    let options = PromptOptions::new().with_tools([Tool::new("web.search", Json::new("{}").unwrap())]);
    let messages = [Message::user("go"), Message::assistant([Chunk::tool_call("1", "web.search", "{}")])];
    let store = Store::open("memory:").unwrap();
    store.append("chat", &messages).unwrap();
    let prompt = render(Target::OPENAI_CHAT, &store.load("chat").unwrap(), &options).unwrap();
    assert_eq!(check(Target::OPENAI_CHAT, prompt.request.get()).unwrap(), []);
    let request: Value = serde_json::from_str(prompt.request.get()).unwrap();
    let called = &request["messages"][1]["tool_calls"][0]["function"]["name"];
    assert_eq!(&request["tools"][0]["function"]["name"], called);
    let changed = prompt.report.iter().filter(|line| line.rule == Rule::NameChanged).count();
    assert_eq!((called.as_str().unwrap() == "web.search", changed), (false, 2));
}

#[test]
fn tools_that_no_target_takes_are_an_error() {
    let tool = |name: &str, parameters: &str| Tool::new(name, Json::new(parameters).unwrap());
    for tools in [vec![tool("a", "{}"), tool("a", "{}")], vec![tool("a", "[]")]] {
        for target in prompts::targets() {
            let result = request(target, &PromptOptions::new().with_tools(tools.clone()));
            assert!(matches!(result, Err(Error::InvalidInput(_))), "{target}");
        }
    }
}
