//! Nanoseconds a message, for conversations of growing length: flat, or something looks back too far.

use std::hint::black_box;
use std::time::{Duration, Instant};

use conversation_store::provider::{Decoder, PromptOptions, Target, check, parse, render};
use conversation_store::{Conversation, StoredMessage};

use crate::agent::{self, TURN, Words};
use crate::deltas;

/// Short enough that 100,000 messages stay below every wire's limit of bytes.
const WORDS: Words = Words { asked: 4, thought: 6, found: 8, answered: 4 };
/// A length is measured this often.
const ROUNDS: usize = 5;
/// A round repeats until it has taken so long.
const ROUND: Duration = Duration::from_millis(20);
/// Bytes that come from the network at once.
const PACKET: usize = 1400;

/// What is done to a conversation: its name, and the time that one repetition takes.
pub(crate) struct Work {
    pub(crate) name: &'static str,
    run: fn(&Given) -> Duration,
}

pub(crate) const WORKS: &[Work] = &[
    Work { name: "reconcile", run: reconcile },
    Work {
        name: "render",
        run: |given| time(|| render(given.target, &given.conversation, &PromptOptions::new()).unwrap()),
    },
    Work { name: "check", run: |given| time(|| check(given.target, &given.request).unwrap()) },
    Work { name: "parse", run: |given| time(|| parse(given.target, &given.request).unwrap()) },
    Work {
        name: "read as a JSON value",
        run: |given| time(|| serde_json::from_str::<serde_json::Value>(&given.request).unwrap()),
    },
    Work { name: "write from a JSON value", run: |given| time(|| serde_json::to_string(&given.value).unwrap()) },
    Work { name: "decode", run: |given| time(|| decode(given.target, &given.stream)) },
];

pub(crate) struct Given {
    target: Target,
    messages: Vec<StoredMessage>,
    conversation: Conversation,
    request: String,
    value: serde_json::Value,
    /// An answer of as many deltas as the conversation has messages.
    stream: Vec<u8>,
}

/// Prints a table.
pub(crate) fn print(works: &[&Work], wires: &[Target], lengths: &[usize]) {
    let titles: Vec<String> = lengths.iter().map(ToString::to_string).collect();
    println!("| ns a message (decode: a delta) | wire | {} |", titles.join(" | "));
    println!("|---|---|{}", "---:|".repeat(lengths.len()));
    for target in wires {
        let columns: Vec<Vec<f64>> = lengths.iter().map(|length| measure(works, *target, *length)).collect();
        for (at, work) in works.iter().enumerate() {
            let cells: Vec<String> = columns.iter().map(|column| format!("{:.0}", column[at])).collect();
            println!("| {} | `{target}` | {} |", work.name, cells.join(" | "));
        }
    }
    println!();
}

/// The time of each work, a message.
fn measure(works: &[&Work], target: Target, length: usize) -> Vec<f64> {
    let messages = agent::conversation(target, length / TURN, WORDS);
    let conversation = Conversation::new(messages.clone());
    let request = render(target, &conversation, &PromptOptions::new()).unwrap().request.get().to_owned();
    let stream = deltas::stream(target, length);
    let value = serde_json::from_str(&request).unwrap();
    let given = Given { target, messages, conversation, request, value, stream };
    works.iter().map(|work| least(|| round(work, &given)) / length as f64).collect()
}

/// The least counts: what the machine does meanwhile only adds.
fn least(mut measured: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| measured()).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds of one repetition.
fn round(work: &Work, given: &Given) -> f64 {
    let (mut spent, mut repeated) = (Duration::ZERO, 0);
    while spent < ROUND {
        spent += (work.run)(given);
        repeated += 1;
    }
    spent.as_nanos() as f64 / f64::from(repeated)
}

/// The time that the work takes, without that of dropping what it made.
fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let begun = Instant::now();
    let made = black_box(work());
    let spent = begun.elapsed();
    drop(made);
    spent
}

fn reconcile(given: &Given) -> Duration {
    let messages = given.messages.clone();
    time(|| Conversation::new(messages))
}

fn decode(target: Target, stream: &[u8]) -> usize {
    let mut decoder = Decoder::new(target);
    let events: usize = stream.chunks(PACKET).map(|packet| decoder.push(packet).unwrap().len()).sum();
    events + decoder.finish().len()
}
