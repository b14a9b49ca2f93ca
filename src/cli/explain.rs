//! What a provider's error means.

use conversation_store::Rule;
use conversation_store::provider::{Explanation, explain};
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::output::Output;
use super::text::{self, BOLD, DIM, Layout};

/// Explain a provider's error, a rule, or a line of a report: the cause, the cure, and the sources
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo explain \"messages.1: tool_use ids were found without tool_result blocks immediately after\"
  convo explain AN-10
  convo explain AN-10 --json | jq -r .cure
  convo explain call_as_text

TEXT is the text of an error as a provider gives it, or the id of a rule as `convo check` prints it. All rules that \
lead to the text are printed. Or it is a line of the report of a prompt or a repair, or the rule in brackets at its end: what \
that rule does is printed. `next` is the command to type next: `convo check` finds the place in the request, and `convo repair` \
mends it.

Exit code 1 if no known text is in it.")]
pub(super) struct Args {
    /// The text of the error, the id of a rule, or a line of a report
    #[arg(required = true, value_name = "TEXT")]
    words: Vec<String>,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Outcome {
    let text = args.words.join(" ");
    if let Some(reported) = Reported::of(&text) {
        output.result(&reported, || shown_reported(&reported))?;
        return Ok(Exit::Done);
    }
    let found = explain(&text);
    for explanation in &found {
        let explained = Explained { explanation, next: next(&explanation.target) };
        output.result(&explained, || shown(&explained))?;
    }
    if found.is_empty() {
        return Err(Failure::finding("not_found", "no known refusal has these words")
            .with_cure("save the request to a file: `convo check` names the rules that it breaks"));
    }
    Ok(Exit::Done)
}

/// What a rule says, and the command to type next.
#[derive(Serialize)]
struct Explained<'a> {
    #[serde(flatten)]
    explanation: &'a Explanation,
    next: String,
}

/// FILE is the request that was refused.
fn next(target: &str) -> String {
    format!("convo repair FILE --for {target} > accepted.json")
}

/// A rule of reports.
#[derive(Serialize)]
struct Reported {
    rule: String,
    about: &'static str,
    next: &'static str,
}

/// Where a rule of reports was applied.
const WHERE: &str = "convo prompt CONVERSATION --for TARGET --report";

impl Reported {
    /// The rule that a text is, or names as the lines of reports do.
    fn of(text: &str) -> Option<Self> {
        let is_named = |rule: &Rule| text == rule.name() || text.contains(&format!("({})", rule.name()));
        Rule::ALL.iter().find(|rule| is_named(rule)).map(|rule| Self {
            rule: rule.name(),
            about: rule.about(),
            next: WHERE,
        })
    }
}

fn shown_reported(Reported { rule, about, next }: &Reported) -> String {
    format!("{BOLD}{rule}{BOLD:#}  {DIM}of reports{DIM:#}\n") + &part("what it does", about) + &part("next", next)
}

fn part(head: &str, words: &str) -> String {
    text::wrap(&format!("{head}: {words}"), "    ", Layout::folded("--json has all of it"))
}

fn shown(Explained { explanation, next }: &Explained<'_>) -> String {
    let Explanation { rule, level, target, cause, cure, source, .. } = explanation;
    format!("{BOLD}{rule}{BOLD:#}  {level}  {DIM}{target}{DIM:#}\n")
        + &part("cause", cause)
        + &part("cure", cure)
        + &part("next", next)
        + &part("sources", source)
}
