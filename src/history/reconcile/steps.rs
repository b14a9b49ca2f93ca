//! An assistant's message that holds the results of its own calls has several steps in one: what comes after a result
//! was said after it, by a model that had read it.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use super::super::group::{MessageState, StoredMessage};
use super::super::report::ReportLine;
use super::removals::is_content;
use crate::model::{Body, Chunk, Role};

/// Each step is a message of its own. What a provider ran itself stays within its message, as the provider sent it.
pub(super) fn part(messages: Vec<StoredMessage>, _: &mut Vec<ReportLine>) -> Vec<StoredMessage> {
    match parted(&messages, |call| matches!(call.body, Body::ToolCall { server: false, .. })) {
        Cow::Borrowed(_) => messages,
        Cow::Owned(parted) => parted,
    }
}

/// The messages with their steps apart, as far as `parts` of a call says that its result ends one.
pub(crate) fn parted(messages: &[StoredMessage], parts: impl Fn(&Chunk) -> bool) -> Cow<'_, [StoredMessage]> {
    let steps: Vec<Vec<Range<usize>>> = messages.iter().map(|stored| steps(stored, &parts)).collect();
    if steps.iter().all(Vec::is_empty) {
        return Cow::Borrowed(messages);
    }
    let mut out = Vec::with_capacity(messages.len());
    for (stored, steps) in messages.iter().zip(steps) {
        let Some((last, before)) = steps.split_last() else {
            out.push(stored.clone());
            continue;
        };
        out.extend(before.iter().map(|step| {
            let mut ended = stored.pick(step.clone());
            // The last step has how the message ended, and what it cost.
            ended.state = MessageState::Complete;
            ended.message.finish_reason = None;
            ended.message.usage = None;
            ended
        }));
        out.push(stored.pick(last.clone()));
    }
    Cow::Owned(out)
}

/// The chunks of each step; none where there is but one. A step ends after the results of its calls, where the assistant
/// says or asks something more.
fn steps(stored: &StoredMessage, parts: impl Fn(&Chunk) -> bool) -> Vec<Range<usize>> {
    let chunks = &stored.message.chunks;
    let mut steps = Vec::new();
    let holds_results = || chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolResult { .. }));
    if stored.message.role != Role::Assistant || !holds_results() {
        return steps;
    }
    // The calls of each id without a result, in order, and whether they part.
    let (mut start, mut open, mut answered): (_, HashMap<&str, VecDeque<bool>>, _) = (0, HashMap::new(), false);
    for (at, chunk) in chunks.iter().enumerate() {
        if let Body::ToolResult { tool_call_id, .. } = &chunk.body {
            answered |= open.get_mut(tool_call_id.as_str()).and_then(VecDeque::pop_front).unwrap_or_default();
            continue;
        }
        if answered && is_content(chunk) {
            steps.push(start..at);
            (start, answered, open) = (at, false, HashMap::new());
        }
        if let Body::ToolCall { id, .. } = &chunk.body {
            open.entry(id).or_default().push_back(parts(chunk));
        }
    }
    if !steps.is_empty() {
        steps.push(start..chunks.len());
    }
    steps
}
