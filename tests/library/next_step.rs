//! What an agent loop must do now: a table of histories, pending, answered, cut off, truncated, crashed.

use conversation_store::model::{Body, Chunk, FinishReason, Json, Message, Metadata, Native, Role};
use conversation_store::{Conversation, NextStep, Store, ToolKind, next_step};

/// What happens in a history.
enum Event {
    /// A message is appended whole.
    Said(Box<Message>),
    /// A message is being written, and its writer lives on.
    Streaming(Vec<Chunk>),
    /// A message was being written when its writer died.
    Crashed(Vec<Chunk>),
    /// All from this message on is hidden.
    Rewound(u64),
}

use Event::{Crashed, Rewound, Said, Streaming};

fn user(text: &str) -> Event {
    Said(Box::new(Message::user(text)))
}

fn answer(reason: FinishReason, chunks: impl IntoIterator<Item = Chunk>) -> Event {
    Said(Box::new(Message { finish_reason: Some(reason), ..Message::assistant(chunks) }))
}

fn result(id: &str) -> Event {
    Said(Box::new(Message::tool(id, "42")))
}

fn call(id: &str) -> Chunk {
    Chunk::tool_call(id, "tool", r#"{"a":1}"#)
}

fn cut_off(id: &str) -> Chunk {
    Chunk::tool_call(id, "tool", r#"{"a":"#)
}

fn server_call(id: &str) -> Chunk {
    let (name, arguments) = ("web_search".to_owned(), "{}".to_owned());
    Body::ToolCall { id: id.to_owned(), name, arguments, signature: None, server: true }.into()
}

fn item(kind: &str, id: &str) -> Chunk {
    let json = format!(
        r#"{{"type":"{kind}","id":"{id}","call_id":"{id}","approval_request_id":"{id}","action":{{"commands":["ls"]}}}}"#
    );
    Body::Opaque { provider: "openai".to_owned(), kind: kind.to_owned(), json: Json::new(json).unwrap() }.into()
}

fn given(kind: &str, id: &str) -> Event {
    let mut message = Message::user("");
    message.chunks = vec![item(kind, id)];
    Said(Box::new(message))
}

fn failed(code: &str) -> Event {
    let error = Body::Error { message: "no".to_owned(), code: Some(code.to_owned()) };
    answer(FinishReason::Error, [error.into()])
}

fn text() -> Chunk {
    Chunk::text("Well")
}

fn thinking() -> Chunk {
    Chunk::thinking("Hm")
}

/// What comes out: the step's name, and the ids of the calls to run.
fn table() -> Vec<(&'static str, Vec<Event>, &'static str)> {
    use FinishReason::{ContentFilter, Interrupted, Length, Refusal, Stop, ToolCalls};
    vec![
        ("only instructions", vec![Said(Box::new(Message::system("Be kind.")))], "await_user"),
        ("a question", vec![user("a")], "call_model"),
        ("two questions", vec![user("a"), user("b")], "call_model"),
        ("an answer", vec![user("a"), answer(Stop, [text()])], "await_user"),
        ("an answer without a reason", vec![user("a"), Said(Box::new(Message::assistant([text()])))], "await_user"),
        ("a refusal", vec![user("a"), answer(Refusal, [Body::Refusal { text: "No".into() }.into()])], "await_user"),
        ("filtered", vec![user("a"), answer(ContentFilter, [text()])], "await_user"),
        ("failed: only an error", vec![user("a"), answer(FinishReason::Error, [Chunk::error("500")])], "call_model"),
        ("failed behind some text", vec![user("a"), answer(FinishReason::Error, [text()])], "await_user"),
        // Pending.
        ("a call", vec![user("a"), answer(ToolCalls, [call("1")])], "run_tools 1"),
        ("calls behind text", vec![user("a"), answer(ToolCalls, [text(), call("1"), call("2")])], "run_tools 1 2"),
        ("one of two answered", vec![user("a"), answer(ToolCalls, [call("1"), call("2")]), result("2")], "run_tools 1"),
        ("arguments that are no JSON", vec![user("a"), answer(ToolCalls, [cut_off("1")])], "run_tools 1"),
        ("calls without ids", vec![user("a"), answer(ToolCalls, [call(""), call("")]), result("")], "run_tools "),
        (
            "an id that was answered a turn before",
            vec![user("a"), answer(ToolCalls, [call("1")]), result("1"), answer(ToolCalls, [call("1")])],
            "run_tools 1",
        ),
        (
            "instructions behind a call",
            vec![user("a"), answer(ToolCalls, [call("1")]), Said(Box::new(Message::system("Be brief.")))],
            "run_tools 1",
        ),
        (
            "one of two answered, as a user message",
            vec![
                user("a"),
                answer(ToolCalls, [call("1"), call("2")]),
                Said(Box::new(Message::new(Role::User, [Chunk::tool_result("1", "42")]))),
            ],
            "run_tools 2",
        ),
        (
            "only the last message's calls",
            vec![user("a"), answer(ToolCalls, [call("1")]), answer(ToolCalls, [call("2")])],
            "run_tools 2",
        ),
        // Answered.
        ("all answered", vec![user("a"), answer(ToolCalls, [call("1")]), result("1")], "call_model"),
        (
            "all answered, the other way round",
            vec![user("a"), answer(ToolCalls, [call("1"), call("2")]), result("2"), result("1")],
            "call_model",
        ),
        (
            "answered, and the answer read",
            vec![user("a"), answer(ToolCalls, [call("1")]), result("1"), answer(Stop, [text()])],
            "await_user",
        ),
        ("answered before it was asked", vec![user("a"), result("1"), answer(ToolCalls, [call("1")])], "call_model"),
        ("the user went on", vec![user("a"), answer(ToolCalls, [call("1")]), user("never mind")], "call_model"),
        ("the model went on", vec![user("a"), answer(ToolCalls, [call("1")]), answer(Stop, [text()])], "await_user"),
        ("a result that nobody asked for", vec![user("a"), answer(Stop, [text()]), result("9")], "await_user"),
        // The provider ran the tool itself.
        (
            "a server's call, answered, and text",
            vec![user("a"), answer(Stop, [server_call("1"), Chunk::tool_result("1", "found"), text()])],
            "await_user",
        ),
        (
            "a server's call beside ours",
            vec![user("a"), answer(ToolCalls, [server_call("1"), Chunk::tool_result("1", "found"), call("2")])],
            "run_tools 2",
        ),
        // Truncated.
        ("truncated text", vec![user("a"), answer(Length, [text()])], "continue_text"),
        ("truncated thinking", vec![user("a"), answer(Length, [thinking()])], "await_user"),
        // Nothing for the user.
        ("thinking alone", vec![user("a"), answer(Stop, [thinking()])], "call_model_again"),
        (
            "thinking alone, twice",
            vec![user("a"), answer(Stop, [thinking()]), answer(Stop, [thinking()])],
            "await_user",
        ),
        (
            "thinking alone, after a tool",
            vec![user("a"), answer(ToolCalls, [call("1")]), result("1"), answer(Stop, [thinking()])],
            "call_model_again",
        ),
        ("calls announced, and none there", vec![user("a"), answer(ToolCalls, [text()])], "call_model_again"),
        ("the same twice", vec![user("a"), answer(ToolCalls, [text()]), answer(ToolCalls, [text()])], "await_user"),
        // Failed.
        ("failed for a time", vec![user("a"), failed("529")], "call_model"),
        ("failed for good", vec![user("a"), failed("400")], "await_user"),
        ("failed for good, in words", vec![user("a"), failed("invalid_request_error")], "await_user"),
        ("failed for good, and the user went on", vec![user("a"), failed("401"), user("b")], "call_model"),
        ("truncated behind a whole call", vec![user("a"), answer(Length, [text(), call("1")])], "run_tools 1"),
        ("truncated in a second call", vec![user("a"), answer(Length, [call("1"), cut_off("2")])], "run_tools 1"),
        ("truncated in its only call", vec![user("a"), answer(Length, [text(), cut_off("1")])], "call_model"),
        (
            "truncated in a second call, the first answered",
            vec![user("a"), answer(Length, [call("1"), cut_off("2")]), result("1")],
            "call_model",
        ),
        ("stopped by the user", vec![user("a"), answer(Interrupted, [text()])], "continue_text"),
        ("stopped by the user behind a call", vec![user("a"), answer(Interrupted, [text(), call("1")])], "run_tools 1"),
        // Crashed.
        ("crashed before the first word", vec![user("a"), Crashed(vec![])], "call_model"),
        ("crashed while thinking", vec![user("a"), Crashed(vec![thinking()])], "call_model"),
        ("crashed in text", vec![user("a"), Crashed(vec![thinking(), text()])], "continue_text"),
        ("crashed behind a call", vec![user("a"), Crashed(vec![text(), call("1")])], "run_tools 1"),
        ("crashed in a call", vec![user("a"), Crashed(vec![text(), cut_off("1")])], "call_model"),
        ("crashed in a second call", vec![user("a"), Crashed(vec![call("1"), cut_off("2")])], "run_tools 1"),
        (
            "crashed while the tools ran",
            vec![user("a"), answer(ToolCalls, [call("1"), call("2")]), result("1")],
            "run_tools 2",
        ),
        ("crashed, and asked again", vec![user("a"), Crashed(vec![text()]), user("b")], "call_model"),
        // What is no function's.
        ("a shell", vec![user("a"), answer(ToolCalls, [item("shell_call", "s")])], "run_tools s"),
        (
            "a shell that was answered",
            vec![user("a"), answer(ToolCalls, [item("shell_call", "s")]), given("shell_call_output", "s")],
            "call_model",
        ),
        (
            "one of two answered, of two kinds",
            vec![
                user("a"),
                answer(ToolCalls, [item("apply_patch_call", "p"), item("local_shell_call", "l")]),
                given("local_shell_call_output", "l"),
            ],
            "run_tools p",
        ),
        (
            "a screen beside a function",
            vec![user("a"), answer(ToolCalls, [call("1"), item("computer_call", "c")])],
            "run_tools 1 c",
        ),
        (
            "leave to call a server",
            vec![user("a"), answer(ToolCalls, [item("mcp_approval_request", "m")])],
            "run_tools m",
        ),
        ("somebody went on", vec![user("a"), answer(ToolCalls, [item("shell_call", "s")]), user("b")], "call_model"),
        (
            "a search that the provider ran",
            vec![user("a"), answer(Stop, [item("tool_search_call", "t")])],
            "await_user",
        ),
        ("a pause", vec![user("a"), answer(FinishReason::from("pause_turn"), [text()])], "continue_turn"),
        // Being written.
        ("begun, and nothing there yet", vec![user("a"), Streaming(vec![])], "await_model"),
        (
            "begun behind the tools' results",
            vec![user("a"), answer(ToolCalls, [call("1")]), result("1"), Streaming(vec![])],
            "await_model",
        ),
        ("thinking so far", vec![user("a"), Streaming(vec![thinking()])], "await_model"),
        ("a call said, more may come", vec![user("a"), Streaming(vec![call("1")])], "await_model"),
        ("the user cut in", vec![user("a"), Streaming(vec![text()]), user("b")], "await_model"),
        // Taken back.
        ("rewound to the question", vec![user("a"), answer(Stop, [text()]), Rewound(1)], "call_model"),
        (
            "rewound to the call",
            vec![user("a"), answer(ToolCalls, [call("1")]), result("1"), Rewound(2)],
            "run_tools 1",
        ),
    ]
}

#[test]
fn every_history_has_its_step() {
    for (history, events, expected) in table() {
        let store = Store::open("memory:").unwrap();
        let mut writers = Vec::new();
        for event in events {
            match event {
                Said(message) => drop(store.append("chat", &[*message]).unwrap()),
                Rewound(to) => drop(store.rewind("chat", to).unwrap()),
                Streaming(ref chunks) | Crashed(ref chunks) => {
                    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
                    for (index, chunk) in (0..).zip(chunks) {
                        writer.push(index, chunk.clone()).unwrap();
                    }
                    writers.extend(Some(writer).filter(|_| matches!(event, Streaming(_))));
                    store.sync().unwrap();
                }
            }
        }
        let step = next_step(&store.load("chat").unwrap());
        let mut got = step.name().to_owned();
        if let NextStep::RunTools(calls) = &step {
            for call in calls {
                got.push(' ');
                got.push_str(&call.tool_call_id);
            }
        }
        assert_eq!(got, expected, "{history}");
    }
}

#[test]
fn without_messages_it_is_the_users_turn() {
    assert_eq!(next_step(&Conversation::new(Vec::new())), NextStep::AwaitUser);
}

#[test]
fn what_is_no_function_comes_with_its_kind_and_its_item() {
    let store = Store::open("memory:").unwrap();
    let custom = r#"{"type":"custom_tool_call","call_id":"p","name":"patch","input":"*** Begin"}"#;
    let native = Some(Native { wire: "openai-responses".to_owned(), json: Json::new(custom).unwrap() });
    let custom_call = Chunk { native, ..Chunk::tool_call("p", "patch", "*** Begin") };
    store.append("chat", &[Message::user("a"), Message::assistant([item("shell_call", "s"), custom_call])]).unwrap();
    let NextStep::RunTools(calls) = next_step(&store.load("chat").unwrap()) else { unreachable!("calls are pending") };
    let [shell, patch] = calls.as_slice() else { unreachable!("there are two") };
    assert_eq!(
        (shell.kind, shell.name.as_str(), shell.arguments.as_str()),
        (ToolKind::Shell, "shell", r#"{"commands":["ls"]}"#)
    );
    assert!(shell.raw.as_ref().unwrap().as_str().contains("shell_call"));
    assert_eq!((patch.kind, patch.arguments.as_str()), (ToolKind::Custom, "*** Begin"));
    assert_eq!(patch.raw.as_ref().unwrap().as_str(), custom);
}

#[test]
fn a_pending_call_is_told_as_it_is_stored() {
    let store = Store::open("memory:").unwrap();
    let arguments = r#"{"path": "\ud83d", "n": 1.0}"#;
    let call = Chunk::tool_call("call_1", "read", arguments);
    store.append("chat", &[Message::user("a"), Message::assistant([text(), call])]).unwrap();
    let NextStep::RunTools(calls) = next_step(&store.load("chat").unwrap()) else { unreachable!("a call is pending") };
    let [call] = calls.as_slice() else { unreachable!("it is one call") };
    assert_eq!((call.message_index, call.tool_call_id.as_str(), call.name.as_str()), (1, "call_1", "read"));
    assert_eq!(call.arguments, arguments);
}
