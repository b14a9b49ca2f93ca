//! Pairing against a plain version of it, which scans for every result: the same pairs for any log.

use std::cell::Cell;
use std::collections::VecDeque;

use proptest::prelude::*;

use super::super::placeholder::OUTCOME_UNKNOWN;
use super::*;
use crate::model::{Chunk, Message, Output};

/// What the plain version finds: as [`Calls`], sorted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plain {
    answers: Vec<(Site, Site)>,
    duplicates: Vec<Site>,
    orphans: Vec<Site>,
}

#[derive(Default)]
struct PlainId {
    called: bool,
    open: Vec<Site>,
    early: VecDeque<Site>,
    /// Calls whose result states that there is none.
    unknown: Vec<Site>,
    /// The message of the last call.
    last: usize,
}

fn plain(messages: &[StoredMessage]) -> Plain {
    let mut found = Plain::default();
    let mut ids: HashMap<&str, PlainId> = HashMap::new();
    for (message, stored) in messages.iter().enumerate() {
        for (chunk, content) in stored.message.chunks.iter().enumerate() {
            let site = Site { message, chunk };
            match &content.body {
                Body::ToolCall { id, name, .. } if stored.message.role == Role::Assistant => {
                    let known = ids.entry(id).or_default();
                    (known.called, known.last) = (true, message);
                    let named = known.early.iter().position(|result| name_at(messages, *result) == Some(name));
                    match known.early.remove(named.unwrap_or_default()) {
                        Some(result) => found.answers.push((site, result)),
                        None => known.open.push(site),
                    }
                }
                Body::ToolResult { tool_call_id, name, .. } => {
                    let known = ids.entry(tool_call_id).or_default();
                    let open = &mut known.open;
                    let call = if stored.state == MessageState::Synthetic {
                        let own = open.iter().position(|call| {
                            let asked = &messages[call.message];
                            (asked.index, asked.chunk_index(call.chunk)) == (stored.index, stored.chunk_index(0))
                        });
                        own.map(|at| open.remove(at))
                    } else {
                        let inline = open.iter().position(|call| {
                            let body = &messages[call.message].message.chunks[call.chunk].body;
                            call.message == message && matches!(body, Body::ToolCall { server: true, .. })
                        });
                        inline.or_else(|| nearest(open, messages, name.as_deref())).map(|at| open.remove(at))
                    };
                    match call {
                        Some(call) => {
                            found.answers.push((call, site));
                            if stored.state != MessageState::Synthetic && is_placeholder(content) {
                                known.unknown.push(call);
                            }
                        }
                        None if known.called => {
                            let last = known.last;
                            let unknown = known.unknown.iter().position(|call| call.message == last);
                            match unknown.filter(|_| !is_placeholder(content)).map(|at| known.unknown.remove(at)) {
                                Some(call) => {
                                    let answer = found.answers.iter_mut().find(|answer| answer.0 == call).unwrap();
                                    found.duplicates.push(std::mem::replace(&mut answer.1, site));
                                }
                                None => found.duplicates.push(site),
                            }
                        }
                        None => known.early.push_back(site),
                    }
                }
                _ => {}
            }
        }
    }
    found.orphans = ids.into_values().flat_map(|id| id.early).collect();
    found.orphans.sort_unstable();
    found.answers.sort_unstable();
    found.duplicates.sort_unstable();
    found
}

fn nearest(open: &[Site], messages: &[StoredMessage], name: Option<&str>) -> Option<usize> {
    let nearest = open.last()?.message;
    let first = open.iter().position(|call| call.message == nearest)?;
    let is_named = |call: &Site| name.is_some_and(|name| name_at(messages, *call) == Some(name));
    Some(first + open.iter().skip(first).position(is_named).unwrap_or_default())
}

fn name_at(messages: &[StoredMessage], site: Site) -> Option<&str> {
    match &messages[site.message].message.chunks[site.chunk].body {
        Body::ToolCall { name, .. } => Some(name),
        Body::ToolResult { name, .. } => name.as_deref(),
        _ => None,
    }
}

fn chunk() -> impl Strategy<Value = Chunk> {
    let word = || prop::sample::select(vec!["", "a", "b"]);
    let call = (word(), word(), any::<bool>()).prop_map(|(id, name, server)| {
        let (id, name, arguments) = (id.to_owned(), name.to_owned(), String::new());
        Body::ToolCall { id, name, arguments, signature: None, server }
    });
    let output = prop::sample::select(vec!["", OUTCOME_UNKNOWN]);
    let result = (word(), prop::option::of(word()), output).prop_map(|(id, name, output)| Body::ToolResult {
        tool_call_id: id.to_owned(),
        name: name.map(str::to_owned),
        output: Output::Text(output.to_owned()),
        is_error: None,
    });
    prop_oneof![4 => call, 4 => result, 1 => Just(Chunk::text("t").body)].prop_map(Chunk::from)
}

fn messages() -> impl Strategy<Value = Vec<StoredMessage>> {
    let role = prop_oneof![3 => Just(Role::Assistant), 3 => Just(Role::Tool), 1 => Just(Role::User)];
    let state = prop_oneof![3 => Just(MessageState::Complete), 1 => Just(MessageState::Synthetic)];
    let chunks = prop::collection::vec(chunk(), 0..8);
    let message = (role, state, chunks, 0..4_u64, 0..3_u32).prop_map(|(role, state, chunks, index, first)| {
        let chunk_indexes = (first..).take(chunks.len()).collect();
        StoredMessage { index, state, first_seq: 1, last_seq: 1, chunk_indexes, message: Message::new(role, chunks) }
    });
    prop::collection::vec(message, 0..12)
}

fn found(messages: &[StoredMessage]) -> Plain {
    let calls = Calls::pair(messages);
    let answers = calls.pairs().collect();
    Plain { answers, duplicates: calls.duplicates, orphans: calls.orphans }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_pairs_as_the_plain_version_does(messages in messages()) {
        prop_assert_eq!(found(&messages), plain(&messages));
    }
}

/// A case that the property found once: results of one id before their calls, and one that states that there is none.
#[test]
fn results_before_their_calls_pair_as_in_the_plain_version() {
    let call = || Chunk::tool_call("b", "", "");
    let result = |output: &str| Chunk::tool_result("b", output);
    let messages =
        [vec![result(""), call()], vec![call()], vec![call(), result(""), result(OUTCOME_UNKNOWN)], vec![result("")]];
    let messages = messages.map(|chunks| StoredMessage {
        index: 0,
        state: MessageState::Complete,
        first_seq: 1,
        last_seq: 1,
        chunk_indexes: (0..).take(chunks.len()).collect(),
        message: Message::new(Role::Assistant, chunks),
    });
    assert_eq!(found(&messages), plain(&messages));
}

/// Calls of one message and one id, whose results name the tools in reverse: nobody looks at a place more than a few times.
#[test]
fn each_place_is_looked_at_a_few_times() {
    const CALLS: usize = 5_000;
    let chunks = (0..CALLS).map(|at| Chunk::tool_call("c", format!("t{}", at % 100), "{}"));
    let stored = StoredMessage {
        index: 0,
        state: MessageState::Complete,
        first_seq: 1,
        last_seq: 1,
        chunk_indexes: Vec::new(),
        message: Message::new(Role::Assistant, chunks),
    };
    let messages = [stored];
    let mut waiting = Waiting::default();
    (0..CALLS).for_each(|chunk| waiting.push(Site { message: 0, chunk }, &messages));
    let (looks, mut gone) = (Cell::new(0), HashSet::new());
    for result in (0..CALLS).rev() {
        let is_gone = |site| {
            looks.set(looks.get() + 1);
            gone.contains(&site)
        };
        let found = waiting.find(Some(&format!("t{}", result % 100)), &messages, is_gone).unwrap();
        assert!(gone.insert(found));
    }
    assert!(looks.get() < 5 * CALLS, "{} looks at {CALLS} calls", looks.get());
}
