use std::path::PathBuf;

use conversation_store::Error;
use conversation_store::provider::{self, Target};
use serde_json::value::RawValue;

use super::failure::{Failure, Outcome};
use super::output::Output;
use super::prompt::{Renderer, Rendering, Shown};
use super::request::{self, Request};

const EXAMPLES: &str = "\
Examples:
  convo repair refused.json --for openai-chat > accepted.json
  convo repair refused.json --for openai-chat/mistral
  convo repair refused.json --for openai-chat --report
  convo repair refused.json --from openai-chat --for anthropic
  curl https://example.com/request.json | convo repair --for openai-chat --json

Repairs calls without results, results without calls, results in the wrong place, broken arguments, empty messages. \
On one wire the repair is the smallest edit: what no rule objects to stays byte for byte, and a request that is \
accepted comes out as it is. From one wire to another only the messages and the tools go along; --tools names \
others.

The report on stderr names what was wrong, and what was done about it. With --json both come as one object on stdout:
  {\"request\": {...}, \"report\": [{\"severity\": \"lost\", \"place\": \"messages[3]\", ...}]}
Where there is nothing to send, it has \"error\": {\"kind\", \"message\", \"hint\"} in place of \"request\".";

/// Repair a request that a provider refuses: print one that it accepts, and report what was wrong
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The request, or the array of its messages, JSON; - for stdin
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The wire of the request, if it is not the wire of --for
    #[arg(long, value_name = "WIRE")]
    from: Option<Target>,
    /// Print the report in place of the request: what was wrong, and what was done about it
    #[arg(long)]
    report: bool,
    #[command(flatten)]
    rendering: Rendering,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Outcome {
    let Renderer { target, options } = args.rendering.prepare()?;
    let (input, from) = (request::read(&args.file)?, args.from.unwrap_or(target));
    let Request { name, json } = &input;
    let (request, error, report) = match provider::repair(from, target, json, &options) {
        Ok(prompt) => {
            request::note_other_wire(from, &input, "--from");
            let request = if output.is_json() { on_one_line(prompt.request) } else { prompt.request };
            (Some(request), None, prompt.report)
        }
        Err(error @ (Error::NothingToSend(_) | Error::TooLarge(_))) => {
            (None, Some(Failure::from(error).at(name)), Vec::new())
        }
        Err(error) => return Err(Failure::from(error).at(name)),
    };
    let shown = Shown { conversation: None, key: None, request, error, report };
    if args.report { shown.print_report(output) } else { shown.print(output) }
}

/// The envelope is one line. In JSON, line breaks occur between tokens only.
fn on_one_line(request: Box<RawValue>) -> Box<RawValue> {
    if !request.get().contains(['\n', '\r']) {
        return request;
    }
    RawValue::from_string(request.get().replace(['\n', '\r'], " ")).unwrap_or(request)
}
