use conversation_store::{Health, Size};
use serde::Serialize;

use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::Output;
use super::text;

const EXAMPLES: &str = "\
Examples:
  convo health
  convo health --json | jq .size

Opens the store to read it, and prints what is wrong with it as a whole, and how much it holds. Reads no conversation: \
verify does. The rows of a store in PostgreSQL are those of the database's statistics. Exit code 1 if anything is wrong.";

/// Show whether the store is well, and how much it holds
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    health: Health,
    size: Size,
}

pub(super) fn run(_: &Args, location: &Location, output: &mut Output) -> Outcome {
    let store = location.read()?;
    let shown = Shown { health: store.health(), size: store.size()? };
    output.result(&shown, || text(&shown.size))?;
    Ok(if shown.health == Health::default() { Exit::Done } else { Exit::Findings })
}

/// What is wrong, the opening has reported.
fn text(size: &Size) -> String {
    let mut out = text::count(size.conversations, "conversation");
    if let Some(bytes) = size.bytes {
        out.push_str(&format!(", {}", text::count(bytes, "byte")));
    }
    if !size.tables.is_empty() {
        let titles = ["table", "rows", "bytes"].map(str::to_owned);
        let rows =
            size.tables.iter().map(|table| [table.name.clone(), table.rows.to_string(), table.bytes.to_string()]);
        let rows: Vec<_> = std::iter::once(titles).chain(rows).collect();
        out.push_str(&format!("\n\n{}", text::titled_table(&rows).trim_end()));
    }
    out
}
