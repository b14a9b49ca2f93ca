//! What was said in the last days: tokens and answers by day, how long conversations are, errors by kind, tokens by model.
//!
//! Numbers as bars. What a bar shows is in words, too: columns have a table beside them, and rows are one.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use askama::Template;

use super::frame::{Frame, page};
use super::words::{Moment, count, grouped};
use crate::model::Timestamp;
use crate::provider::TokenCounts;
use crate::server::app::{Call, Outcome};
use crate::store::{Counting, MOST_READ, Usage, UsageBy, UsageQuery};

/// Days that can be chosen.
const SPANS: [u64; 3] = [7, 30, 90];
const DAY: Duration = Duration::from_secs(86_400);
/// The most kinds of errors that have a row of their own.
const KINDS: usize = 12;

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "usage.html")]
struct Page {
    frame: Frame,
    /// Each span, and whether it is shown.
    spans: Vec<(u64, bool)>,
    /// What was used before was not read.
    unread: Option<Moment>,
    entries: String,
    tokens: Columns,
    answers: Columns,
    /// The days that have something: answers, tokens, errors.
    days: Vec<(String, [String; 3])>,
    sizes: Option<Rows>,
    errors: Option<Rows>,
    models: Vec<Row>,
    sum: Option<Row>,
    /// How many answers have no counts, if there are some.
    uncounted: Option<String>,
}

struct Row {
    name: String,
    answers: String,
    /// Input, of it cached, output, of it reasoning.
    counts: [String; 4],
}

impl Row {
    fn new(name: &str, answers: u64, tokens: &TokenCounts) -> Self {
        let TokenCounts { input, cached, output, reasoning, .. } = *tokens;
        Self {
            name: name.to_owned(),
            answers: grouped(answers),
            counts: [input, cached, output, reasoning].map(grouped),
        }
    }
}

/// What a day has.
#[derive(Clone, Copy, Default)]
struct Counts {
    answers: u64,
    tokens: u64,
    errors: u64,
}

/// What rows of days, models and kinds of errors come to.
#[derive(Default)]
struct Sums {
    days: BTreeMap<String, Counts>,
    models: BTreeMap<String, (u64, TokenCounts)>,
    errors: HashMap<String, u64>,
    uncounted: u64,
}

impl Sums {
    fn of(rows: Vec<Usage>) -> Self {
        let mut sums = Self::default();
        for Usage { day, model, error, answers, uncounted, errors, tokens, .. } in rows {
            let day = sums.days.entry(day.unwrap_or_default()).or_default();
            day.answers += answers + uncounted;
            day.tokens = day.tokens.saturating_add(tokens.input).saturating_add(tokens.output);
            day.errors += errors;
            sums.uncounted += uncounted;
            if errors > 0 {
                *sums.errors.entry(error.unwrap_or_default()).or_default() += errors;
            }
            if answers > 0 {
                let (known, sum) = sums.models.entry(model.unwrap_or_default()).or_default();
                *known += answers;
                sum.add(&tokens);
            }
        }
        sums
    }

    /// The kinds of errors, the most frequent first.
    fn kinds(&self) -> Vec<(String, u64)> {
        let mut kinds: Vec<_> = self.errors.iter().map(|(kind, count)| (kind.clone(), *count)).collect();
        kinds.sort_unstable_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        let others: u64 = kinds.iter().skip(KINDS).map(|(_, count)| *count).sum();
        kinds.truncate(KINDS);
        kinds.extend((others > 0).then(|| ("others".to_owned(), others)));
        kinds
    }

    /// The models by name, and what they come to if there are several.
    fn models(&self) -> (Vec<Row>, Option<Row>) {
        let mut all = (0, TokenCounts::default());
        for (answers, tokens) in self.models.values() {
            all.0 += answers;
            all.1.add(tokens);
        }
        let rows = self.models.iter().map(|(model, (answers, tokens))| {
            Row::new(if model.is_empty() { "unknown" } else { model }, *answers, tokens)
        });
        let rows: Vec<_> = rows.collect();
        let sum = (rows.len() > 1).then(|| Row::new("All", all.0, &all.1));
        (rows, sum)
    }
}

pub(super) fn usage(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["days"])?;
    let days = call.query.number("days", 1, 366)?.unwrap_or(30);
    let today = Timestamp::now();
    let first = back(today, days - 1).day();
    // From the beginning of the first day on.
    let since = Timestamp::of_day_or_time(&first).unwrap_or(today);
    let query = UsageQuery::new().with_owner(&*call.caller.owner).with_since(since);
    let query = query.with_by([UsageBy::Day, UsageBy::Model, UsageBy::Error]);
    let mut sizes = Sizes::default();
    let Counting { rows, cut } = call.store().usage_within(&query, MOST_READ, &mut |item| sizes.add(item.messages))?;
    let sums = Sums::of(rows);
    let shown: Vec<String> = (0..days).rev().map(|ago| back(today, ago).day()).collect();
    let by_day = |of: fn(&Counts) -> u64| {
        shown.iter().map(|day| (day.clone(), sums.days.get(day).map_or(0, of))).collect::<Vec<_>>().into_iter()
    };
    let kinds = sums.kinds();
    let (models, sum) = sums.models();
    let shown = Page {
        frame: Frame::of(call),
        spans: SPANS.map(|span| (span, span == days)).to_vec(),
        unread: cut.map(|(_, unread)| unread.last_activity.into()),
        entries: grouped(MOST_READ),
        tokens: Columns::new("Tokens", by_day(|counts| counts.tokens)),
        answers: Columns::new("Answers", by_day(|counts| counts.answers)),
        days: sums
            .days
            .iter()
            .map(|(day, counts)| (day.clone(), [counts.answers, counts.tokens, counts.errors].map(grouped)))
            .collect(),
        sizes: (sizes.classes().next().is_some())
            .then(|| Rows::new("sizes", "Sizes of conversations", ["Messages", "Conversations"], sizes.classes())),
        errors: (!kinds.is_empty())
            .then(|| Rows::new("errors", "Errors by kind", ["Kind", "Errors"], kinds.into_iter())),
        models,
        sum,
        uncounted: (sums.uncounted > 0).then(|| count(sums.uncounted, "answer")),
    };
    page(200, &shown)
}

fn back(time: Timestamp, days: u64) -> Timestamp {
    let micros = DAY.as_micros().saturating_mul(u128::from(days));
    Timestamp::from_micros(time.as_micros().saturating_sub(i64::try_from(micros).unwrap_or(i64::MAX)))
}

/// The height of columns, the width of rows, and the width of a column's place, in their own units.
const LENGTH: u64 = 100;
const STEP: u64 = 10;

/// Bars side by side: one for each day.
#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "columns.html")]
struct Columns {
    /// What is counted.
    title: &'static str,
    bars: Vec<Bar>,
    width: u64,
    most: String,
}

struct Bar {
    name: String,
    count: String,
    at: u64,
    from: u64,
    length: u64,
}

impl Columns {
    pub(super) fn new(title: &'static str, counts: impl Iterator<Item = (String, u64)>) -> Self {
        let (bars, most) = bars(counts);
        let width = bars.last().map_or(0, |bar| bar.at) + STEP;
        Self { title, bars, width, most: grouped(most) }
    }
}

/// A table with a bar in each row.
#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "rows.html")]
struct Rows {
    /// A name in the page.
    id: &'static str,
    title: &'static str,
    /// What a row is, and what is counted.
    heads: [&'static str; 2],
    bars: Vec<Bar>,
}

impl Rows {
    pub(super) fn new(
        id: &'static str,
        title: &'static str,
        heads: [&'static str; 2],
        counts: impl Iterator<Item = (String, u64)>,
    ) -> Self {
        Self { id, title, heads, bars: bars(counts).0 }
    }
}

/// The bars, and the largest count; at least 1.
fn bars(counts: impl Iterator<Item = (String, u64)>) -> (Vec<Bar>, u64) {
    let counts: Vec<_> = counts.collect();
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let bar = |(at, (name, count)): (u64, (String, u64))| {
        // What is not nothing can be seen.
        let length =
            u64::try_from((u128::from(count) * u128::from(LENGTH)).div_ceil(u128::from(most))).unwrap_or(LENGTH);
        Bar { name, count: grouped(count), at: at * STEP, from: LENGTH.saturating_sub(length), length }
    };
    ((0..).zip(counts).map(bar).collect(), most)
}

/// How many there are of each size, by powers of two: 1, 2 to 3, 4 to 7 and so on.
#[derive(Debug, Default)]
struct Sizes(Vec<u64>);

impl Sizes {
    pub(super) fn add(&mut self, size: u64) {
        let class = usize::try_from(u64::BITS - size.leading_zeros()).unwrap_or_default();
        if self.0.len() <= class {
            self.0.resize(class + 1, 0);
        }
        if let Some(count) = self.0.get_mut(class) {
            *count += 1;
        }
    }

    /// The classes from the first that has some to the last one, in words, with their counts.
    fn classes(&self) -> impl Iterator<Item = (String, u64)> {
        let counts = self.0.iter().enumerate().skip_while(|(_, count)| **count == 0);
        counts.map(|(class, count)| {
            let name = match class {
                0 => "none".to_owned(),
                1 => "1".to_owned(),
                _ => {
                    let first = 1_u128 << (class - 1);
                    let last = u64::try_from(first * 2 - 1).unwrap_or(u64::MAX);
                    format!("{} to {}", grouped(u64::try_from(first).unwrap_or(u64::MAX)), grouped(last))
                }
            };
            (name, *count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_classes_by_powers_of_two() {
        let mut sizes = Sizes::default();
        assert_eq!(sizes.classes().count(), 0);
        [1, 2, 3, 4, 1_500, 1_500].into_iter().for_each(|size| sizes.add(size));
        let classes: Vec<_> = sizes.classes().filter(|(_, count)| *count > 0).collect();
        let wanted = [("1", 1), ("2 to 3", 2), ("4 to 7", 1), ("1,024 to 2,047", 2)];
        assert_eq!(classes, wanted.map(|(name, count)| (name.to_owned(), count)));
        assert_eq!(sizes.classes().count(), 11);
        sizes.add(0);
        sizes.add(u64::MAX);
        assert_eq!(sizes.classes().next(), Some(("none".to_owned(), 1)));
        assert!(sizes.classes().last().unwrap().0.ends_with("to 18,446,744,073,709,551,615"));
    }

    #[test]
    fn what_is_not_nothing_can_be_seen() {
        let (bars, most) = bars([0, 1, u64::MAX].into_iter().map(|count| (String::new(), count)));
        assert_eq!(most, u64::MAX);
        assert_eq!(bars.iter().map(|bar| bar.length).collect::<Vec<_>>(), [0, 1, 100]);
    }
}
