//! The failures that this crate was written against, as they were seen in the field, each with its cure.

use conversation_store::model::{Body, Chunk, FinishReason, Line, Message, Output, Role};
use conversation_store::provider::{PromptOptions, Target, WIRES, render};
use conversation_store::{Conversation, MessageState, NextStep, Rule, Store, next_step};

fn store_of(messages: &[Message]) -> Store {
    let store = Store::open("memory:").unwrap();
    for message in messages {
        store.append("chat", std::slice::from_ref(message)).unwrap();
    }
    store
}

fn load(messages: &[Message]) -> Conversation {
    store_of(messages).load_strict("chat").unwrap()
}

fn call(id: &str) -> Chunk {
    Chunk::tool_call(id, "tool", "{}")
}

fn roles(conversation: &Conversation) -> Vec<Role> {
    conversation.messages().iter().map(|stored| stored.message.role).collect()
}

/// The text of every result, in order.
fn results(conversation: &Conversation) -> Vec<(&str, &str, MessageState)> {
    let chunks = conversation.messages().iter().flat_map(|stored| {
        let chunks = stored.message.chunks.iter();
        chunks.map(|chunk| (&chunk.body, stored.state))
    });
    let results = chunks.filter_map(|(body, state)| match body {
        Body::ToolResult { tool_call_id, output: Output::Text(text), .. } => {
            Some((tool_call_id.as_str(), text.as_str(), state))
        }
        _ => None,
    });
    results.collect()
}

/// The message index restarted at 0 on every append, so load merged user and assistant turns into one user message.
#[test]
fn the_message_index_goes_on_from_append_to_append() {
    let dir = crate::common::tempdir().unwrap();
    let url = format!("sled:{}", dir.path().display());
    let said = [
        Message::user("What is in this folder?"),
        Message::assistant([Chunk::text("I shall look."), call("1")]),
        Message::tool("1", "Cargo.toml"),
        Message::user("And in src?"),
    ];
    let mut indexes = Vec::new();
    for message in &said {
        let store = Store::open(&url).unwrap();
        indexes.extend(store.append("chat", std::slice::from_ref(message)).unwrap().message_indexes);
    }
    assert_eq!(indexes, [0, 1, 2, 3]);
    let conversation = Store::open(&url).unwrap().load("chat").unwrap();
    let messages = conversation.messages().iter();
    assert!(
        messages
            .map(|stored| (stored.message.role, &stored.message.chunks))
            .eq(said.iter().map(|said| (said.role, &said.chunks)))
    );
}

/// The clean-up pass dropped assistant messages that held only thinking, and the evidence with them.
#[test]
fn a_message_of_thinking_alone_stays() {
    let signed = Body::Thinking { text: String::new(), signature: Some("c2ln".to_owned()), redacted: None };
    for thinking in [Chunk::thinking("I have to look."), signed.into()] {
        let conversation = load(&[Message::user("a"), Message::assistant([thinking.clone()]), Message::user("b")]);
        assert_eq!(roles(&conversation), [Role::User, Role::Assistant, Role::User]);
        assert!(conversation.messages().iter().any(|stored| stored.message.chunks == [thinking.clone()]));
        assert_eq!(conversation.report(), []);
    }
}

/// What the clean-up pass drops, it says.
#[test]
fn what_is_dropped_stands_in_the_report() {
    let conversation = load(&[
        Message::user("a"),
        Message::assistant([Chunk::text("")]),
        Message::assistant([Chunk::text("b"), Chunk::error("500")]),
    ]);
    let rules: Vec<_> =
        conversation.report().iter().map(|line| (line.rule, line.message_index, line.chunk_index)).collect();
    assert_eq!(rules, [(Rule::ErrorChunkRemoved, Some(2), Some(1)), (Rule::EmptyMessageRemoved, Some(1), None)]);
    assert_eq!(roles(&conversation), [Role::User, Role::Assistant]);
}

/// The calls were not stored with the assistant message: "messages with role 'tool' must be a response to a preceding
/// message with 'tool_calls'".
#[test]
fn calls_are_stored_with_their_message() {
    let calls = [Chunk::text("I shall look."), Chunk::tool_call("1", "list", r#"{"path": "."}"#), call("2")];
    let conversation = load(&[
        Message::user("a"),
        Message { finish_reason: Some(FinishReason::ToolCalls), ..Message::assistant(calls.clone()) },
        Message::tool("1", "x"),
        Message::tool("2", "y"),
    ]);
    assert!(conversation.messages().iter().any(|stored| stored.message.chunks == calls));
    let complete = MessageState::Complete;
    assert_eq!(results(&conversation), [("1", "x", complete), ("2", "y", complete)]);
    assert_eq!(conversation.report(), []);
}

/// A truncated answer that held tool calls was continued before its tools had run: "insufficient tool messages following
/// tool_calls".
#[test]
fn the_tools_of_a_truncated_answer_run_first() {
    let answer = Message::assistant([Chunk::text("I shall look, and th"), call("1")]);
    let answer = Message { finish_reason: Some(FinishReason::Length), ..answer };
    let store = store_of(&[Message::user("a"), answer]);
    let step = next_step(&store.load("chat").unwrap());
    assert!(matches!(step, NextStep::RunTools(ref calls) if calls.len() == 1), "{step:?}");
    store.append("chat", &[Message::tool("1", "x")]).unwrap();
    assert_eq!(next_step(&store.load("chat").unwrap()), NextStep::CallModel);
}

/// Message classes did not carry `tool_calls` and `tool_call_id`, so code fell back to raw dictionaries.
#[test]
fn the_model_carries_calls_and_results_both_ways() {
    let lines = [
        r#"{"role":"assistant","chunks":[{"type":"tool_call","id":"1","name":"list","arguments":"{\"path\": \".\"}","item_id":"fc_1"}],"finish_reason":"tool_calls"}"#,
        r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"1","name":"list","content":"x","is_error":false}]}"#,
    ];
    for line in lines {
        let message = Message::from_json(line).unwrap();
        assert_eq!(message.to_json(), line);
        let stored = store_of(std::slice::from_ref(&message)).load_raw("chat").unwrap();
        assert_eq!(stored[0].message.chunks, message.chunks);
    }
    let call = Message::from_json(lines[0]).unwrap();
    assert!(
        matches!(&call.chunks[0].body, Body::ToolCall { id, arguments, .. } if id == "1" && arguments == r#"{"path": "."}"#)
    );
    let result = Message::from_json(lines[1]).unwrap();
    assert!(matches!(&result.chunks[0].body, Body::ToolResult { tool_call_id, .. } if tool_call_id == "1"));
}

/// A malformed arguments string, or an error marker, stored once, was refused on every later turn. Rendering mends the
/// arguments; here they stay as the model wrote them, and the error stays in the log alone.
#[test]
fn malformed_arguments_and_errors_are_kept_and_do_no_harm() {
    let broken = Chunk::tool_call("1", "tool", r#"{"path": "a"#);
    let error = Chunk::error("Provider returned 400");
    let store =
        store_of(&[Message::user("a"), Message::assistant([broken.clone(), error.clone()]), Message::tool("1", "x")]);
    let conversation = store.load("chat").unwrap();
    assert!(conversation.messages().iter().any(|stored| stored.message.chunks == [broken.clone()]));
    let raw = store.load_raw("chat").unwrap();
    assert!(raw.iter().any(|stored| stored.message.chunks == [broken.clone(), error.clone()]));
}

/// A repair answered open calls at the end of the history.
#[test]
fn an_open_call_is_answered_where_it_stands() {
    let conversation = load(&[
        Message::user("a"),
        Message::assistant([call("1")]),
        Message::user("b"),
        Message::assistant([Chunk::text("c")]),
    ]);
    assert_eq!(roles(&conversation), [Role::User, Role::Assistant, Role::Tool, Role::User, Role::Assistant]);
    assert!(matches!(results(&conversation)[..], [("1", _, MessageState::Synthetic)]));
    assert!(
        matches!(conversation.report(), [line] if line.rule == Rule::OutcomeUnknown && line.message_index == Some(1))
    );
}

/// A repair put a placeholder where a real result came later.
#[test]
fn a_result_that_comes_later_is_found() {
    let conversation = load(&[
        Message::user("a"),
        Message::assistant([call("1"), call("2")]),
        Message::tool("2", "y"),
        Message::user("b"),
        Message::assistant([Chunk::text("c")]),
        Message::tool("1", "x"),
    ]);
    let complete = MessageState::Complete;
    assert_eq!(results(&conversation), [("1", "x", complete), ("2", "y", complete)]);
    let expected = [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User, Role::Assistant];
    assert_eq!(roles(&conversation), expected);
    assert!(conversation.report().iter().all(|line| line.rule == Rule::ResultMoved));
}

/// What says of itself that there is no result was told in place of the real one, which came later.
#[test]
fn a_real_result_beats_what_stands_for_one() {
    let unknown = "Interrupted: no result was recorded. The outcome is unknown; the tool may have taken effect.";
    let others =
        "[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair.";
    for placeholder in [unknown, others] {
        let conversation = load(&[
            Message::user("a"),
            Message::assistant([call("1"), call("2")]),
            Message::tool("1", placeholder),
            Message::tool("2", placeholder),
            Message::user("b"),
            Message::assistant([Chunk::text("c")]),
            Message::tool("1", "x"),
            Message::tool("1", "y"),
        ]);
        let complete = MessageState::Complete;
        assert_eq!(results(&conversation), [("1", "x", complete), ("2", placeholder, complete)]);
        let removed = conversation.report().iter().filter(|line| line.rule == Rule::DuplicateResultRemoved);
        assert_eq!(removed.map(|line| line.message_index).collect::<Vec<_>>(), [Some(2), Some(7)]);
    }
    // The id is used anew: what answers that call does not answer the older one.
    let conversation = load(&[
        Message::user("a"),
        Message::assistant([call("1")]),
        Message::tool("1", unknown),
        Message::assistant([call("1")]),
        Message::tool("1", "x"),
        Message::tool("1", "y"),
    ]);
    let complete = MessageState::Complete;
    assert_eq!(results(&conversation), [("1", unknown, complete), ("1", "x", complete)]);
}

/// A repair took a pending call for damage.
#[test]
fn a_pending_call_is_no_damage() {
    for messages in [
        vec![Message::user("a"), Message::assistant([call("1"), call("2")])],
        vec![Message::user("a"), Message::assistant([call("1"), call("2")]), Message::tool("1", "x")],
    ] {
        let conversation = load(&messages);
        assert_eq!(conversation.messages().len(), messages.len());
        assert_eq!(conversation.report(), []);
    }
}

/// Chat front ends keep all steps of a turn in one message: the answer was told before the results that it rests on, and
/// the prompt ended with them, as if there were none.
#[test]
fn what_stands_behind_a_result_is_said_after_it() {
    let step = |id: &str, server: bool, result: &str| -> [Chunk; 2] {
        let (id, name, arguments) = (id.to_owned(), "read".to_owned(), "{}".to_owned());
        let call = Body::ToolCall { id: id.clone(), name, arguments, signature: None, server };
        [call.into(), Chunk::tool_result(id, result)]
    };
    for server in [false, true] {
        let [first, second] = [step("a", server, "RESULT 1"), step("b", server, "RESULT 2")];
        let [one, two, three] = ["TEXT 1", "TEXT 2", "TEXT 3"].map(|text| vec![Chunk::text(text)]);
        let chunks = [one, first.to_vec(), two, second.to_vec(), three].concat();
        let conversation = load(&[Message::user("q"), Message::assistant(chunks), Message::user("thanks")]);
        for wire in WIRES {
            let target: Target = wire.name.parse().unwrap();
            let prompt = render(target, &conversation, &PromptOptions::new()).unwrap();
            let mut rest = prompt.request.get();
            for said in ["TEXT 1", "RESULT 1", "TEXT 2", "RESULT 2", "TEXT 3", "thanks"] {
                let (before, behind) = rest.split_once(said).unwrap_or_else(|| panic!("{said}: {}", prompt.request));
                assert!(!before.contains("outcome is unknown"), "{}", prompt.request);
                rest = behind;
            }
        }
    }
}

/// And each step thinks for itself.
#[test]
fn the_steps_of_a_message_keep_their_thinking() {
    let signed = |text: &str| -> Chunk {
        Body::Thinking { text: text.to_owned(), signature: Some("c2ln".to_owned()), redacted: None }.into()
    };
    let chunks = [signed("FIRST"), call("a"), Chunk::tool_result("a", "x"), signed("SECOND"), Chunk::text("b")];
    let conversation = load(&[Message::user("q"), Message::assistant(chunks), Message::user("thanks")]);
    let prompt = render(Target::ANTHROPIC, &conversation, &PromptOptions::new()).unwrap();
    for thought in ["FIRST", "SECOND"] {
        let block = format!(r#"{{"type":"thinking","thinking":"{thought}","signature":"c2ln"}}"#);
        assert!(prompt.request.get().contains(&block), "{}", prompt.request);
    }
}

/// Of several calls without an id, the first got the result of the second, although it named its tool.
#[test]
fn results_of_one_id_go_to_the_tool_that_they_name() {
    let named = |name: &str, text: &str| -> Message {
        let output = Output::Text(text.to_owned());
        let result =
            Body::ToolResult { tool_call_id: String::new(), name: Some(name.to_owned()), output, is_error: None };
        Message::new(Role::Tool, [result.into()])
    };
    let calls = || Message::assistant([Chunk::tool_call("", "list", "{}"), Chunk::tool_call("", "read", "{}")]);
    let text = |conversation: &Conversation| -> Vec<String> {
        results(conversation).into_iter().map(|(_, text, _)| text.to_owned()).collect()
    };
    let late = load(&[Message::user("a"), calls(), named("read", "y"), Message::user("b")]);
    assert_eq!(text(&late)[1], "y");
    assert!(text(&late)[0].contains("outcome is unknown"));
    let swapped = load(&[Message::user("a"), calls(), named("read", "y"), named("list", "x"), Message::user("b")]);
    assert_eq!(text(&swapped), ["x", "y"]);
    let early = load(&[Message::user("a"), named("read", "y"), named("list", "x"), calls(), Message::user("b")]);
    assert_eq!(text(&early), ["x", "y"]);
    // A name that no call has decides nothing.
    let other = load(&[Message::user("a"), calls(), named("write", "x"), named("read", "y"), Message::user("b")]);
    assert_eq!(text(&other), ["x", "y"]);
}

/// A tool's output of a kind that this crate does not know reached the model as an empty one.
#[test]
fn an_output_of_an_unknown_kind_is_shown() {
    let line = r#"{"role": "tool", "chunks": [{"type": "tool_result", "tool_call_id": "1", "content": [{"type": "resource_link", "uri": "file:///a", "size": 1.0}]}]}"#;
    let result = Line::from_json(line).unwrap().message;
    let conversation = load(&[Message::user("a"), Message::assistant([call("1")]), result]);
    for wire in WIRES {
        let prompt = render(wire.name.parse().unwrap(), &conversation, &PromptOptions::new()).unwrap();
        let shown = r#"{\"type\":\"resource_link\",\"uri\":\"file:///a\",\"size\":1.0}"#;
        assert!(prompt.request.get().contains(shown), "{}", prompt.request);
        assert!(prompt.report.iter().any(|line| line.rule == Rule::Altered && line.message_index == Some(2)));
    }
}
