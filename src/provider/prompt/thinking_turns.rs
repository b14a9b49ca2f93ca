//! Prompts with the thinking of the last turns only.
//!
//! Thinking is left out in steps of as many turns as stay at least, so that a prompt changes once in so many turns, not with
//! each of them.

use std::borrow::Cow;
use std::collections::HashSet;

use super::window::blocks::UserTurns;
use crate::history::report::{Fact, Thought};
use crate::history::{ReportLine, Rule, StoredMessage};
use crate::model::Body;

/// Thinking that was left out: the indexes of its message and chunk in the log.
pub(crate) type Forgotten = HashSet<(u64, u32)>;

/// The messages as they are sent, without the thinking of the turns that are older. `messages` are the same, place by place,
/// as they were before. Thinking without a word or a signature stays in its place: each wire has its own way to do without.
pub(crate) fn without_thinking<'a>(
    messages: &[StoredMessage],
    sent: Cow<'a, [StoredMessage]>,
    turns: u64,
    report: &mut Vec<ReportLine>,
) -> (Cow<'a, [StoredMessage]>, Forgotten) {
    let end = end(messages, turns);
    let mut forgotten = Forgotten::new();
    let older = sent.get(..end).unwrap_or_default();
    if !older.iter().any(|stored| stored.message.chunks.iter().any(|chunk| is_thinking(&chunk.body))) {
        return (sent, forgotten);
    }
    let mut sent = sent.into_owned();
    for stored in sent.iter_mut().take(end) {
        for at in 0..stored.message.chunks.len() {
            let Some(chunk) = stored.message.chunks.get_mut(at).filter(|chunk| is_thinking(&chunk.body)) else {
                continue;
            };
            chunk.body = Body::Thinking { text: String::new(), signature: None, redacted: None };
            chunk.native = None;
            forgotten.insert((stored.index, stored.chunk_index(at)));
            let fact = Fact::ThinkingRemoved { why: Thought::OlderTurn, text: "" };
            report.push(ReportLine::chunk(fact, stored, at));
        }
    }
    (Cow::Owned(sent), forgotten)
}

/// Takes the lines of thinking out that is not there any more: it has one.
pub(crate) fn without_lines(report: &mut Vec<ReportLine>, forgotten: &Forgotten) {
    let is_forgotten =
        |line: &ReportLine| line.message_index.zip(line.chunk_index).is_some_and(|place| forgotten.contains(&place));
    report.retain(|line| line.rule != Rule::ThinkingLeftOut || !is_forgotten(line));
}

/// Thinking, also where it is a block of a provider's own.
fn is_thinking(body: &Body) -> bool {
    match body {
        Body::Thinking { .. } => true,
        Body::Opaque { kind, .. } => ["reasoning", "thinking"].iter().any(|begin| kind.starts_with(begin)),
        _ => false,
    }
}

/// Where the turns begin whose thinking stays.
fn end(messages: &[StoredMessage], turns: u64) -> usize {
    if turns == 0 {
        return messages.len();
    }
    let all = UserTurns::of(messages);
    let counts = all.user_turn_counts();
    let spare = counts.iter().sum::<u64>().saturating_sub(turns);
    let older = spare - spare % turns;
    let mut before = 0;
    for (turn, count) in all.ranges().iter().zip(counts) {
        if before + count > older {
            return turn.start;
        }
        before += count;
    }
    0
}
