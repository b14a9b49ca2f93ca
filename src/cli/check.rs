use std::path::PathBuf;

use conversation_store::provider::{self, Finding};

use super::failure::{Exit, Outcome};
use super::output::{self, Output};
use super::prompt::Aim;
use super::request::{self, Request};
use super::style::{BOLD, DIM, ERROR, WARNING};
use super::text::{self, Layout};

const INDENT: &str = "    ";

const EXAMPLES: &str = "\
Examples:
  convo check --for openai-chat request.json
  convo prompt chat-42 --for openai-chat | convo check --for openai-chat
  convo check --for openai-chat/deepseek request.json --json | jq -r .place

The input is a whole request or the array of its messages. Each finding has its place, the rule, the problem, the \
cure, and a level: hard (documented or recorded as refused), hard? (reported as refused), soft (accepted with a loss), \
unknown (a field, type or value that the rules do not know).

Exit code 1 if the provider would refuse the request: there is a finding of level hard or hard?.";

/// Check a request: where a provider would refuse it, why, and what to do
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    aim: Aim,
    /// The request, JSON; - for stdin
    #[arg(default_value = "-")]
    file: PathBuf,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Outcome {
    let target = args.aim.target;
    let request = request::read(&args.file)?;
    let Request { name, json } = &request;
    let findings = provider::check(target, json)
        .map_err(|error| request::not_json(name, error.line, error.column, &error.message))?;
    let layout = Layout::folded("--json has all of it");
    for finding in &findings {
        output.result(finding, || text(finding, layout))?;
    }
    let hard = findings.iter().filter(|finding| finding.level.is_refused()).count();
    output.flush()?;
    if !output.is_json() {
        let verdict = match (findings.len(), hard) {
            (0, _) => "no findings".to_owned(),
            (all, 0) => format!("{}, none of them hard: it is accepted", text::count(all, "finding")),
            (all, hard) => format!("{}, {hard} of them hard: it is refused", text::count(all, "finding")),
        };
        output::note(&format!("{name}: {target}: {verdict}"));
    }
    request::note_other_wire(target, &request, "--for");
    Ok(if hard > 0 { Exit::Findings } else { Exit::Done })
}

/// `messages[1]  hard  AN-10`, then the problem and the cure.
fn text(finding: &Finding, layout: Layout) -> String {
    let Finding { rule, level, place, problem, cure, .. } = finding;
    let style = if level.is_refused() { ERROR } else { WARNING };
    let place = if place.is_empty() { "the request" } else { place };
    let head = format!("{BOLD}{}{BOLD:#}  {style}{level}{style:#}  {DIM}{rule}{DIM:#}\n", text::printable(place));
    head + &text::wrap(problem, INDENT, layout) + &text::wrap(&format!("cure: {cure}"), INDENT, layout)
}
