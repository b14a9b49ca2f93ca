use conversation_store::provider::{DIALECTS, WIRES};
use serde::Serialize;

use super::failure::{Exit, Outcome};
use super::output::Output;
use super::text;

const EXAMPLES: &str = "\
Examples:
  convo targets
  convo targets --json | jq -r .target

A target is a wire (a format of requests), or a wire and a dialect of it (what one server does differently). Without a \
dialect you get the vendor's own API. --for and --from take any of them. src/docs/targets.md describes what each dialect \
changes.";

/// List the targets that --for and --from take
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {}

/// A target, with the rules that it is checked by in addition to those of its wire.
#[derive(Serialize)]
struct Shown {
    target: String,
    wire: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dialect: Option<&'static str>,
    about: &'static str,
    rules: usize,
}

pub(super) fn run(_: &Args, output: &mut Output) -> Outcome {
    let all = all();
    if output.is_text() {
        output.text(&text(&all))?;
    } else {
        for target in &all {
            output.json(target)?;
        }
    }
    Ok(Exit::Done)
}

/// Each wire, followed by its dialects.
fn all() -> Vec<Shown> {
    let of = |wire: &'static str| {
        let dialects = DIALECTS.iter().filter(move |dialect| dialect.wire == wire);
        dialects.map(move |dialect| Shown {
            target: format!("{wire}/{}", dialect.name),
            wire,
            dialect: Some(dialect.name),
            about: dialect.about,
            rules: dialect.rules.len(),
        })
    };
    let targets = WIRES.iter().flat_map(|wire| {
        let (target, rules) = (wire.name.to_owned(), wire.rules.len());
        let plain = Shown { target, wire: wire.name, dialect: None, about: wire.about, rules };
        std::iter::once(plain).chain(of(wire.name))
    });
    targets.collect()
}

fn text(all: &[Shown]) -> String {
    let row = |shown: &Shown| {
        let rules = if shown.dialect.is_some() { format!("+{}", shown.rules) } else { shown.rules.to_string() };
        [shown.target.clone(), rules, shown.about.to_owned()]
    };
    let heads = ["TARGET", "RULES", "ABOUT"].map(str::to_owned);
    text::titled_table(&std::iter::once(heads).chain(all.iter().map(row)).collect::<Vec<_>>())
}
