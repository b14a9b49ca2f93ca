//! What the dialects of OpenAI chat want otherwise, dialect by dialect.

use crate::common::chat::{rendered, shape};
use crate::common::{prompts, reported};
use conversation_store::model::{Audio, Body, Chunk, File, Image, Message, Output, Role};
use conversation_store::provider::{PromptOptions, Target, Thinking, check, parse, render};
use conversation_store::{Error, Rule, Store};
use serde_json::{Value, json};

fn dialect(name: &str) -> Target {
    Target::OPENAI_CHAT.with_dialect(name).unwrap()
}

fn lines(name: &str, messages: &[Message]) -> (Vec<String>, Vec<Rule>) {
    rendered(dialect(name), messages, &PromptOptions::new())
}

fn reported(name: &str, case: &str) -> Vec<String> {
    let case = reported::case(case);
    let prompt = prompts::prompt(dialect(name), &case.messages, &PromptOptions::new()).unwrap();
    shape(prompt.request.get())
}

fn sent(name: &str, messages: &[Message], options: &PromptOptions) -> String {
    let store = Store::open("memory:").unwrap();
    store.append("chat", messages).unwrap();
    render(dialect(name), &store.load("chat").unwrap(), options).unwrap().request.get().to_owned()
}

fn request(name: &str, messages: &[Message]) -> Value {
    serde_json::from_str(&sent(name, messages, &PromptOptions::new())).unwrap()
}

fn call(id: &str) -> Message {
    Message::assistant([Chunk::tool_call(id, "run", "{}")])
}

/// MI-01: "Tool call id was X but must be a-z, A-Z, 0-9, with a length of 9".
#[test]
fn ids_are_what_the_dialect_takes() {
    let messages = [Message::user("go"), call("functions.run:0"), Message::tool("functions.run:0", "ok")];
    let id = |name: &str| request(name, &messages)["messages"][1]["tool_calls"][0]["id"].as_str().unwrap().to_owned();
    let allowed = |id: &str, others: &str| id.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c));
    assert!(id("mistral").len() == 9 && allowed(&id("mistral"), ""), "{}", id("mistral"));
    assert!(id("databricks").len() <= 40 && allowed(&id("databricks"), "_-"), "{}", id("databricks"));
    for name in ["groq", "moonshot", "vllm"] {
        assert_eq!(id(name), "functions.run:0");
    }
    let mistrals = [Message::user("go"), call("D681PevKs"), Message::tool("D681PevKs", "ok")];
    assert_eq!(lines("mistral", &mistrals).0[2], "call D681PevKs run {}");
}

/// Recorded: an id of 50 characters (pydantic-ai test_openrouter_google_nested_schema).
#[test]
fn long_ids_go_back_to_the_model_that_made_them() {
    let id = "tool_insert_level_with_spaces_".to_owned() + &"x".repeat(20);
    let mut asked = call(&id);
    asked.metadata.provider = Some("openrouter".to_owned());
    asked.metadata.model = Some("google/gemini-2.5-flash".to_owned());
    let messages = [Message::user("go"), asked, Message::tool(&id, "ok")];
    let id_for = |name: &str, options: &PromptOptions| -> String {
        let request: Value = serde_json::from_str(&sent(name, &messages, options)).unwrap();
        let (call, result) = (&request["messages"][1]["tool_calls"][0]["id"], &request["messages"][2]["tool_call_id"]);
        assert_eq!(call, result);
        call.as_str().unwrap().to_owned()
    };
    let options = |model: &str| PromptOptions::new().with_model(model);
    assert_eq!(id_for("openrouter", &options("google/gemini-2.5-flash")), id);
    assert_eq!(id_for("openrouter", &options("openai/gpt-5")).len(), 29);
    assert_eq!(id_for("openrouter", &PromptOptions::new()).len(), 29);
    assert_eq!(id_for("groq", &options("google/gemini-2.5-flash")).len(), 29);
}

/// MI-03: an assistant's message with `prefix` may be the last.
#[test]
fn words_that_are_to_be_continued_end_the_conversation() {
    let request = |prefix: &str| {
        let said = format!(r#"{{"role":"assistant","content":"It is"{prefix}}}"#);
        format!(r#"{{"messages":[{{"role":"user","content":"Say it."}},{said}]}}"#)
    };
    let rendered = |name: &str, request: &str| {
        let messages = parse(dialect(name), request).unwrap().messages;
        sent(name, &messages, &PromptOptions::new())
    };
    let given = request(r#","prefix":true"#);
    assert!(check(dialect("mistral"), &given).unwrap().is_empty());
    assert_eq!(rendered("mistral", &given), given);
    for other in [request(r#","prefix":false"#), request("")] {
        assert!(check(dialect("mistral"), &other).unwrap().iter().any(|finding| finding.rule == "MI-03"));
        assert!(rendered("mistral", &other).ends_with(r#"{"role":"user","content":"Continue."}]}"#));
    }
}

/// MI-02: "Unexpected role 'user' after role 'tool'"; VL-01: "Conversation roles must alternate".
#[test]
fn the_assistant_speaks_between_tools_and_the_user() {
    let messages = [Message::user("go"), call("D681PevKs"), Message::tool("D681PevKs", "ok"), Message::user("stop")];
    let tail = |name: &str| lines(name, &messages).0.split_off(3);
    let bridged = ["result D681PevKs: ok", "assistant I have the results."];
    assert_eq!(tail("mistral"), [&bridged[..], &["user stop"]].concat());
    assert_eq!(tail("vllm"), [&bridged[..], &["user [stop]"]].concat());
    assert_eq!(tail("groq"), ["result D681PevKs: ok", "user stop"]);
    assert_eq!(tail("databricks"), ["result D681PevKs: ok", "user [stop]"]);
    assert_eq!(lines("mistral", &messages).1, [Rule::TurnMade]);
    assert_eq!(lines("groq", &messages).1, []);
}

/// MI-07: "Unexpected role 'system' after role 'assistant'"; VL-02: "System message must be at the beginning".
#[test]
fn system_messages_stand_where_they_are_taken() {
    let system = |text: &str| Message::new(Role::System, [Chunk::text(text)]);
    let messages = [
        system("a"),
        system("b"),
        Message::user("one"),
        system("c"),
        Message::user("two"),
        Message::assistant([Chunk::text("ok")]),
        system("d"),
        Message::user("three"),
    ];
    let (mistral, report) = lines("mistral", &messages);
    let head = ["system a", "system b", "user one", "system c", "user two", "assistant ok"];
    assert_eq!(mistral, [&head[..], &["user d", "user three"]].concat());
    assert_eq!(report, [Rule::RoleChanged]);
    let (vllm, report) = lines("vllm", &messages);
    assert_eq!(vllm, ["system a\n\nb", "user [one] [c] [two]", "assistant ok", "user [d] [three]"]);
    assert_eq!(report, [Rule::RoleChanged, Rule::RoleChanged]);
    let (databricks, report) = lines("databricks", &messages);
    let merged = ["system a", "system b", "user [one]", "system c", "user [two]", "assistant ok"];
    assert_eq!(databricks, [&merged[..], &["system d", "user [three]"]].concat());
    assert_eq!(report, []);
}

/// aider-5591: "does not support successive user messages". The note is the user's: it stays where it was said.
#[test]
fn a_system_note_between_users_leaves_one_user_message() {
    let case = "aider-5591-system-between-users";
    assert_eq!(reported("vllm", case), ["system s", "user [one] [note] [two]", "assistant ok"]);
}

/// VL-01: "Conversation roles must alternate user/assistant/...".
#[test]
fn neighbours_of_one_role_become_one_message() {
    let messages = [
        Message::user("one"),
        Message::user("two"),
        Message::assistant([Chunk::text("a")]),
        Message::assistant([Chunk::text("b"), Chunk::tool_call("1", "run", "{}")]),
        Message::tool("1", "ok"),
        Message::assistant([Chunk::text("c")]),
        Message::user("three"),
    ];
    let merged =
        ["user [one] [two]", "assistant a\n\nb", "call 1 run {}", "result 1: ok", "assistant c", "user [three]"];
    for name in ["vllm", "databricks"] {
        assert_eq!(lines(name, &messages), (merged.map(str::to_owned).to_vec(), Vec::new()), "{name}");
    }
    let tabs = reported("vllm", "effect-gates-64-last-writer-wins");
    let both = ["user [base]", "assistant ok", "user [from tab 1] [from tab 2]", "assistant answer 1\n\nanswer 2"];
    assert_eq!(tabs, both);
}

/// VL-01, DB-04, MI-03: who begins, and who ends.
#[test]
fn the_user_begins_and_ends_where_it_has_to() {
    let messages = [Message::assistant([Chunk::text("Hello")])];
    let beginning = "user [(The conversation begins with the assistant.)]";
    assert_eq!(
        lines("vllm", &messages),
        (vec![beginning.to_owned(), "assistant Hello".to_owned()], vec![Rule::TurnMade])
    );
    let (shape, report) = lines("databricks", &messages);
    assert_eq!(shape, [beginning, "assistant Hello", "user [Continue.]"]);
    assert_eq!(report, [Rule::TurnMade, Rule::BridgeAdded]);
    let (shape, report) = lines("mistral", &messages);
    assert_eq!(shape, ["assistant Hello", "user Continue."]);
    assert_eq!(report, [Rule::BridgeAdded]);
    let answered = reported("mistral", "litellm-4931-trim-removes-call");
    assert!(answered.last().unwrap().starts_with("result"), "{answered:?}");
}

#[test]
fn a_system_message_alone_is_nothing_to_send_where_the_user_has_to_speak() {
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::new(Role::System, [Chunk::text("Be brief.")])]).unwrap();
    let conversation = store.load("chat").unwrap();
    for (name, sent) in [("groq", true), ("mistral", false), ("vllm", false), ("databricks", false)] {
        let result = render(dialect(name), &conversation, &PromptOptions::new());
        assert_eq!(result.is_ok(), sent, "{name}");
        assert!(sent || matches!(result, Err(Error::NothingToSend(_))), "{name}");
    }
}

/// GQ-01: "property 'reasoning_content' is unsupported"; MS-01: "reasoning_content is missing in assistant tool call message".
#[test]
fn reasoning_goes_only_where_it_is_wanted() {
    let case = "groq-reasoning-content-rejected";
    assert_eq!(reported("groq", case), ["user q", "assistant answer", "user next"]);
    let mixed = "zoo-201-mixed-history-without-reasoning";
    let calls = |name: &str| reported(name, mixed).into_iter().nth(3).unwrap();
    assert_eq!(calls("deepseek"), r#"assistant (thinks "")"#);
    assert_eq!(calls("moonshot"), r#"assistant (thinks " ")"#);
    assert_eq!(calls("mistral"), "assistant");
    let thought =
        [Message::user("go"), Message::assistant([Chunk::thinking("hm"), Chunk::tool_call("1", "run", "{}")])];
    assert_eq!(lines("moonshot", &thought).0[1], r#"assistant (thinks "hm")"#);
    let omitted = PromptOptions::new().with_thinking(Thinking::Omit);
    assert_eq!(rendered(dialect("moonshot"), &thought, &omitted).0[1], r#"assistant (thinks " ")"#);
}

/// VL-04: "invalid message content type: <nil>"; DB-01: "text content blocks must be non-empty".
#[test]
fn content_beside_calls_is_what_the_dialect_takes() {
    let messages = [Message::user("go"), call("1"), Message::tool("1", "ok")];
    let content = |name: &str| request(name, &messages)["messages"][1]["content"].clone();
    assert_eq!(content("vllm"), json!(""));
    for name in ["mistral", "groq", "moonshot", "databricks"] {
        assert_eq!(content(name), Value::Null, "{name}");
    }
}

/// MS-02: "message must not be empty"; DB-01: "must contain non-whitespace text".
#[test]
fn texts_that_say_nothing_are_left_out_or_put_into_words() {
    let messages = [
        Message::user("go"),
        Message::assistant([
            Chunk::text(" \n"),
            Chunk::tool_call("1", "run", "{}"),
            Chunk::tool_call("2", "run", "{}"),
        ]),
        Message::tool("1", ""),
        Message::tool("2", " "),
    ];
    let (shape, report) = lines("moonshot", &messages);
    assert_eq!(shape[1], "assistant (thinks \" \")  \n");
    assert_eq!(shape[4..], ["result 1: The tool gave no output.", "result 2:  "]);
    assert_eq!(report, [Rule::Altered]);
    let (shape, report) = lines("databricks", &messages);
    assert_eq!(shape[1], "assistant");
    assert_eq!(shape[4..], ["result 1: The tool gave no output.", "result 2: The tool gave no output."]);
    assert_eq!(report, [Rule::LeftOut, Rule::Altered, Rule::LeftOut, Rule::Altered]);
}

/// DB-06: "Requests which include tool_use or tool_result blocks must define tools".
#[test]
fn tools_of_the_history_are_declared_by_name() {
    let calls = ["b", "a", "b"].map(|name| Chunk::tool_call("1", name, "{}"));
    let request = request("databricks", &[Message::user("go"), Message::assistant(calls)]);
    let stub = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    assert_eq!(request["tools"], json!([stub("a"), stub("b")]));
    assert_eq!(check(dialect("databricks"), &request.to_string()).unwrap(), []);
}

/// A string where it will do: "'messages.0.content' : value must be a string".
#[test]
fn arrays_are_sent_only_where_they_are_taken() {
    let image = Body::Image(Image { url: "https://x.test/a.png".to_owned(), mime_type: None });
    let messages = [
        Message::new(Role::System, [Chunk::text("s"), Chunk::text("t")]),
        Message::new(Role::User, [Chunk::text("a"), Chunk::text("b")]),
        Message::new(Role::User, [Chunk::text("see"), image.into()]),
    ];
    let user = "user [see] [image https://x.test/a.png]";
    assert_eq!(lines("groq", &messages).0, ["system s\n\nt", "user a\n\nb", user]);
    assert_eq!(lines("mistral", &messages).0, ["system [s] [t]", "user [a] [b]", user]);
}

/// Media that a dialect does not take are told in words.
#[test]
fn media_are_words_where_they_are_not_taken() {
    let data = "data:image/png;base64,iVBORw0KGgo=";
    let image = |url: &str| Chunk::from(Body::Image(Image { url: url.to_owned(), mime_type: None }));
    let audio =
        Audio { data: Some("UklGRg==".to_owned()), mime_type: Some("audio/wav".to_owned()), ..Audio::default() };
    let file = File { data: Some("JVBERi0=".to_owned()), ..File::default() };
    let chunks = [image(data), image("https://x.test/a.png"), Body::Audio(audio).into(), Body::File(file).into()];
    let messages = [Message::new(Role::User, chunks)];
    let none = |what: &str| format!("[[{what} left out: the target takes none]]");
    let no_address = "[[image left out: the target takes data, not the address https://x.test/a.png]]";
    let (image, at_address) = (format!("[image {data}]"), "[image https://x.test/a.png]");
    let (no_audio, no_file) = (none("audio"), none("file"));
    let table = [
        ("mistral", [&image, at_address, &no_audio, &no_file]),
        ("groq", [&image, at_address, &no_audio, &no_file]),
        ("moonshot", [&image, no_address, &no_audio, &no_file]),
        ("vllm", [&image, at_address, "[input_audio]", &no_file]),
        ("databricks", [&image, no_address, &no_audio, &no_file]),
        ("xai", [&image, at_address, &no_audio, &no_file]),
        ("cerebras", [&image, at_address, &no_audio, &no_file]),
        ("compatible", [&image, at_address, &no_audio, &no_file]),
        ("ollama", [&image, no_address, &no_audio, &no_file]),
        ("perplexity", [&image, at_address, &no_audio, &no_file]),
    ];
    for (name, parts) in table {
        assert_eq!(lines(name, &messages).0, [format!("user {}", parts.join(" "))], "{name}");
    }
}

/// MI-06: "Extra inputs are not permitted".
#[test]
fn refusals_are_text() {
    let messages = [Message::user("go"), Message::assistant([Body::Refusal { text: "I will not.".to_owned() }.into()])];
    for name in ["mistral", "groq", "moonshot", "vllm", "databricks"] {
        assert_eq!(lines(name, &messages).0[1], "assistant I will not.", "{name}");
    }
}

/// Images of results follow the batch, behind the assistant's bridge.
#[test]
fn images_of_results_follow_behind_the_bridge() {
    let image = Image { url: "https://x.test/a.png".to_owned(), mime_type: None };
    let output = Output::Parts(vec![conversation_store::model::PartBody::Image(image).into()]);
    let result = Body::ToolResult { tool_call_id: "1".to_owned(), name: None, output, is_error: None };
    let messages =
        [Message::user("look"), call("1"), Message::new(Role::Tool, [result.into()]), Message::user("well?")];
    let (shape, _) = lines("vllm", &messages);
    let follows = "user [Output of the tool call 1:] [image https://x.test/a.png] [well?]";
    assert_eq!(
        shape[3..],
        ["result 1: The output follows in the next user message.", "assistant I have the results.", follows]
    );
}

/// Databricks shows pictures in user messages only, as data.
#[test]
fn pictures_of_results_go_to_databricks_in_a_user_message() {
    let data = "data:image/png;base64,iVBORw0KGgo=";
    let image = |url: &str| Image { url: url.to_owned(), mime_type: None };
    let parts = [image(data), image("https://x.test/a.png")];
    let output = Output::Parts(parts.map(|image| conversation_store::model::PartBody::Image(image).into()).to_vec());
    let result = Body::ToolResult { tool_call_id: "1".to_owned(), name: None, output, is_error: None };
    let messages = [Message::user("look"), call("1"), Message::new(Role::Tool, [result.into()])];
    let (shape, _) = lines("databricks", &messages);
    let [.., answered, last] = &shape[..] else { panic!("{shape:?}") };
    assert!(answered.starts_with("result 1: "), "{shape:?}");
    assert!(last.starts_with("user ") && last.contains(&format!("[image {data}]")), "{shape:?}");
    assert!(!last.contains("[image https://"), "{shape:?}");
    let message =
        json!({"role": "tool", "tool_call_id": "1", "content": [{"type": "image_url", "image_url": {"url": data}}]});
    let mut request = request("databricks", &messages);
    request["messages"][2] = message;
    let found = check(dialect("databricks"), &request.to_string()).unwrap();
    assert!(found.iter().any(|found| found.rule == "OC-19" && found.level.is_refused()), "{found:?}");
}

/// llxprt-3695: "This model does not support assistant message prefill".
#[test]
fn words_at_the_end_stay_the_assistants() {
    let case = "llxprt-3695-no-prefill-support";
    for (name, bridge) in [("databricks", "user [Continue.]"), ("mistral", "user Continue.")] {
        let lines = reported(name, case);
        let [.., said, last] = &lines[..] else { panic!("{lines:?}") };
        assert!(said.starts_with("assistant Working on it") && last == bridge, "{name}: {lines:?}");
    }
}

/// dsh-1 and qwen-5099: ids that are empty, or come in every turn.
#[test]
fn odd_ids_stay_pairs() {
    let pairs = |name: &str, case: &str| {
        let lines = reported(name, case);
        let id = |line: &str, at: usize| line.split([' ', ':']).nth(at).unwrap().to_owned();
        let calls: Vec<_> = lines.iter().filter(|line| line.starts_with("call ")).map(|line| id(line, 1)).collect();
        let results = lines.iter().filter(|line| line.starts_with("result ")).map(|line| id(line, 1));
        assert_eq!(results.collect::<Vec<_>>(), calls, "{name}");
        let unique: std::collections::BTreeSet<_> = calls.iter().collect();
        assert_eq!(unique.len(), calls.len(), "{name}: {calls:?}");
        calls
    };
    for name in ["mistral", "groq", "moonshot", "vllm", "databricks"] {
        assert_eq!(pairs(name, "qwen-5099-id-reused-across-turns").len(), 3);
        assert_eq!(pairs(name, "dsh-1-empty-call-id"), pairs(name, "dsh-1-empty-call-id"));
    }
}

/// docker-agent-63: "Invalid value for 'content': expected a string, got null".
#[test]
fn an_empty_output_is_a_string() {
    let last = |name: &str| reported(name, "docker-agent-63-tool-null-content").pop().unwrap();
    assert_eq!(last("groq"), "result c1: ");
    for name in ["moonshot", "databricks"] {
        assert_eq!(last(name), "result c1: The tool gave no output.");
    }
}

/// system-after-tool-call, letta-935: "tool messages must directly follow"; "role 'tool' must follow tool_calls".
#[test]
fn notes_and_orphans_do_not_part_turns() {
    let (case, note) = ("system-after-tool-call", "remember to cite numbers");
    let head = ["system s", "user [q]", "assistant ", "call c1 f {}", "result c1: v", "assistant I have the results."];
    let vllm = reported("vllm", case);
    assert_eq!(vllm[..6], head);
    assert_eq!(vllm[6..], [format!("user [{note}]"), "assistant ans".to_owned()]);
    assert_eq!(reported("databricks", case)[5], format!("system {note}"));
    let merged = ["system You are Sam.", "user [summary: talked about dogs] [hi again]"];
    assert_eq!(reported("vllm", "letta-935-system-user-tool"), merged);
}

#[test]
fn the_documents_name_every_target() {
    let document = include_str!("../../src/docs/targets.md");
    for target in prompts::targets() {
        assert!(document.contains(&format!("\n| `{target}` | ")), "{target}");
    }
}

/// PX-03, and the fields of messages that become one.
#[test]
fn who_may_not_end_is_answered_and_a_merged_message_has_a_field_once() {
    let (last, _) = lines("perplexity", &[Message::user("go"), Message::assistant([Chunk::text("gone")])]);
    assert!(last.len() == 3 && last[2].starts_with("user"), "{last:?}");
    let said = |text: &str, mood: &str| {
        let json = conversation_store::model::Json::new(mood).unwrap();
        let field = Body::Opaque { provider: "perplexity".to_owned(), kind: "mood".to_owned(), json };
        let mut message = Message::assistant([Chunk::text(text), field.into()]);
        message.metadata.provider = Some("perplexity".to_owned());
        message
    };
    let sent = sent(
        "perplexity",
        &[Message::user("go"), said("a", "1"), said("b", "2"), Message::user("on")],
        &PromptOptions::new(),
    );
    assert!(sent.contains("\"mood\":2") && !sent.contains("\"mood\":1"), "{sent}");
}
