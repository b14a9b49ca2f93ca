//! Requests read, and answers that go back into requests.

use conversation_store::model::Message;
use conversation_store::provider::{Parsed, Prompt, PromptOptions, Target, decode, parse, render, repair};
use conversation_store::{Rule, Store};

use super::prompts;

/// JSON of all kinds.
pub(crate) const VALUES: &[&str] =
    &["null", "1", "\"\"", "\"x\"", "[]", "{}", "[null]", "[1,\"a\",{}]", "{\"a\":1}", "true", "[[]]", "\"{}\""];

/// A request's messages as lines of a transcript, each of which reads back as the message, and what was said about them.
pub(crate) fn parsed(target: Target, request: &str) -> (Vec<String>, Vec<Rule>) {
    let Parsed { messages, notes, .. } = parse(target, request).unwrap();
    let lines = messages.iter().map(|message| {
        let line = message.to_json();
        // A name that the transcript has itself would not read back.
        let read = Message::from_json(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(&read, message, "{line}");
        assert_eq!(read.to_json(), line);
        line
    });
    (lines.collect(), notes.iter().map(|note| note.rule).collect())
}

/// Fails unless a request, whatever it is, is read and repaired.
pub(crate) fn assert_repaired(target: Target, request: &str) {
    parsed(target, request);
    prompts::assert_accepted(target, &repair(target, target, request, &PromptOptions::new()).unwrap());
}

/// The prompt behind a question and this answer to it.
pub(crate) fn answered(target: Target, body: &[u8]) -> Prompt {
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::user("q"), decode(target, body).unwrap()]).unwrap();
    let prompt = render(target, &store.load("chat").unwrap(), &PromptOptions::new()).unwrap();
    prompts::assert_accepted(target, &prompt);
    prompt
}
