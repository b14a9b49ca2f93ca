//! What every prompt has to be: accepted, conserved, a prefix of the next.

use std::collections::HashSet;

use conversation_store::model::{Body, Chunk, Message, Output, PartBody, Role};
use conversation_store::provider::{Level, Prompt, PromptOptions, Target, check, render};
use conversation_store::{Conversation, Error, Rule, StoredMessage};
use serde_json::Value;

/// All targets: every wire, and every dialect of it.
pub(crate) fn targets() -> Vec<Target> {
    use conversation_store::provider::{DIALECTS, WIRES};
    let wires = WIRES.iter().map(|wire| wire.name.parse::<Target>().unwrap());
    let dialects = DIALECTS.iter().map(|dialect| format!("{}/{}", dialect.wire, dialect.name).parse().unwrap());
    wires.chain(dialects).collect()
}

/// The prompt, if there is something to send.
pub(crate) fn prompt(target: Target, messages: &[StoredMessage], options: &PromptOptions) -> Option<Prompt> {
    match render(target, &Conversation::new(messages.to_vec()), options) {
        Ok(prompt) => Some(prompt),
        Err(Error::NothingToSend(_)) => None,
        Err(error) => panic!("{target}: {error}"),
    }
}

/// Fails if the target would refuse the prompt.
pub(crate) fn assert_accepted(target: Target, prompt: &Prompt) {
    let findings = check(target, prompt.request.get()).unwrap();
    let hard: Vec<String> =
        findings.iter().filter(|finding| finding.level == Level::Hard).map(ToString::to_string).collect();
    assert!(hard.is_empty(), "{target}: {hard:#?}\n{}", prompt.request);
}

/// Fails if a chunk of the log is neither in the prompt unchanged nor in its report.
pub(crate) fn assert_conserved(target: Target, messages: &[StoredMessage], prompt: &Prompt) {
    let request: Value = serde_json::from_str(prompt.request.get()).unwrap();
    let mut strings = HashSet::new();
    collect(&request, &mut strings);
    let reported: HashSet<(u64, u32)> =
        prompt.report.iter().filter_map(|line| Some((line.message_index?, line.chunk_index?))).collect();
    let empty = prompt.report.iter().filter(|line| line.rule == Rule::EmptyMessageRemoved);
    let empty: HashSet<u64> = empty.filter_map(|line| line.message_index).collect();
    for stored in messages.iter().filter(|stored| !empty.contains(&stored.index)) {
        for (at, chunk) in stored.message.chunks.iter().enumerate() {
            let is_reported = reported.contains(&(stored.index, stored.chunk_index(at)));
            assert!(
                is_reported || is_in(chunk, &strings),
                "{target}: chunk {at} of message {} is lost: {chunk:?}\n{}\n{:#?}",
                stored.index,
                prompt.request,
                prompt.report
            );
        }
    }
}

fn collect(value: &Value, strings: &mut HashSet<String>) {
    match value {
        Value::String(text) => _ = strings.insert(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, strings)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, strings)),
        _ => {}
    }
}

fn is_in(chunk: &Chunk, strings: &HashSet<String>) -> bool {
    let has = |text: &str| strings.iter().any(|string| string.contains(text));
    match &chunk.body {
        Body::Text { text, annotations } => annotations.is_none() && !text.is_empty() && has(text),
        Body::Refusal { text } => !text.is_empty() && has(text),
        Body::Thinking { text, signature, redacted } => {
            !text.is_empty() && signature.is_none() && redacted.is_none() && has(text)
        }
        Body::ToolCall { name, arguments, .. } => strings.contains(name) && strings.contains(arguments),
        Body::ToolResult { output: Output::Text(text), .. } => has(text),
        Body::ToolResult { output: Output::Parts(parts), .. } => parts.iter().all(|part| match &part.body {
            PartBody::Text { text } => has(text),
            PartBody::Json { json } => has(json.as_str()),
            _ => false,
        }),
        Body::Image(image) => has(&image.url),
        Body::Audio(audio) => audio.data.as_ref().is_some_and(|data| has(data)),
        Body::File(file) => file.data.as_ref().is_some_and(|data| has(data)),
        _ => false,
    }
}

/// The bytes of the message list, without what closes it.
pub(crate) fn prefix(prompt: &Prompt) -> String {
    list(prompt).trim_end_matches(['"', ']', '}']).to_owned()
}

/// The bytes of the message list: the first array of the request.
pub(crate) fn list(prompt: &Prompt) -> String {
    let text = prompt.request.get();
    let start = text.find('[').unwrap();
    text.get(start..).unwrap().to_owned()
}

/// Whether a message may change the prompt of the messages before it: a system message, or a first real result for one of
/// their calls.
pub(crate) fn may_change(before: &[StoredMessage], message: &Message) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for chunk in
        before.iter().flat_map(|stored| stored.message.chunks.iter().map(move |chunk| (stored.message.role, chunk)))
    {
        match chunk {
            (Role::Assistant, Chunk { body: Body::ToolCall { id, .. }, .. }) => open.push(id),
            (_, Chunk { body: Body::ToolResult { tool_call_id, .. }, .. }) => {
                if let Some(at) = open.iter().rposition(|id| id == tool_call_id) {
                    open.remove(at);
                }
            }
            _ => {}
        }
    }
    message.role == Role::System
        || message.chunks.iter().any(|chunk| {
            matches!(&chunk.body, Body::ToolResult { tool_call_id, .. } if open.contains(&tool_call_id.as_str()))
        })
}
