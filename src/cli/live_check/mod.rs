//! A check against a provider itself, with the user's own key. Nothing else of the program makes requests to providers, and no
//! test of the project makes one: the tests run it against servers of their own.

mod histories;
mod provider;

use conversation_store::model::Json;
use conversation_store::provider::{PromptOptions, Tool, render};
use serde::Serialize;

use self::histories::History;
use self::provider::{Answered, Provider};
use super::failure::{Exit, Failure, Outcome};
use super::output::{self, Output};
use super::prompt::Aim;
use super::text::{self, BOLD, DIM, ERROR, Layout, WARNING};

/// Send ten small histories to a provider with your own key, and print which it accepts
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ANTHROPIC_API_KEY=... convo live-check --for anthropic --model claude-haiku-4-5
  convo live-check --for openai-chat/vllm --model m --url http://localhost/v1/chat/completions

Each history has broken a product: a call without a result, arguments that were cut off, and others. Each is rendered \
for the target and sent, with a tool and a question that has a short answer. You pay for ten small requests. The key is \
read from the variable that the provider's own clients use (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY and so \
on), or from the one that --key-env names; of other servers from CONVO_PROVIDER_KEY, if it is set. It is never printed.

The authors of this program have not run it against any provider.

Exit code 1 if a history was not accepted.")]
pub(super) struct Args {
    #[command(flatten)]
    aim: Aim,
    /// The model
    #[arg(long)]
    model: String,
    /// Where requests go, if it is not the provider's own address; MODEL in it is the model
    #[arg(long)]
    url: Option<String>,
    /// The environment variable that holds the key
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,
}

/// What became of a history.
#[derive(Serialize)]
struct Checked {
    history: &'static str,
    /// Accepted, refused, or neither: the provider did not judge it.
    outcome: &'static str,
    status: u16,
    /// Lines of the prompt's report: what was repaired.
    repaired: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Outcome {
    let target = args.aim.target;
    let provider = Provider::new(target, &args.model, args.url.as_deref(), args.key_env.as_deref())?;
    output::note(&format!("sending to {}", provider.url()));
    let parameters = Json::new(r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let tool = Tool::new(histories::TOOL, parameters).with_description("Reads a file.");
    let options = PromptOptions::new().with_model(&*args.model).with_tools([tool]);
    let (mut accepted, mut all) = (0, 0);
    for History { name, conversation } in histories::all() {
        let prompt = render(target, &conversation, &options)?;
        let Answered { status, error } = provider.send(prompt.request.get())?;
        let outcome = match status {
            200..300 => "accepted",
            400 | 413 | 422 => "refused",
            401 | 403 => {
                let why = error.unwrap_or_default();
                return Err(Failure::failed(format!("the provider does not take the key ({status}): {why}")));
            }
            _ => "not judged",
        };
        all += 1;
        accepted += usize::from(outcome == "accepted");
        let checked = Checked { history: name, outcome, status, repaired: prompt.report.len(), error };
        output.result(&checked, || shown(&checked))?;
        output.flush()?;
    }
    if !output.is_json() {
        output::note(&format!("{target}: {accepted} of {all} accepted"));
    }
    Ok(if accepted == all { Exit::Done } else { Exit::Findings })
}

fn shown(checked: &Checked) -> String {
    let Checked { history, outcome, status, repaired, error } = checked;
    let mark = match *outcome {
        "accepted" => format!("{BOLD}accepted{BOLD:#}"),
        "refused" => format!("{ERROR}refused{ERROR:#}"),
        other => format!("{WARNING}{other}{WARNING:#}"),
    };
    let lines = text::count(*repaired, "line");
    let head = format!("{mark}  {history}  {DIM}status {status}, {lines} of the report{DIM:#}\n");
    let words =
        error.as_ref().map_or_else(String::new, |error| text::wrap(error, "    ", Layout::folded("--json has it")));
    head + &words
}
