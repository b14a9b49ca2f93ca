//! Summaries in prompts: with windows, and for hostile logs.

use crate::common::chat::shape;
use crate::common::{cases, config, hostile, prompts, stored};
use conversation_store::model::{Body, Chunk, Message, Role};
use conversation_store::provider::{FinishedTools, Prompt, PromptOptions, Target, render};
use conversation_store::{Conversation, Rule, Store, StoredMessage, Summary};
use proptest::test_runner::{TestError, TestRunner};

const SUMMARY: &str = "They spoke of files.";

fn told(summary: &str) -> String {
    format!("user Summary of the conversation up to here:\n\n{summary}")
}

fn turn(number: u64) -> Vec<Message> {
    let id = format!("call_{number}");
    vec![
        Message::user(format!("Question {number}")),
        Message::assistant([Chunk::tool_call(&id, "read_file", "{}")]),
        Message::tool(&id, format!("File {number}")),
        Message::assistant([Chunk::text(format!("Answer {number}"))]),
    ]
}

/// A system message and two turns: messages 0, 1 to 4, 5 to 8.
fn store() -> Store {
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::new(Role::System, [Chunk::text("Be brief.")])]).unwrap();
    store.append("chat", &turn(0)).unwrap();
    store.append("chat", &turn(1)).unwrap();
    store
}

#[test]
fn a_window_keeps_the_summary() {
    let store = store();
    store.summarize("chat", 4, SUMMARY).unwrap();
    store.append("chat", &turn(2)).unwrap();
    store.append("chat", &turn(3)).unwrap();
    let options = PromptOptions::new().with_last_turns(1);
    let prompt = render(Target::OPENAI_CHAT, &store.load("chat").unwrap(), &options).unwrap();
    let shape = shape(prompt.request.get());
    assert_eq!(shape[..3], ["system Be brief.", &told(SUMMARY), "user Question 3"]);
    assert_eq!(prompts::window(&prompt), Some(13));
    let summary = "word ".repeat(300);
    store.summarize("chat", 4, &summary).unwrap();
    let options = PromptOptions::new().with_max_tokens(200);
    let prompt = render(Target::OPENAI_CHAT, &store.load("chat").unwrap(), &options).unwrap();
    assert!(prompt.report.iter().any(|line| line.rule == Rule::WindowExceeded));
}

/// The conversation with a summary of its messages up to the one at this place.
fn compacted(messages: &[StoredMessage], at: usize) -> Conversation {
    let summary = messages.get(at % messages.len().max(1)).map(|last| Summary::new(100, last.index, SUMMARY));
    Conversation::new(messages.to_vec()).with_summary(summary)
}

fn options() -> Vec<PromptOptions> {
    let options = PromptOptions::new;
    vec![
        options(),
        options(),
        options().with_last_messages(4),
        options().with_max_tokens(200),
        options().with_finished_tools(FinishedTools::Flatten),
    ]
}

/// Whether nothing of what the user said up to the summary's end stands in the request. Each text is its own.
fn is_told_once(conversation: &Conversation, request: &str) -> bool {
    let through = conversation.summary().unwrap().through;
    let covered = conversation.messages().iter().filter(|stored| stored.index <= through);
    let mut users = covered.filter(|stored| stored.message.role == Role::User);
    users.all(|stored| {
        stored.message.chunks.iter().all(|chunk| match &chunk.body {
            Body::Text { text, .. } if text.ends_with('>') => {
                let text = serde_json::to_string(text).unwrap();
                !request.contains(text.trim_matches('"'))
            }
            _ => true,
        })
    })
}

#[test]
fn summaries_of_hostile_logs_are_accepted_and_conserved_and_keep_the_prefix() {
    let targets = prompts::targets();
    let mut runner = TestRunner::new(config(cases("CONVO_HOSTILE_CASES", 100)));
    let strategy = (hostile::log(14), 0..14_usize, proptest::sample::select(options()));
    let result = runner.run(&strategy, |(messages, at, options)| {
        let conversation = compacted(&messages, at);
        let through = at % messages.len().max(1);
        let is_compared = |end: &usize| {
            let (before, rest) = messages.split_at(*end);
            let flattens = options.finished_tools != FinishedTools::Keep && rest[0].message.role == Role::User;
            !flattens && !prompts::may_change(before, &rest[0].message)
        };
        let compared: Vec<usize> = (through + 1..messages.len()).filter(is_compared).collect();
        // Of so many messages each.
        let grown: Vec<Conversation> =
            (0..=messages.len()).map(|count| compacted(&messages[..count], through)).collect();
        for target in &targets {
            let Some(prompt) = prompts::prompt_of(*target, &conversation, &options) else { continue };
            prompts::assert_accepted(*target, &prompt);
            if conversation.summary().is_none() {
                continue;
            }
            prompts::assert_conserved(*target, &messages, &prompt);
            assert!(is_told_once(&conversation, prompt.request.get()), "{}", prompt.request);
            // The prompt that was made last, and of how many messages.
            let mut last: Option<(usize, Prompt)> = None;
            for &end in &compared {
                let first = match last.take() {
                    Some((count, prompt)) if count == end => prompt,
                    _ => prompts::prompt_of(*target, &grown[end], &options).unwrap(),
                };
                let second = prompts::prompt_of(*target, &grown[end + 1], &options).unwrap();
                if prompts::is_within_a_step(&first, &second) {
                    let (prefix, list) = (prompts::prefix(&first), prompts::list(&second));
                    assert!(list.starts_with(&prefix), "{target} at {end}:\n{prefix}\n{list}");
                }
                last = Some((end + 1, second));
            }
        }
        Ok(())
    });
    if let Err(TestError::Fail(reason, (messages, at, options))) = result {
        let messages: String = messages.iter().map(|stored| format!("{stored:?}\n")).collect();
        panic!("{reason}\nat {at}, {options:?}\n{messages}");
    }
}

/// System messages stay, but a result that one of them brought is a message of its own.
#[test]
fn a_result_in_a_system_message_goes_with_its_summarized_call() {
    let call = Message::assistant([Chunk::tool_call("call_1", "read_file", "{}")]);
    let system = Message::new(Role::System, [Chunk::tool_result("call_1", "found"), Chunk::text("Be kind.")]);
    let messages = stored::log(vec![call, system, Message::user("And?")]);
    for target in prompts::targets() {
        let prompt = prompts::prompt_of(target, &compacted(&messages, 1), &PromptOptions::new()).unwrap();
        prompts::assert_accepted(target, &prompt);
        prompts::assert_conserved(target, &messages, &prompt);
    }
}
