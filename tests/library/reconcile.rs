//! Reconcile: idempotent, deterministic, leaves clean histories alone, and loses nothing without a line in its report.

use std::collections::{BTreeMap, BTreeSet};

use conversation_store::model::{Body, Chunk, FinishReason, Message, Role};
use conversation_store::{Conversation, MessageState, ReportLine, Rule, StoredMessage};
use proptest::collection::vec;
use proptest::prelude::*;

fn config() -> ProptestConfig {
    let cases = std::env::var("CONVO_CASES").map_or(3_000, |cases| cases.parse().unwrap());
    ProptestConfig { cases, ..ProptestConfig::default() }
}

/// Few ids, so that calls and results meet, repeat and miss each other.
fn id() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "1", "2", "3"]).prop_map(str::to_owned)
}

fn chunk() -> impl Strategy<Value = Chunk> {
    let arguments = prop::sample::select(vec!["{}", r#"{"a":"#, "", "[1]"]);
    let call = (id(), arguments, any::<bool>()).prop_map(|(id, arguments, server)| {
        let (name, arguments) = ("tool".to_owned(), arguments.to_owned());
        Body::ToolCall { id, name, arguments, signature: None, server }.into()
    });
    prop_oneof![
        2 => prop::sample::select(vec!["", "a"]).prop_map(Chunk::text),
        1 => prop::sample::select(vec!["", "hm"]).prop_map(Chunk::thinking),
        4 => call,
        5 => (id(), "[xyz]").prop_map(|(id, text)| Chunk::tool_result(id, text)),
        1 => Just(Chunk::error("500")),
        1 => Just(Chunk::image("https://example.org/a.png")),
    ]
}

fn history() -> impl Strategy<Value = Vec<StoredMessage>> {
    let reason = prop::option::of(prop::sample::select(vec![
        FinishReason::Stop,
        FinishReason::Length,
        FinishReason::ToolCalls,
        FinishReason::Interrupted,
    ]));
    let role = prop_oneof![
        4 => Just(Role::Assistant),
        3 => Just(Role::Tool),
        2 => Just(Role::User),
        1 => Just(Role::System),
    ];
    let state = prop_oneof![
        8 => Just(MessageState::Complete),
        1 => Just(MessageState::Interrupted),
        1 => Just(MessageState::Streaming),
    ];
    vec((role, vec(chunk(), 0..4), reason, state), 0..8).prop_map(|messages| {
        let message = |(index, (role, chunks, finish_reason, state)): (u64, (Role, Vec<Chunk>, _, _))| {
            StoredMessage::new(index, state, Message { finish_reason, ..Message::new(role, chunks) })
        };
        (0..).zip(messages).map(message).collect()
    })
}

/// What a turn of an agent looks like when nothing goes wrong.
fn clean_history() -> impl Strategy<Value = Vec<StoredMessage>> {
    let turn = (0..4_usize, any::<bool>(), any::<bool>(), any::<bool>());
    (vec(turn, 0..5), any::<bool>(), prop::option::of(0..3_usize)).prop_map(|(turns, with_system, pending)| {
        let mut messages = Vec::new();
        if with_system {
            messages.push(Message::system("Be kind."));
        }
        let calls = |count: usize| (0..count).map(|at| Chunk::tool_call(format!("call_{at}"), "tool", "{}"));
        for (count, together, with_text, thinking_only) in turns {
            messages.push(Message::user("a"));
            if count > 0 {
                let text = with_text.then(|| Chunk::text("I shall look."));
                messages.push(Message::assistant(text.into_iter().chain(calls(count))));
                let results = (0..count).map(|at| Chunk::tool_result(format!("call_{at}"), "42"));
                if together {
                    messages.push(Message::new(Role::Tool, results));
                } else {
                    messages.extend(results.map(|result| Message::new(Role::Tool, [result])));
                }
            }
            messages.push(Message::assistant([if thinking_only { Chunk::thinking("hm") } else { Chunk::text("b") }]));
        }
        // A last turn whose calls are not all answered yet: nothing is wrong with it.
        if let Some(answered) = pending {
            messages.extend([Message::user("c"), Message::assistant(calls(3))]);
            messages.extend((0..answered).map(|at| Message::tool(format!("call_{at}"), "42")));
        }
        (0..).zip(messages).map(|(index, message)| StoredMessage::new(index, MessageState::Complete, message)).collect()
    })
}

type Site = (u64, u32);

/// Every chunk by its place in the log.
fn chunks(messages: &[StoredMessage]) -> BTreeMap<Site, Vec<&Chunk>> {
    let mut chunks: BTreeMap<Site, Vec<&Chunk>> = BTreeMap::new();
    for message in messages.iter().filter(|message| message.state != MessageState::Synthetic) {
        assert_eq!(message.chunk_indexes.len(), message.message.chunks.len());
        for (at, chunk) in message.message.chunks.iter().enumerate() {
            chunks.entry((message.index, message.chunk_index(at))).or_default().push(chunk);
        }
    }
    chunks
}

fn sites(report: &[ReportLine], rules: &[Rule]) -> BTreeSet<Site> {
    let lines = report.iter().filter(|line| rules.contains(&line.rule));
    lines.filter_map(|line| Some((line.message_index?, line.chunk_index?))).collect()
}

const REMOVALS: &[Rule] = &[Rule::ErrorChunkRemoved, Rule::DuplicateResultRemoved, Rule::OrphanResultRemoved];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn is_idempotent(history in history()) {
        let once = Conversation::new(history);
        let twice = Conversation::new(once.messages().to_vec());
        prop_assert_eq!(twice.messages(), once.messages());
        prop_assert_eq!(twice.report(), []);
    }

    #[test]
    fn is_deterministic(history in history()) {
        prop_assert_eq!(Conversation::new(history.clone()), Conversation::new(history));
    }

    #[test]
    fn leaves_clean_histories_alone(history in clean_history()) {
        let conversation = Conversation::new(history.clone());
        prop_assert_eq!(conversation.messages(), history.as_slice());
        prop_assert_eq!(conversation.report(), []);
    }

    #[test]
    fn loses_nothing_without_a_line(history in history()) {
        let conversation = Conversation::new(history.clone());
        let report = conversation.report();
        let (before, after) = (chunks(&history), chunks(conversation.messages()));
        let removed = sites(report, REMOVALS);
        let emptied: BTreeSet<u64> = report
            .iter()
            .filter(|line| line.rule == Rule::EmptyMessageRemoved)
            .filter_map(|line| line.message_index)
            .collect();
        for (site, chunk) in &before {
            let kept = after.get(site).is_some_and(|after| after == chunk);
            prop_assert!(kept || removed.contains(site) || emptied.contains(&site.0), "{site:?} is lost: {report:?}");
            prop_assert!(!kept || !removed.contains(site), "{site:?} is there: {report:?}");
        }
        prop_assert!(after.keys().all(|site| before.contains_key(site)));
        // A message of nothing leaves with a line too.
        let indexes: BTreeSet<u64> = conversation.messages().iter().map(|message| message.index).collect();
        for message in history.iter().filter(|message| message.message.chunks.is_empty()) {
            prop_assert!(!indexes.contains(&message.index) && emptied.contains(&message.index));
        }
        // What is made up is told, once for each answer.
        let made = conversation.messages().iter().filter(|message| message.state == MessageState::Synthetic);
        let made: Vec<Site> = made.map(|message| (message.index, message.chunk_index(0))).collect();
        let told = sites(report, &[Rule::OutcomeUnknown, Rule::NotRun]);
        prop_assert_eq!(made.iter().copied().collect::<BTreeSet<_>>(), told);
        prop_assert_eq!(made.len(), made.iter().collect::<BTreeSet<_>>().len());
    }

    #[test]
    fn moves_nothing_but_results_and_tells_it(history in history()) {
        let conversation = Conversation::new(history.clone());
        let moved = sites(conversation.report(), &[Rule::ResultMoved]);
        let order = |messages: &[StoredMessage]| -> Vec<Site> {
            let messages = messages.iter().filter(|message| message.state != MessageState::Synthetic);
            messages.flat_map(|message| message.chunk_indexes.iter().map(|chunk| (message.index, *chunk))).collect()
        };
        let after = order(conversation.messages());
        let stays = |site: &&Site| !moved.contains(site);
        let (kept, mut sorted): (Vec<Site>, Vec<Site>) =
            (after.iter().filter(stays).copied().collect(), after.iter().filter(stays).copied().collect());
        sorted.sort_unstable();
        prop_assert_eq!(kept, sorted);
        for site in &moved {
            let chunk = chunks(&history)[site][0];
            prop_assert!(matches!(chunk.body, Body::ToolResult { .. }), "{chunk:?}");
        }
    }

    #[test]
    fn leaves_calls_with_their_results_or_pending(history in history()) {
        let conversation = Conversation::new(history);
        let messages = conversation.messages();
        let mut open: Vec<(&str, u64)> = Vec::new();
        for message in messages {
            let speaks = matches!(message.message.role, Role::User | Role::Assistant);
            for chunk in &message.message.chunks {
                if let Body::ToolResult { tool_call_id, .. } = &chunk.body {
                    let at = open.iter().position(|(id, _)| id == tool_call_id);
                    prop_assert!(at.is_some(), "a result of {tool_call_id:?} without a call before it: {messages:?}");
                    open.remove(at.unwrap());
                    continue;
                }
                // Nobody goes on while a call is open; an empty text says nothing.
                let speaks = speaks && *chunk != Chunk::text("") && *chunk != Chunk::thinking("");
                let others = open.iter().filter(|(_, index)| *index != message.index);
                prop_assert!(!speaks || others.count() == 0, "{open:?} is open when {chunk:?} comes: {messages:?}");
                if let (Body::ToolCall { id, .. }, Role::Assistant) = (&chunk.body, message.message.role) {
                    open.push((id, message.index));
                }
            }
        }
    }
}

/// From every call to its result and back, whatever was repaired; and from nothing else.
#[test]
fn calls_lead_to_their_results_and_back() {
    proptest!(config(), |(messages in history())| {
        let conversation = Conversation::new(messages);
        let calls = conversation.tool_calls();
        let place = |of: conversation_store::ToolChunk<'_>| (of.message.index, of.chunk_index);
        let is_call = |stored: &StoredMessage, chunk: &Chunk| {
            stored.message.role == Role::Assistant && matches!(chunk.body, Body::ToolCall { .. })
        };
        let chunks = conversation.messages().iter().flat_map(|stored| stored.message.chunks.iter().map(move |chunk| (stored, chunk)));
        prop_assert_eq!(calls.iter().count(), chunks.filter(|(stored, chunk)| is_call(stored, chunk)).count());
        for (call, result) in calls.iter() {
            prop_assert!(is_call(call.message, call.chunk));
            let (message, chunk) = place(call);
            prop_assert_eq!(calls.result_of(message, chunk), result);
            let Some(result) = result else { continue };
            let (Body::ToolCall { id, .. }, Body::ToolResult { tool_call_id, .. }) = (&call.chunk.body, &result.chunk.body)
            else { panic!("{call:?} {result:?}") };
            prop_assert_eq!(id, tool_call_id);
            let (message, chunk) = place(result);
            prop_assert_eq!(calls.call_of(message, chunk), Some(call));
        }
        prop_assert_eq!(calls.result_of(u64::MAX, 0), None);
    });
}
