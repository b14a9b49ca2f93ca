//! How much of a prompt is the prompt before it, and can be had from the provider's cache.

use conversation_store::provider::{PromptOptions, Target, render};
use conversation_store::{Conversation, StoredMessage};

use crate::agent::{self, TURN, Words};

/// About 700 tokens a turn.
const WORDS: Words = Words { asked: 30, thought: 60, found: 150, answered: 60 };

/// Tokens of the windowed prompts.
const WINDOW: u64 = 32_000;

/// Prints a table for a conversation of so many turns.
pub(crate) fn print(wires: &[Target], turns: usize) {
    println!("| wire | window | last prompt, KiB | of the one before | in all |");
    println!("|---|---|---:|---:|---:|");
    for target in wires {
        let messages = agent::conversation(*target, turns, WORDS);
        print_row(*target, "none", &messages, &PromptOptions::new());
        let window = PromptOptions::new().with_max_tokens(WINDOW);
        print_row(*target, &format!("{WINDOW} tokens"), &messages, &window);
    }
    println!();
}

fn print_row(target: Target, window: &str, messages: &[StoredMessage], options: &PromptOptions) {
    let (mut before, mut sent, mut given, mut reused) = (String::new(), 0, 0, 0);
    for end in asked(messages.len()) {
        let conversation = Conversation::new(messages[..end].to_vec());
        let request = render(target, &conversation, options).unwrap().request.get().to_owned();
        sent += request.len();
        given += before.len();
        reused += common(&before, &request);
        before = request;
    }
    let share = |of: usize| format!("{:.1} %", 100.0 * reused as f64 / of as f64);
    println!("| `{target}` | {window} | {} | {} | {} |", before.len() / 1024, share(given), share(sent));
}

/// Where the model is asked: when the user has spoken, and when the tools have.
fn asked(messages: usize) -> impl Iterator<Item = usize> {
    (0..messages).filter(|at| matches!(at % TURN, 0 | 3)).map(|at| at + 1)
}

fn common(before: &str, now: &str) -> usize {
    before.bytes().zip(now.bytes()).take_while(|(before, now)| before == now).count()
}
