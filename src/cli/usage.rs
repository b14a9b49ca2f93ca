//! Answers, the tokens that they took, what they cost, and errors.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use conversation_store::model::Timestamp;
use conversation_store::provider::TokenCounts;
use conversation_store::{Usage, UsageBy, UsageQuery};
use serde::{Deserialize, Serialize};

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::{Output, note};
use super::text;
use super::values::moment;

/// Count the tokens of the stored answers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo usage
  convo usage --by day,model --since 2026-11-01
  convo usage --by conversation --tag work
  convo usage --by error,model
  convo usage --by model --prices prices.json

Counts what providers wrote in `usage`, of the conversations of --owner, or of those without an owner. It reads all that were used \
since --since. Input is all that the model \
read: CACHED and WRITTEN are the parts of it that came from a cache and went to one. Output is all that it wrote: REASONING is a part \
of it. Answers that are hidden or were cut off count as well; what forks share counts once. UNCOUNTED are the answers without counts. \
ERRORS are those that are stored, by the code of the provider, and the answers that were interrupted.

The file of prices has what a million tokens cost, by the beginning of the model's name; the longest one counts. What it does not \
name costs as much as input, or is not priced:
  {\"claude-opus-4\": {\"input\": 15, \"cached\": 1.5, \"cache_written\": 18.75, \"output\": 75}}")]
pub(super) struct Args {
    /// What is counted apart: day, model, conversation, error
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "model", value_parser = by)]
    by: Vec<UsageBy>,
    /// Only answers from this day or time on
    #[arg(long, value_name = "DATE", value_parser = moment)]
    since: Option<Timestamp>,
    /// Only answers before this day or time
    #[arg(long, value_name = "DATE", value_parser = moment)]
    until: Option<Timestamp>,
    /// Only in conversations with this tag; `--tag A --tag B`: only those with both
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// A file of prices, JSON
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
}

/// What a million tokens cost.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    input: f64,
    cached: Option<f64>,
    cache_written: Option<f64>,
    output: f64,
}

impl Price {
    #[expect(clippy::cast_precision_loss, reason = "a price is no exact number")]
    fn of(&self, tokens: &TokenCounts) -> f64 {
        let plain = tokens.input.saturating_sub(tokens.cached).saturating_sub(tokens.cache_written);
        let parts = [
            (plain, self.input),
            (tokens.cached, self.cached.unwrap_or(self.input)),
            (tokens.cache_written, self.cache_written.unwrap_or(self.input)),
            (tokens.output, self.output),
        ];
        parts.iter().map(|(count, price)| *count as f64 * price / 1e6).sum()
    }
}

/// A row, with what it cost.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    usage: &'a Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let prices = args.prices.as_deref().map(prices).transpose()?;
    let store = location.read()?;
    let mut query = UsageQuery::new().with_owner(location.owner().unwrap_or_default()).with_by(args.by.iter().copied());
    (query.since, query.until) = (args.since, args.until);
    query.tags.clone_from(&args.tag);
    // A price is one of a model.
    if prices.is_some() && !query.by.contains(&UsageBy::Model) {
        query.by.push(UsageBy::Model);
    }
    let found = store.usage(&query)?;
    let rows: Vec<Row<'_>> = found.iter().map(|usage| Row { usage, cost: cost(prices.as_ref(), usage) }).collect();
    if output.is_text() {
        output.text(&table(&rows, args.prices.is_some()))?;
    } else {
        rows.iter().try_for_each(|row| output.json(row))?;
    }
    let unpriced: Vec<&str> =
        rows.iter().filter(|row| row.cost.is_none()).filter_map(|row| row.usage.model.as_deref()).collect();
    if prices.is_some() && !unpriced.is_empty() {
        note(&format!("no price for: {}", text::printable(&unpriced.join(", "))));
    }
    Ok(Exit::Done)
}

fn cost(prices: Option<&BTreeMap<String, Price>>, usage: &Usage) -> Option<f64> {
    let model = usage.model.as_deref()?;
    // They are in order: the last one that fits is the longest.
    let (_, price) = prices?.iter().rfind(|(name, _)| model.starts_with(name.as_str()))?;
    Some(price.of(&usage.tokens))
}

fn prices(file: &Path) -> Result<BTreeMap<String, Price>, Failure> {
    let read = fs::read_to_string(file).map_err(|error| Failure::failed(format!("{}: {error}", file.display())))?;
    serde_json::from_str(&read).map_err(|error| {
        Failure::usage(format!("{}: {error}", file.display()))
            .with_cure("expected {\"MODEL\": {\"input\": 3, \"output\": 15}}, for a million tokens")
    })
}

fn table(rows: &[Row<'_>], is_priced: bool) -> String {
    if rows.is_empty() {
        return "no answers and no errors".to_owned();
    }
    let heads = [
        "",
        "ANSWERS",
        "INPUT",
        "CACHED",
        "WRITTEN",
        "OUTPUT",
        "REASONING",
        "UNCOUNTED",
        "ERRORS",
        if is_priced { "COST" } else { "" },
    ];
    let row = |Row { usage, cost }: &Row<'_>| {
        let TokenCounts { input, cached, cache_written, output, reasoning, .. } = usage.tokens;
        let conversation = usage.conversation.map(|conversation| conversation.to_string());
        let model = usage.model.as_deref().map(|model| if model.is_empty() { "unknown" } else { model });
        let error = usage.error.as_deref().map(|error| if error.is_empty() { "no error" } else { error });
        let apart = [usage.day.as_deref(), model, conversation.as_deref(), error].into_iter().flatten();
        let apart = apart.map(text::printable).collect::<Vec<_>>().join("  ");
        let [answers, input, cached, cache_written, output, reasoning, uncounted, errors] =
            [usage.answers, input, cached, cache_written, output, reasoning, usage.uncounted, usage.errors]
                .map(|count| count.to_string());
        let cost = cost.map(|cost| format!("{cost:.4}")).unwrap_or_default();
        [
            if apart.is_empty() { "all".to_owned() } else { apart },
            answers,
            input,
            cached,
            cache_written,
            output,
            reasoning,
            uncounted,
            errors,
            cost,
        ]
    };
    text::table(&std::iter::once(heads.map(str::to_owned)).chain(rows.iter().map(row)).collect::<Vec<_>>())
}

fn by(text: &str) -> Result<UsageBy, &'static str> {
    text.parse().map_err(|_| "expected day, model, conversation or error")
}
