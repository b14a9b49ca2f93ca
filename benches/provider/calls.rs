//! Nanoseconds a call, for messages of many calls: flat, or a pass over the conversation looks at them again and again.

use std::hint::black_box;
use std::time::{Duration, Instant};

use conversation_store::model::{Body, Chunk, Message, Output, Role};
use conversation_store::provider::{Decoder, PromptOptions, Target, check, render, repair};
use conversation_store::{Conversation, MessageState, Store, StoredMessage};

/// How the calls of a message, and their results, go by.
struct Case {
    name: &'static str,
    id: fn(usize) -> String,
    /// Whether the results are in one message, the last call's first.
    reversed: bool,
}

const CASES: &[Case] = &[
    Case { name: "ids apart", id: |at| format!("call_{at}"), reversed: false },
    Case { name: "ids apart, reversed", id: |at| format!("call_{at}"), reversed: true },
    Case { name: "one id", id: |_| "call".to_owned(), reversed: false },
    Case { name: "one id, reversed", id: |_| "call".to_owned(), reversed: true },
];

/// Each time is measured this often.
const ROUNDS: usize = 5;

/// Prints a table: a message of so many calls, and as many results.
pub(crate) fn print(wires: &[Target], counts: &[usize]) {
    let titles: Vec<String> = counts.iter().map(ToString::to_string).collect();
    println!("| ns a call | calls | {} |", titles.join(" | "));
    println!("|---|---|{}", "---:|".repeat(counts.len()));
    for case in CASES {
        let columns: Vec<_> = counts.iter().map(|count| measure(case, wires, *count)).collect();
        for (at, (work, _)) in columns[0].iter().enumerate() {
            let cells: Vec<String> = columns.iter().map(|column| format!("{:.0}", column[at].1)).collect();
            println!("| {work} | {} | {} |", case.name, cells.join(" | "));
        }
    }
    println!();
}

fn measure(case: &Case, wires: &[Target], count: usize) -> Vec<(String, f64)> {
    let messages = conversation(case, count);
    let mut times = Vec::new();
    let mut note = |work: String, spent: Duration| times.push((work, spent.as_nanos() as f64 / count as f64));
    let store = Store::open("memory:").unwrap();
    let key = "chat";
    messages.iter().for_each(|message| _ = store.append(key, std::slice::from_ref(message)).unwrap());
    note("load".to_owned(), time(|| store.load(key).unwrap()).0);
    let stored = stored(messages);
    let (spent, conversation) = time(|| Conversation::new(stored.clone()));
    note("reconcile".to_owned(), spent);
    for target in wires {
        let (spent, prompt) = time(|| render(*target, &conversation, &PromptOptions::new()).unwrap());
        note(format!("render `{target}`"), spent);
        let request = prompt.request.get();
        note(format!("check `{target}`"), time(|| check(*target, request).unwrap()).0);
        let repaired = time(|| repair(*target, *target, request, &PromptOptions::new()).unwrap());
        note(format!("repair `{target}`"), repaired.0);
        let stream = crate::deltas::calls(*target, count, case.id);
        note(format!("decode `{target}`"), time(|| decode(*target, &stream)).0);
    }
    times
}

fn conversation(case: &Case, count: usize) -> Vec<Message> {
    let calls = (0..count).map(|at| Chunk::tool_call((case.id)(at), format!("tool_{}", at % 50), r#"{"path":"a"}"#));
    let result = |at: usize| Body::ToolResult {
        tool_call_id: (case.id)(at),
        name: Some(format!("tool_{}", at % 50)),
        output: Output::Text("found".to_owned()),
        is_error: None,
    };
    let asked = [Message::user("Look."), Message::assistant(calls)];
    let mut results: Vec<Chunk> = (0..count).map(|at| result(at).into()).collect();
    let answered = if case.reversed {
        results.reverse();
        vec![Message::new(Role::Tool, results)]
    } else {
        results.into_iter().map(|result| Message::new(Role::Tool, [result])).collect()
    };
    asked.into_iter().chain(answered).chain([Message::user("And?")]).collect()
}

fn stored(messages: Vec<Message>) -> Vec<StoredMessage> {
    let stored =
        (0_u64..).zip(messages).map(|(index, message)| StoredMessage::new(index, MessageState::Complete, message));
    stored.collect()
}

fn decode(target: Target, stream: &[u8]) -> usize {
    let mut decoder = Decoder::new(target);
    let events: usize = stream.chunks(1400).map(|packet| decoder.push(packet).unwrap().len()).sum();
    events + decoder.finish().len()
}

/// The least time of a few, and what was made: what the machine does meanwhile only adds.
fn time<T>(mut work: impl FnMut() -> T) -> (Duration, T) {
    let mut least: Option<(Duration, T)> = None;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let made = black_box(work());
        let spent = begun.elapsed();
        if least.as_ref().is_none_or(|(before, _)| spent < *before) {
            least = Some((spent, made));
        }
    }
    least.unwrap()
}
