use conversation_store::{NextStep, next_step};

use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::Output;
use super::style::{BOLD, DIM};
use super::text;
use super::values::conversation;

const EXAMPLES: &str = "\
Examples:
  convo next chat-42
  convo next chat-42 --json | jq -r '.calls[].name'

Steps: run_tools (with the calls), call_model, continue_text (the answer's text was cut off), continue_turn (the \
provider paused: send the same again), await_model (a message is being written), await_user.";

/// Print what an agent must do now: run tools, call the model, or wait
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let conversation = location.read()?.load(location.name(&args.conversation))?;
    output.report(None, conversation.report());
    let step = next_step(&conversation);
    output.result(&step, || text(&step))?;
    Ok(Exit::Done)
}

fn text(step: &NextStep) -> String {
    let mut out = format!("{BOLD}{}{BOLD:#}\n", step.name().replace('_', " "));
    if let NextStep::RunTools(calls) = step {
        for call in calls {
            let (name, id) = (text::printable(&call.name), text::printable(&call.tool_call_id));
            out.push_str(&format!("  {name} {DIM}{id}{DIM:#}\n"));
            out.push_str(&text::wrap(&call.arguments, "    ", text::Layout::folded("--json has them")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use conversation_store::Store;
    use conversation_store::model::{Chunk, Message};

    use super::*;

    #[test]
    fn people_read_the_step_and_its_calls() {
        let store = Store::open("memory:").unwrap();
        let plain = |step| anstream::adapter::strip_str(&text(&step)).to_string();
        store.append("done", &[Message::assistant([Chunk::text("Done.")])]).unwrap();
        assert_eq!(plain(next_step(&store.load("done").unwrap())), "await user\n");
        let call = |name, id| Chunk::tool_call(id, name, "{\"a\":1}");
        store.append("chat", &[Message::assistant([call("ls", "call_1"), call("rm", "\u{7}")])]).unwrap();
        let wanted = "run tools\n  ls call_1\n    {\"a\":1}\n  rm \\u{7}\n    {\"a\":1}\n";
        assert_eq!(plain(next_step(&store.load("chat").unwrap())), wanted);
    }
}
