//! What a provider's error means.

use conversation_store::provider::{Explanation, explain};

use super::failure::{Exit, Failure, Outcome};
use super::output::Output;
use super::style::{BOLD, DIM};
use super::text::{self, Layout};

/// Explain a provider's error, or a rule: the cause, the cure, and the sources
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo explain \"messages.1: tool_use ids were found without tool_result blocks immediately after\"
  convo explain AN-10
  convo explain AN-10 --json | jq -r .cure

TEXT is the text of an error as a provider gives it, or the id of a rule as `convo check` prints it. All rules that \
lead to the text are printed. `convo check` finds the place in the request, and `convo repair` mends it.

Exit code 1 if no known text is in it.")]
pub(super) struct Args {
    /// The text of the error, or the id of a rule
    #[arg(required = true, value_name = "TEXT")]
    words: Vec<String>,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Outcome {
    let found = explain(&args.words.join(" "));
    for explanation in &found {
        output.result(explanation, || shown(explanation))?;
    }
    if found.is_empty() {
        return Err(Failure::finding("not_found", "no known refusal has these words")
            .with_hint("save the request to a file: `convo check` names the rules that it breaks"));
    }
    Ok(Exit::Done)
}

fn shown(explanation: &Explanation) -> String {
    let Explanation { rule, level, target, cause, cure, source, .. } = explanation;
    let layout = Layout::folded("--json has all of it");
    let part = |head: &str, words: &str| text::wrap(&format!("{head}: {words}"), "    ", layout);
    format!("{BOLD}{rule}{BOLD:#}  {level}  {DIM}{target}{DIM:#}\n")
        + &part("cause", cause)
        + &part("cure", cure)
        + &part("sources", source)
}
