//! A conversation as turns: what every wire has to say, before it is said in a wire's words.
//!
//! Here calls meet their answers, ids and names become the target's, arguments become objects, and each change gets its
//! line in the report.

use std::borrow::Cow;

use serde::Serialize;

use super::arguments;
use super::origin::Whose;
use super::tool_id::{IdRule, Ids, NameRule};
use crate::history::report::{Arguments, Fact, Surrogates, Taken, Unsigned};
use crate::history::{Calls, NOT_RUN, OUTCOME_UNKNOWN, ReportLine, Rule, Site, is_cut_off};
use crate::history::{MessageState, StoredMessage};
use crate::json::replace_lone_surrogates;
use crate::model::{Body, Chunk, Output, Role, was_mended};

/// A message to be said, and the answers to its calls that have to follow it.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) stored: &'a StoredMessage,
    /// The index of the chunk that it begins with, if none was taken out before: 0, or after the step before it.
    pub(crate) begins: u32,
    /// Never [`Role::Tool`]: what a tool message holds beside results is said by the user.
    pub(crate) role: Role,
    /// Of an assistant message.
    pub(crate) calls: Vec<Call<'a>>,
}

/// A tool call and its answer.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// The call's position in its message.
    pub(crate) chunk: usize,
    pub(crate) id: String,
    pub(crate) name: Cow<'a, str>,
    /// The JSON text of an object.
    pub(crate) arguments: Cow<'a, str>,
    pub(crate) signature: Option<&'a str>,
    pub(crate) answer: Reply<'a>,
}

/// What a call is answered.
#[derive(Debug)]
pub(crate) enum Reply<'a> {
    /// By a result, at this position of a message.
    Result { stored: &'a StoredMessage, chunk: usize, output: &'a Output, is_error: bool },
    /// In place of a result that is not there yet.
    Made(&'static str),
}

/// Who says a message, on wires that know two roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Speaker {
    User,
    Assistant,
}

/// The chunk that a block was made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) stored: &'a StoredMessage,
    pub(crate) chunk: usize,
}

impl<'a> Turn<'a> {
    /// The chunks that are said in the message itself, with their positions: all but calls and results.
    pub(crate) fn said(&self) -> impl Iterator<Item = (usize, &'a Chunk)> + use<'a> {
        let chunks = self.stored.message.chunks.iter().enumerate();
        chunks.filter(|(_, chunk)| !matches!(chunk.body, Body::ToolCall { .. } | Body::ToolResult { .. }))
    }
}

impl Turn<'_> {
    /// Whose the message is, for a target with these providers and this model.
    pub(crate) fn whose(&self, providers: &[&str], model: Option<&str>) -> Whose {
        Whose::of(&self.stored.message.metadata, providers, model)
    }

    /// Whether the message may be the target's own.
    pub(crate) fn is_by(&self, providers: &[&str], model: Option<&str>) -> bool {
        self.whose(providers, model).is_own()
    }
}

/// Said by nobody, on wires where the user begins and the assistant would.
pub(crate) const BEGINNING: &str = "(The conversation begins with the assistant.)";
/// Said by nobody, on wires where the user ends and the assistant said the last.
pub(crate) const BRIDGE: &str = "Continue.";
/// The same, where the model was to go on with what the assistant said.
pub(crate) const CONTINUE: &str = "Your last answer was cut off. Go on exactly where it ends, and repeat nothing.";

/// The turns of messages that were reconciled, for wires whose calls have no signatures. `ids`: the ids that the target takes
/// in a message.
pub(crate) fn turns<'a>(
    messages: &'a [StoredMessage],
    ids: impl Fn(&StoredMessage) -> IdRule,
    names: NameRule,
    report: &mut Vec<ReportLine>,
) -> Vec<Turn<'a>> {
    let turns = signed_turns(messages, ids, names, report);
    for turn in &turns {
        for call in turn.calls.iter().filter(|call| call.signature.is_some()) {
            let line = ReportLine::chunk(Fact::CallSignatureRemoved(Unsigned::NoPlace), turn.stored, call.chunk);
            report.push(line.with_tool_call_id(call_id(turn.stored, call.chunk)));
        }
    }
    turns
}

/// The turns of messages that were reconciled. What becomes of the calls' signatures is left to the wire, and to report.
pub(crate) fn signed_turns<'a>(
    messages: &'a [StoredMessage],
    ids: impl Fn(&StoredMessage) -> IdRule,
    names: NameRule,
    report: &mut Vec<ReportLine>,
) -> Vec<Turn<'a>> {
    let paired = Calls::pair(messages);
    let (mut used, mut turns) = (Ids::new(), Vec::new());
    // Which message of the assistant came last, and up to where: its steps are messages of their own.
    let mut last = (None, 0);
    for (position, stored) in messages.iter().enumerate() {
        note_mended(stored, report);
        if stored.state == MessageState::Streaming {
            report.push(ReportLine::message(Fact::StillWritten, stored));
        }
        let mut calls = Vec::new();
        for (chunk, content) in stored.message.chunks.iter().enumerate() {
            let Body::ToolCall { id, name, arguments, signature, .. } = &content.body else { continue };
            if stored.message.role != Role::Assistant {
                let fact = Fact::CallNotAssistants { role: stored.message.role };
                report.push(ReportLine::chunk(fact, stored, chunk).with_tool_call_id(id));
                continue;
            }
            let site = Site { message: position, chunk };
            if is_unended(messages, &paired, site, content) {
                report.push(ReportLine::chunk(Fact::CallUnended, stored, chunk).with_tool_call_id(id));
                continue;
            }
            let answer = answer(messages, &paired, site, report);
            let call = Call {
                chunk,
                id: used.next(id, ids(stored)),
                name: names.fit(name),
                arguments: whole(arguments, stored, chunk, report),
                signature: signature.as_deref(),
                answer,
            };
            note_changes(&call, stored, id, name, arguments, report);
            calls.push(call);
        }
        let role = if stored.message.role == Role::Tool { Role::User } else { stored.message.role };
        let begins = if last.0 == Some(stored.index) { last.1 } else { 0 };
        if begins > 0 || role == Role::Assistant {
            let end = stored.chunk_indexes.iter().max().map_or(0, |chunk| chunk.saturating_add(1));
            last = (Some(stored.index), begins.max(end));
        }
        let turn = Turn { stored, begins, role, calls };
        if stored.message.role == Role::Tool {
            for (chunk, _) in turn.said() {
                report.push(ReportLine::chunk(Fact::SaidByUser(Taken::ToolMessage), stored, chunk));
            }
        }
        turns.push(turn);
    }
    turns
}

/// Whether the provider ran the call itself, and its result is not there: nobody else can answer it.
fn is_unended(messages: &[StoredMessage], paired: &Calls, call: Site, content: &Chunk) -> bool {
    let Body::ToolCall { server: true, .. } = content.body else { return false };
    let result = paired.result(call).and_then(|site| messages.get(site.message));
    result.is_none_or(|stored| stored.state == MessageState::Synthetic)
}

fn answer<'a>(messages: &'a [StoredMessage], paired: &Calls, call: Site, report: &mut Vec<ReportLine>) -> Reply<'a> {
    let result = paired.result(call).and_then(|site| Some((messages.get(site.message)?, site.chunk)));
    if let Some((stored, chunk)) = result
        && let Some(Body::ToolResult { output, is_error, .. }) =
            stored.message.chunks.get(chunk).map(|chunk| &chunk.body)
    {
        return Reply::Result { stored, chunk, output, is_error: is_error.unwrap_or_default() };
    }
    let Some(stored) = messages.get(call.message) else { return Reply::Made(OUTCOME_UNKNOWN) };
    let text = if is_cut_off(stored, call.chunk) { NOT_RUN } else { OUTCOME_UNKNOWN };
    let line = ReportLine::chunk(Fact::ResultMade { rule: Rule::PendingAnswered, text }, stored, call.chunk);
    report.push(line.with_tool_call_id(call_id(stored, call.chunk)));
    Reply::Made(text)
}

/// The id that a call was stored by.
pub(crate) fn call_id(stored: &StoredMessage, chunk: usize) -> &str {
    match stored.message.chunks.get(chunk).map(|chunk| &chunk.body) {
        Some(Body::ToolCall { id, .. }) => id,
        _ => "",
    }
}

/// The arguments as the JSON text of an object, without half characters.
fn whole<'a>(arguments: &'a str, stored: &StoredMessage, chunk: usize, report: &mut Vec<ReportLine>) -> Cow<'a, str> {
    let object = arguments::object(arguments);
    match replace_lone_surrogates(&object) {
        Cow::Owned(mended) => {
            report.push(ReportLine::chunk(Fact::SurrogatesReplaced(Surrogates::Arguments), stored, chunk));
            Cow::Owned(mended)
        }
        Cow::Borrowed(_) => object,
    }
}

fn note_changes(
    call: &Call<'_>,
    stored: &StoredMessage,
    id: &str,
    name: &str,
    arguments: &str,
    report: &mut Vec<ReportLine>,
) {
    if call.name != name {
        let fact = Fact::NameChanged { from: name, to: &call.name };
        report.push(ReportLine::chunk(fact, stored, call.chunk).with_tool_call_id(id));
    }
    // Most arguments are as they were: only the others are looked at again.
    if call.arguments != arguments && arguments::object(arguments) != arguments {
        let fact = Fact::ArgumentsReplaced { why: Arguments::NotAnObject, now: &call.arguments };
        report.push(ReportLine::chunk(fact, stored, call.chunk).with_tool_call_id(id));
    }
}

fn note_mended(stored: &StoredMessage, report: &mut Vec<ReportLine>) {
    for (at, chunk) in stored.message.chunks.iter().enumerate() {
        if was_mended(chunk.native.as_ref()) {
            report.push(ReportLine::chunk(Fact::SurrogatesReplaced(Surrogates::Block), stored, at));
        }
    }
}
