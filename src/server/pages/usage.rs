//! The tokens that answers took, by day and by model.

use std::collections::BTreeMap;
use std::time::Duration;

use askama::Template;

use super::frame::{Frame, page};
use super::words::grouped;
use crate::model::Timestamp;
use crate::provider::TokenCounts;
use crate::server::app::{Call, Outcome};
use crate::store::{Usage, UsageBy, UsageQuery};

/// Days that can be chosen.
const SPANS: [u64; 3] = [7, 30, 90];
const DAY: Duration = Duration::from_secs(86_400);
/// The height of the plot and the width of a day's place in it, in its own units.
const HEIGHT: u64 = 100;
const STEP: u64 = 10;

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "usage.html")]
struct Page {
    frame: Frame,
    /// Each span, and whether it is shown.
    spans: Vec<(u64, bool)>,
    bars: Vec<Bar>,
    width: u64,
    most: String,
    models: Vec<Row>,
    sum: Option<Row>,
}

/// A day in the plot.
struct Bar {
    day: String,
    tokens: String,
    x: u64,
    y: u64,
    height: u64,
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

pub(super) fn usage(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["days"])?;
    let days = call.query.number("days", 1, 366)?.unwrap_or(30);
    let today = Timestamp::now();
    let first = back(today, days - 1).day();
    // From the beginning of the first day on.
    let since = Timestamp::of_day_or_time(&first).unwrap_or(today);
    let query = UsageQuery::new().with_owner(&*call.caller.owner).with_since(since);
    let rows = call.store().usage(&query.with_by([UsageBy::Day, UsageBy::Model]))?;
    let (mut by_day, mut by_model) = (BTreeMap::new(), BTreeMap::new());
    for Usage { day, model, answers, tokens, .. } in rows {
        let sum: &mut u64 = by_day.entry(day.unwrap_or_default()).or_default();
        *sum = sum.saturating_add(tokens.input).saturating_add(tokens.output);
        let (known, sum): &mut (u64, TokenCounts) = by_model.entry(model.unwrap_or_default()).or_default();
        *known += answers;
        sum.add(&tokens);
    }
    let most = by_day.values().copied().max().unwrap_or(0).max(1);
    let bar = |(at, ago)| {
        let day = back(today, ago).day();
        let tokens: u64 = by_day.get(&day).copied().unwrap_or(0);
        // What is not nothing can be seen.
        let height = tokens.saturating_mul(HEIGHT).div_ceil(most);
        Bar { day, tokens: grouped(tokens), x: at * STEP, y: HEIGHT.saturating_sub(height), height }
    };
    let mut all = (0, TokenCounts::default());
    for (answers, tokens) in by_model.values() {
        all.0 += answers;
        all.1.add(tokens);
    }
    let models = by_model
        .iter()
        .map(|(model, (answers, tokens))| Row::new(if model.is_empty() { "unknown" } else { model }, *answers, tokens));
    let models: Vec<_> = models.collect();
    let shown = Page {
        frame: Frame::of(call),
        spans: SPANS.map(|span| (span, span == days)).to_vec(),
        bars: (0..).zip((0..days).rev()).map(bar).collect(),
        width: days * STEP,
        most: grouped(most),
        sum: (models.len() > 1).then(|| Row::new("All", all.0, &all.1)),
        models,
    };
    page(200, &shown)
}

fn back(time: Timestamp, days: u64) -> Timestamp {
    let micros = DAY.as_micros().saturating_mul(u128::from(days));
    Timestamp::from_micros(time.as_micros().saturating_sub(i64::try_from(micros).unwrap_or(i64::MAX)))
}
