use conversation_store::model::{Json, Name};
use conversation_store::{NextStep, PendingCall, next_step};
use serde::Serialize;

use super::failure::{Exit, Outcome};
use super::output::{BOLD, DIM, Output};
use super::{Location, text};

const EXAMPLES: &str = "\
Examples:
  convo next chat-42
  convo next chat-42 --json | jq -r '.calls[].name'

Steps: run_tools (with the calls), call_model, continue_text (the answer's text was cut off),
continue_turn (the provider paused: send the same again), await_model (a message is
being written), await_user.";

/// What an agent must do now: run tools, call the model, or wait
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    conversation: String,
}

#[derive(Serialize)]
struct Shown<'a> {
    step: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Vec<Call<'a>>>,
}

#[derive(Serialize)]
struct Call<'a> {
    kind: &'static str,
    message_index: u64,
    tool_call_id: &'a str,
    name: &'a str,
    arguments: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'a Json>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let conversation = location.read()?.load(Name::from(&args.conversation))?;
    output.report(None, conversation.report());
    let step = next_step(&conversation);
    let calls = match &step {
        NextStep::RunTools(calls) => Some(calls.iter().map(Call::from).collect()),
        _ => None,
    };
    output.result(&Shown { step: step.name(), calls }, || text(&step))?;
    Ok(Exit::Done)
}

impl<'a> From<&'a PendingCall> for Call<'a> {
    fn from(call: &'a PendingCall) -> Self {
        let PendingCall { kind, message_index, tool_call_id, name, arguments, raw, .. } = call;
        Self { kind: kind.name(), message_index: *message_index, tool_call_id, name, arguments, item: raw.as_ref() }
    }
}

fn text(step: &NextStep) -> String {
    let mut out = format!("{BOLD}{}{BOLD:#}\n", step.name().replace('_', " "));
    if let NextStep::RunTools(calls) = step {
        for call in calls {
            let (name, id) = (text::printable(&call.name), text::printable(&call.tool_call_id));
            out.push_str(&format!("  {name} {DIM}{id}{DIM:#}\n"));
            out.push_str(&text::wrap(&call.arguments, "    ", text::WIDTH, text::LINES));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use conversation_store::Store;
    use conversation_store::model::{Chunk, Message};

    #[test]
    fn people_read_the_step_and_its_calls() -> conversation_store::Result<()> {
        let plain = |step| anstream::adapter::strip_str(&text(&step)).to_string();
        assert_eq!(plain(NextStep::AwaitUser), "await user\n");
        let call = |name: &str, id: &str| Chunk::tool_call(id, name, "{\"a\":1}");
        let store = Store::open("memory:")?;
        store.append("chat", &[Message::assistant([call("ls", "call_1"), call("rm", "\u{7}")])])?;
        let wanted = "run tools\n  ls call_1\n    {\"a\":1}\n  rm \\u{7}\n    {\"a\":1}\n";
        assert_eq!(plain(next_step(&store.load("chat")?)), wanted);
        Ok(())
    }
}
