//! Summaries in place of messages: in prompts only, and right across rewinds, forks and redactions.

use crate::common::chat::shape;
use crate::place::Place;
use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::provider::{PromptOptions, Target, render};
use conversation_store::{EntryKind, Error, Rule, Store, Summary};

crate::tests![
    a_summary_stands_for_messages_in_prompts_and_nowhere_else,
    the_newest_summary_counts_until_a_rewind_reaches_into_it,
    a_fork_has_the_summaries_before_it,
    a_redaction_names_the_summaries_that_may_quote_it,
    what_cannot_be_covered_is_refused,
];

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
fn store(place: &Place) -> Store {
    let store = place.store();
    store.append("chat", &[Message::new(Role::System, [Chunk::text("Be brief.")])]).unwrap();
    store.append("chat", &turn(0)).unwrap();
    store.append("chat", &turn(1)).unwrap();
    store
}

fn prompt(store: &Store, name: &str) -> Vec<String> {
    let prompt = render(Target::OPENAI_CHAT, &store.load(name).unwrap(), &PromptOptions::new()).unwrap();
    shape(prompt.request.get())
}

fn a_summary_stands_for_messages_in_prompts_and_nowhere_else(place: &Place) {
    let store = store(place);
    let (before, raw) = (store.load("chat").unwrap(), store.load_raw("chat").unwrap());
    let receipt = store.summarize("chat", 4, SUMMARY).unwrap();
    assert_eq!((receipt.first_seq, receipt.message_indexes), (10, vec![]));
    let conversation = store.load("chat").unwrap();
    assert_eq!((conversation.messages(), store.load_raw("chat").unwrap()), (before.messages(), raw));
    let wanted = Summary::new(10, 4, SUMMARY);
    assert_eq!(conversation.summary(), Some(&wanted));
    let shape = prompt(&store, "chat");
    assert_eq!(shape[..3], ["system Be brief.", &told(SUMMARY), "user Question 1"]);
    assert_eq!(shape.len(), 7);
    let report = render(Target::OPENAI_CHAT, &conversation, &PromptOptions::new()).unwrap().report;
    let report: Vec<String> = report.iter().map(ToString::to_string).collect();
    assert_eq!(
        report,
        [
            "message 4: summary sent in place of the messages up to this one: the conversation was summarized (seq 10) (summarized)"
        ]
    );
    let entry = store.newest_entries("chat", 1).unwrap().remove(0);
    assert_eq!((entry.message_index, entry.kind), (Some(4), EntryKind::Summary { text: SUMMARY.to_owned() }));
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

fn the_newest_summary_counts_until_a_rewind_reaches_into_it(place: &Place) {
    let store = store(place);
    store.summarize("chat", 4, "first").unwrap();
    store.summarize("chat", 8, "second").unwrap();
    assert_eq!(prompt(&store, "chat"), ["system Be brief.".to_owned(), told("second")]);
    // Behind what it covers: it stays.
    store.append("chat", &turn(2)).unwrap();
    store.rewind("chat", 9).unwrap();
    assert_eq!(store.load("chat").unwrap().summary().unwrap().text, "second");
    // Into it: the one before counts.
    store.rewind("chat", 8).unwrap();
    assert_eq!(store.load("chat").unwrap().summary().unwrap().text, "first");
    assert_eq!(prompt(&store, "chat")[1], told("first"));
    store.rewind("chat", 3).unwrap();
    assert_eq!(store.load("chat").unwrap().summary(), None);
    store.append("chat", &[Message::user("again")]).unwrap();
    // What was rewound before the summary is no matter.
    store.summarize("chat", 2, "third").unwrap();
    store.summarize("chat", 13, "fourth").unwrap();
    assert_eq!(prompt(&store, "chat"), ["system Be brief.".to_owned(), told("fourth")]);
}

fn a_fork_has_the_summaries_before_it(place: &Place) {
    let store = store(place);
    store.fork_to("chat", None, "before").unwrap();
    let seq = store.summarize("chat", 4, SUMMARY).unwrap().last_seq;
    store.fork_to("chat", Some(seq), "after").unwrap();
    store.rewind("chat", 2).unwrap();
    let summary = |name: &str| store.load(name).unwrap().summary().map(|summary| summary.seq);
    assert_eq!([summary("before"), summary("chat"), summary("after")], [None, None, Some(seq)]);
    store.rewind("after", 7).unwrap();
    assert_eq!(summary("after"), Some(seq));
    store.summarize("before", 8, "its own").unwrap();
    assert_eq!(prompt(&store, "before")[1], told("its own"));
    store.delete("chat").unwrap();
    assert_eq!(summary("after"), Some(seq));
}

fn a_redaction_names_the_summaries_that_may_quote_it(place: &Place) {
    let store = store(place);
    let first = store.summarize("chat", 2, "first").unwrap_err();
    assert!(matches!(first, Error::InvalidInput(_)));
    let seq = store.summarize("chat", 4, SUMMARY).unwrap().last_seq;
    assert_eq!(store.redact("chat", 1, None).unwrap().summaries, [seq]);
    assert_eq!(store.redact("chat", 5, None).unwrap().summaries, Vec::<u64>::new());
    assert_eq!(prompt(&store, "chat")[1..3], [told(SUMMARY), "user [redacted]".to_owned()]);
}

fn what_cannot_be_covered_is_refused(place: &Place) {
    let store = store(place);
    let refused = |result: Result<_, Error>| result.map(|_: conversation_store::Receipt| ()).unwrap_err();
    assert!(matches!(refused(store.summarize("nobody", 0, SUMMARY)), Error::NotFound { .. }));
    assert!(matches!(refused(store.summarize("chat", 9, SUMMARY)), Error::NotFound { .. }));
    assert!(matches!(refused(store.summarize("chat", 4, " \n")), Error::InvalidInput(_)));
    // Its result comes behind.
    assert!(matches!(refused(store.summarize("chat", 2, SUMMARY)), Error::InvalidInput(_)));
    // Its result may still come.
    store.append("chat", &[Message::assistant([Chunk::tool_call("late", "ls", "{}")])]).unwrap();
    assert!(matches!(refused(store.summarize("chat", 9, SUMMARY)), Error::InvalidInput(_)));
    store.summarize("chat", 8, SUMMARY).unwrap();
    let writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.finish(None, None).unwrap();
    store.append("chat", &[Message::user("go on")]).unwrap();
    let writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let index = writer.message_index();
    assert!(matches!(refused(store.summarize("chat", index, SUMMARY)), Error::BeingWritten { .. }));
    // Nobody waits for the result any more. Should it come, it goes where its call went.
    store.summarize("chat", index - 1, SUMMARY).unwrap();
    drop(writer);
    store.append("chat", &[Message::tool("late", "too late"), Message::user("and now?")]).unwrap();
    let prompt = render(Target::OPENAI_CHAT, &store.load("chat").unwrap(), &PromptOptions::new()).unwrap();
    assert_eq!(shape(prompt.request.get()), ["system Be brief.", &told(SUMMARY), "user and now?"]);
    let line = prompt.report.iter().find(|line| line.rule == Rule::Summarized).unwrap();
    assert_eq!((line.message_index, line.chunk_index), (Some(index + 1), Some(0)));
}
