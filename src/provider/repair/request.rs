//! A request that is refused, to one that is accepted.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::kept::Kept;
use super::tools::crossing;
use super::unknown::{left_out, unknown_fields};
use crate::error::Result;
use crate::history::Conversation;
use crate::history::{MessageState, StoredMessage};
use crate::history::{ReportLine, Rule};
use crate::model::Message;
use crate::model::json_text;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::render::{Prompt, render};
use crate::provider::read::parse::{Readable, Request};
use crate::provider::target::Target;

/// Reads a request of one wire, and writes it as a target takes it: the messages in it are reconciled and rendered as if
/// they came from a store.
///
/// Where both are of the same wire, what else the request holds (model, tools, temperature) stays byte for byte, but for
/// indentation and what the target would refuse. Between wires only the tools go along, as the target declares them, unless the options
/// name others: a model's name and its parameters mean nothing elsewhere and are left out, and so are tools that only one
/// provider has. All of it is in the report, in this order: what could not be read as it stands; what was wrong with the
/// conversation; what the target does not take; what became of the other fields. Message indexes are positions in the
/// list of the given request's messages.
///
/// The request need not be refused. One that is in order comes back with the same messages, and the report names the
/// fields that the target's renderer does not write.
///
/// ```
/// use conversation_store::provider::{PromptOptions, Target, repair};
///
/// let request = r#"{"model": "gpt-5", "messages": [
///     {"role": "user", "content": "What time is it?"},
///     {"role": "assistant", "content": null, "tool_calls": [
///         {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]},
///     {"role": "user", "content": "Well?"}]}"#;
/// let repaired = repair(Target::OPENAI_CHAT, Target::OPENAI_CHAT, request, &PromptOptions::new())?;
/// assert!(repaired.request.get().starts_with(r#"{"model":"gpt-5","messages":[{"role":"user""#));
/// assert!(repaired.request.get().contains(r#"{"role":"tool","tool_call_id":"call_1","content":"Interrupted"#));
/// assert_eq!(repaired.report[0].tool_call_id.as_deref(), Some("call_1"));
/// # Ok::<(), conversation_store::Error>(())
/// ```
///
/// # Errors
/// As [`parse`](crate::provider::parse()) and [`render`](crate::provider::render()).
pub fn repair(from: Target, target: Target, request: &str, options: &PromptOptions) -> Result<Prompt> {
    let text = Readable::of(request);
    let Request { names, parsed, mut rest } = Request::read(from, &text)?;
    let crosses = from.wire().name != target.wire().name;
    let (options, lost) =
        if crosses { crossing(from, &mut rest, options) } else { (Cow::Borrowed(options), Vec::new()) };
    let messages: Vec<StoredMessage> = (0..).zip(parsed.messages).map(|(at, message)| stored(at, message)).collect();
    let prompt = render(target, &Conversation::new(messages.clone()), &options)?;
    let mut report = parsed.notes;
    // What came on a wire was made there, as far as anybody can tell.
    report.extend(prompt.report.into_iter().filter(|line| crosses || line.rule != Rule::OriginAssumed));
    report.extend(left_out(unknown_fields(&messages), &prompt.request));
    if crosses {
        report.extend(lost);
        report.extend(rest.names().map(|name| {
            ReportLine::new(Rule::LeftOut, format!("`{name}` is of {from}: what {target} takes for it is not known"))
        }));
        return Ok(Prompt { request: prompt.request, report });
    }
    let mut kept = Kept::new(&names, rest, &prompt.request);
    let request = kept.accepted(target, &mut report)?;
    // What is kept may be indented; a prompt is one line.
    let is_line = !request.get().contains(['\n', '\r']);
    let line = if is_line { None } else { RawValue::from_string(json_text::compact(request.get())).ok() };
    Ok(Prompt { request: line.unwrap_or(request), report })
}

/// A message as if it had come out of a log.
fn stored(index: u64, message: Message) -> StoredMessage {
    let chunk_indexes = (0..).take(message.chunks.len()).collect();
    let seq = index + 1;
    StoredMessage { index, state: MessageState::Complete, first_seq: seq, last_seq: seq, chunk_indexes, message }
}
