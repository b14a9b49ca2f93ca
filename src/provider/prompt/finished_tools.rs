//! Rounds of tools that are over: a call and its answer, after which the user has spoken.
//!
//! They may be sent as something else than calls and answers. Whether a round is over depends on what follows it, so a prompt
//! changes from there on when the user speaks.

use std::collections::{HashMap, HashSet};

use super::options::{FinishedTools, PromptOptions, Thinking};
use crate::history::StoredMessage;
use crate::history::report::{Fact, Thought};
use crate::history::{Calls, ReportLine, Site};
use crate::model::{Body, Chunk, Output, Part, PartBody, Role};
use crate::provider::text::is_blank;

/// The messages with their finished rounds as the options want them, each in its place: of some nothing is left.
pub(crate) fn without_rounds(
    messages: &[StoredMessage],
    options: &PromptOptions,
    report: &mut Vec<ReportLine>,
) -> Vec<StoredMessage> {
    let rounds = Rounds::find(messages, options);
    messages.iter().enumerate().map(|(at, stored)| rounds.tell(at, stored, messages, report)).collect()
}

struct Rounds {
    flatten: bool,
    /// Whether the thinking of a message goes with its calls.
    with_thinking: bool,
    calls: HashSet<Site>,
    /// Results, and the calls that they answer.
    results: HashMap<Site, Site>,
}

impl Rounds {
    fn find(messages: &[StoredMessage], options: &PromptOptions) -> Self {
        let end = messages.iter().rposition(|stored| stored.message.role == Role::User).unwrap_or(0);
        let paired = Calls::pair(messages);
        let sites = messages.iter().take(end).enumerate().flat_map(|(message, stored)| {
            let calls = stored.message.chunks.iter().enumerate().filter(|(_, chunk)| is_callers(chunk));
            calls.map(move |(chunk, _)| Site { message, chunk })
        });
        let results = sites.filter_map(|call| Some((paired.result(call)?, call)));
        let results: HashMap<_, _> = results.filter(|(result, _)| result.message < end).collect();
        Self {
            flatten: options.finished_tools == FinishedTools::Flatten,
            with_thinking: options.thinking == Thinking::Native,
            calls: results.values().copied().collect(),
            results,
        }
    }

    /// A message without what belongs to finished rounds; flattened, with the results as text in their place.
    fn tell(
        &self,
        at: usize,
        stored: &StoredMessage,
        messages: &[StoredMessage],
        report: &mut Vec<ReportLine>,
    ) -> StoredMessage {
        let mut left = stored.select(|_| false);
        let has_calls = (0..stored.message.chunks.len()).any(|chunk| self.calls.contains(&Site { message: at, chunk }));
        for (chunk, content) in stored.message.chunks.iter().enumerate() {
            let site = Site { message: at, chunk };
            let call = self.results.get(&site);
            let mut keep = |content: Chunk| {
                left.chunk_indexes.push(stored.chunk_index(chunk));
                left.message.chunks.push(content);
            };
            match &content.body {
                Body::ToolCall { id, .. } if self.calls.contains(&site) => {
                    report.push(self.line(stored, chunk).with_tool_call_id(id));
                }
                Body::ToolResult { tool_call_id, output, is_error, .. } if call.is_some() => {
                    report.push(self.line(stored, chunk).with_tool_call_id(tool_call_id));
                    if self.flatten {
                        let asked = call.and_then(|call| messages.get(call.message)?.message.chunks.get(call.chunk));
                        record(asked, output, is_error.unwrap_or_default()).into_iter().for_each(keep);
                    }
                }
                Body::Thinking { text, .. } if has_calls && self.with_thinking => {
                    report.push(ReportLine::chunk(
                        Fact::ThinkingRemoved { why: Thought::WithCalls, text },
                        stored,
                        chunk,
                    ));
                }
                _ => keep(content.clone()),
            }
        }
        let has_result = left.message.chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolResult { .. }));
        if left.message.role == Role::Tool && !has_result {
            left.message.role = Role::User;
        }
        left
    }

    fn line(&self, stored: &StoredMessage, chunk: usize) -> ReportLine {
        let fact = if self.flatten { Fact::RoundAsText } else { Fact::RoundRemoved };
        ReportLine::chunk(fact, stored, chunk)
    }
}

/// Whether it is a call of one of the caller's own tools.
fn is_callers(chunk: &Chunk) -> bool {
    matches!(chunk.body, Body::ToolCall { server: false, .. })
}

/// What was called, and what it gave.
fn record(call: Option<&Chunk>, output: &Output, is_error: bool) -> Vec<Chunk> {
    let Some(Body::ToolCall { name, arguments, .. }) = call.map(|call| &call.body) else { return Vec::new() };
    let gave = if is_error { "failed" } else { "gave" };
    let called = |what: &str| Chunk::text(format!("The tool {name} was called with {arguments} and {gave}{what}"));
    match output {
        Output::Text(text) if is_blank(text) => vec![called(" no output.")],
        Output::Text(text) => vec![called(&format!(":\n\n{text}"))],
        Output::Parts(parts) if parts.is_empty() => vec![called(" no output.")],
        Output::Parts(parts) => std::iter::once(called(":")).chain(parts.iter().map(chunk)).collect(),
    }
}

fn chunk(part: &Part) -> Chunk {
    let body = match &part.body {
        PartBody::Text { text } => Body::Text { text: text.clone(), annotations: None },
        PartBody::Json { json } => Body::Text { text: json.as_str().to_owned(), annotations: None },
        PartBody::Image(image) => Body::Image(image.clone()),
        PartBody::Audio(audio) => Body::Audio(audio.clone()),
        PartBody::File(file) => Body::File(file.clone()),
        PartBody::Unknown { kind } => Body::Unknown { kind: kind.clone() },
    };
    body.into()
}
