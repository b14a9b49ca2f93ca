//! What is called clean comes out of the rules as it is.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::by_rules;
use super::*;
use crate::model::{Message, Output};

/// Few ids: those of one turn may repeat, and those of several turns do.
fn id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "1", "2", "3", "4", "5"])
}

fn result(id: &str, tool: &str, output: &str) -> Chunk {
    let body = Body::ToolResult {
        tool_call_id: id.to_owned(),
        name: (!tool.is_empty()).then(|| tool.to_owned()),
        output: Output::Text(output.to_owned()),
        is_error: None,
    };
    body.into()
}

/// A question, calls, their results in messages of so many, and whether the last of these goes on. A result may name
/// another call's tool.
fn turn() -> impl Strategy<Value = Vec<Message>> {
    let results = vec(1..4_usize, 1..4);
    let role = prop::sample::select(vec![Role::Tool, Role::User, Role::System]);
    let tool = || prop::sample::select(vec!["", "look", "run"]);
    let calls = vec((id(), tool(), tool()), 0..4);
    (calls, results, role, any::<bool>()).prop_map(|(ids, mut sizes, role, goes_on)| {
        let calls = ids.iter().map(|(id, tool, _)| Chunk::tool_call(*id, *tool, "{}"));
        let mut messages = vec![Message::user("a"), Message::assistant([Chunk::text("b")].into_iter().chain(calls))];
        let mut left = ids.as_slice();
        while !left.is_empty() {
            let (these, rest) = left.split_at(sizes.pop().unwrap_or(9).min(left.len()));
            messages.push(Message::new(role, these.iter().map(|(id, _, tool)| result(id, tool, "c"))));
            left = rest;
        }
        if let (true, Some(last)) = (goes_on, messages.last_mut()) {
            last.chunks.push(Chunk::text("d"));
        }
        messages
    })
}

/// One thing that is not as it should be: a message is left out, is there twice, changes places, or is another's; or a chunk
/// is something else.
fn change(messages: &mut Vec<StoredMessage>, kind: u8, at: usize, other: usize, chunk: Chunk) {
    let (at, other) = (at % messages.len(), other % messages.len());
    match kind {
        0 => drop(messages.remove(at)),
        1 => messages.insert(other, messages[at].clone()),
        2 => messages.swap(at, other),
        3 => messages[at].message.role = messages[other].message.role,
        4 => messages[at].state = MessageState::Streaming,
        5 => messages[at].state = MessageState::Synthetic,
        _ => {
            let chunks = &mut messages[at].message.chunks;
            let place = other % (chunks.len() + 1);
            if kind == 6 || place == chunks.len() { chunks.insert(place, chunk) } else { chunks[place] = chunk }
        }
    }
}

fn chunk() -> impl Strategy<Value = Chunk> {
    prop_oneof![
        id().prop_map(|id| Chunk::tool_call(id, "other", "{")),
        id().prop_map(|id| result(id, "", "e")),
        Just(Chunk::text("")),
        Just(Chunk::error("500")),
    ]
}

fn stored(messages: Vec<Message>) -> Vec<StoredMessage> {
    (0..).zip(messages).map(|(index, message)| StoredMessage::new(index, MessageState::Complete, message)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn rules_leave_it_as_it_is(
        turns in vec(turn(), 1..4),
        changes in vec((0..8_u8, any::<usize>(), any::<usize>(), chunk()), 0..3),
    ) {
        let mut messages = stored(turns.concat());
        for (kind, at, other, chunk) in changes {
            if !messages.is_empty() {
                change(&mut messages, kind, at, other, chunk);
            }
        }
        if is_clean(&messages) {
            let (out, report) = by_rules(messages.clone());
            prop_assert_eq!(out, messages);
            prop_assert_eq!(report, []);
        }
    }
}

#[test]
fn what_usual_programs_store_is_clean() {
    let call = |id: &str| Chunk::tool_call(id, "tool", "{}");
    let result = |id: &str| result(id, "", "c");
    let table = [
        vec![],
        vec![Message::user("a"), Message::assistant([Chunk::thinking("b")])],
        vec![Message::assistant([call("1"), call("2")]), Message::new(Role::Tool, [result("1"), result("2")])],
        vec![
            Message::assistant([call("1"), call("2")]),
            Message::new(Role::Tool, [result("1")]),
            Message::new(Role::Tool, [result("2")]),
            Message::assistant([call("1")]),
            Message::new(Role::User, [result("1"), Chunk::text("d")]),
        ],
    ];
    for messages in table {
        assert!(is_clean(&stored(messages.clone())), "{messages:?}");
    }
}
