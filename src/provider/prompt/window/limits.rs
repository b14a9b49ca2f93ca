//! The messages of the window that the options ask for.

use std::borrow::Cow;
use std::ops::Range;

use super::blocks::{UserTurns, is_kept, start};
use super::measure::Measure;
use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::history::report::Fact;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::target::Target;

/// Where the window begins: the position of its first message. `sent` are the messages as the options want them, place
/// by place: they are what is measured.
pub(crate) fn begin(
    target: Target,
    messages: &[StoredMessage],
    sent: &[StoredMessage],
    options: &PromptOptions,
    report: &mut Vec<ReportLine>,
) -> usize {
    let PromptOptions { last_messages, last_turns, max_tokens, .. } = options;
    if [last_messages, last_turns, max_tokens].iter().all(|limit| limit.is_none()) {
        return 0;
    }
    let turns = UserTurns::of(messages);
    let mut window = Window { turns: turns.ranges(), messages, first: 0, report };
    if let Some(limit) = last_messages {
        window.limit(&turns.message_counts(), *limit, 0, "messages");
    }
    if let Some(limit) = last_turns {
        window.limit(&turns.user_turn_counts(), *limit, 0, "user turns");
    }
    if let Some(limit) = max_tokens {
        let measure = Measure::new(target, options);
        let tokens = |turn: &Range<usize>| measure.turn(sent.get(turn.clone()).unwrap_or_default());
        let weights: Vec<u64> = turns.ranges().iter().map(tokens).collect();
        window.limit(&weights, *limit, Measure::always(sent, options), "tokens");
    }
    window.begin()
}

/// The messages from there on, and those that are in every window; those without chunks are left out.
pub(crate) fn held(messages: Cow<'_, [StoredMessage]>, begin: usize) -> Cow<'_, [StoredMessage]> {
    let is_held =
        |at: usize, stored: &StoredMessage| (at >= begin || is_kept(stored)) && !stored.message.chunks.is_empty();
    if messages.iter().enumerate().all(|(at, stored)| is_held(at, stored)) {
        return messages;
    }
    let held = messages.iter().enumerate().filter(|(at, stored)| is_held(*at, stored));
    Cow::Owned(held.map(|(_, stored)| stored.clone()).collect())
}

struct Window<'a> {
    turns: &'a [Range<usize>],
    messages: &'a [StoredMessage],
    /// The number of the first turn that it holds.
    first: usize,
    report: &'a mut Vec<ReportLine>,
}

impl Window<'_> {
    /// Makes it hold no more than that, besides `always`.
    fn limit(&mut self, weights: &[u64], limit: u64, always: u64, unit: &'static str) {
        let start = start(weights, limit.saturating_sub(always));
        self.first = self.first.max(start.turn);
        if start.fits && always <= limit {
            return;
        }
        let Some(first) = self.turns.last().and_then(|turn| self.messages.get(turn.start)) else { return };
        let held = always + weights.last().copied().unwrap_or_default();
        self.report.push(ReportLine::message(Fact::WindowExceeded { held, limit, unit }, first));
    }

    fn begin(&mut self) -> usize {
        let begin = self.turns.get(self.first).map_or(0, |turn| turn.start);
        let Some(first) = self.messages.get(begin) else { return begin };
        let before = self.messages.get(..begin).unwrap_or_default().iter().filter(|stored| !is_kept(stored));
        // What is before the window and is of a later index are results, beside their calls.
        let indexes = || before.clone().map(|stored| stored.index).filter(|index| *index < first.index);
        for stored in before.clone().filter(|stored| stored.index >= first.index) {
            let lines = (0..stored.message.chunks.len())
                .map(|chunk| ReportLine::chunk(Fact::ResultOutsideWindow, stored, chunk));
            self.report.extend(lines);
        }
        if let (Some(from), Some(to)) = (indexes().min(), indexes().max()) {
            self.report.push(ReportLine::message(Fact::OutsideWindow { from, to }, first));
        }
        begin
    }
}
