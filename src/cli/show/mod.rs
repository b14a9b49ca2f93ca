//! A conversation for people, or its messages as JSON.

mod chunk;

use conversation_store::{MessageState, StoredMessage, Summary};

use super::failure::{Exit, Outcome};
use super::output::{self, BOLD, DIM, Output, WARNING};
use super::{Location, text};
pub(super) use chunk::summary;

const EXAMPLES: &str = "\
Examples:
  convo show chat-42
  convo show chat-42 --raw            as it was appended, nothing repaired
  convo show chat-42 --json | jq .role

On a terminal long texts are cut; JSON has everything. The report, on stderr, says what was repaired.";

/// Print the messages of a conversation
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    conversation: String,
    /// The messages as they were appended: nothing is repaired, and on a terminal nothing is cut
    #[arg(long)]
    raw: bool,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let (store, name) = (location.read()?, location.name(&args.conversation));
    let (messages, report, summary) = if args.raw {
        (store.load_raw(&name)?, Vec::new(), None)
    } else {
        let conversation = store.load(&name)?;
        let (report, summary) = (conversation.report().to_vec(), conversation.summary().cloned());
        (conversation.into_messages(), report, summary)
    };
    let lines = if args.raw { usize::MAX } else { text::LINES };
    for stored in &messages {
        output.result(stored, || text(stored, lines))?;
    }
    if messages.is_empty() && output.is_text() {
        output.text("no messages")?;
    }
    output.flush()?;
    output.report(None, &report);
    if let Some(Summary { seq, through, .. }) = summary {
        output::note(&format!("prompts use the summary of seq {seq} in place of the messages up to {through}"));
    }
    Ok(Exit::Done)
}

/// `#3 assistant  stop  2026-01-02 03:04:05`, then its chunks, of each at most so many lines.
fn text(stored: &StoredMessage, lines: usize) -> String {
    let message = &stored.message;
    let mut out = format!("{BOLD}#{} {}{BOLD:#}", stored.index, message.role);
    if stored.state != MessageState::Complete {
        out.push_str(&format!("  {WARNING}{}{WARNING:#}", stored.state.as_str()));
    }
    let time = message.metadata.created_at.map(text::time);
    let reason = message.finish_reason.as_ref().map(|reason| text::cut(reason.as_str(), 40));
    let model = message.metadata.model.as_ref().map(|model| text::cut(model, 40));
    for part in [model, reason, time].into_iter().flatten() {
        out.push_str(&format!("  {DIM}{part}{DIM:#}"));
    }
    out.push('\n');
    for chunk in &message.chunks {
        out.push_str(&chunk::text(chunk, lines));
    }
    out
}

#[cfg(test)]
mod tests {
    use conversation_store::Store;
    use conversation_store::model::{Chunk, Message, Timestamp};

    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn people_read_who_said_what() {
        let store = Store::open("memory:").unwrap();
        let mut answer = Message::assistant([
            Chunk::thinking("Look first."),
            Chunk::tool_call("call_1", "run", r#"{"command":"ls"}"#),
            Chunk::error("overloaded"),
        ]);
        answer.finish_reason = Some("tool_calls".into());
        let mut messages = [Message::user("hi\u{1b}[2J\nthere"), answer, Message::tool("call_1", "a\nb\nc")];
        for message in &mut messages {
            message.metadata.created_at = Some(Timestamp::from_micros(0));
        }
        store.append("chat", &messages).unwrap();
        let shown: String = store.load_raw("chat").unwrap().iter().map(|stored| plain(&text(stored, 2))).collect();
        let wanted = "\
#0 user  1970-01-01 00:00:00
    hi\\u{1b}[2J
    there
#1 assistant  tool_calls  1970-01-01 00:00:00
    thinking
      Look first.
    tool call run call_1
      {\"command\":\"ls\"}
    error
      overloaded
#2 tool  1970-01-01 00:00:00
    tool result call_1
      a
      b
      … 1 more line
";
        assert_eq!(shown, wanted);
    }

    #[test]
    fn other_states_are_named() {
        let store = Store::open("memory:").unwrap();
        let call = Chunk::tool_call("c", "run", "{}");
        store.append("chat", &[Message::assistant([call]), Message::user("go on")]).unwrap();
        let conversation = store.load("chat").unwrap();
        let synthetic = conversation.messages().get(1).map(|stored| plain(&text(stored, 9)));
        assert!(synthetic.unwrap().starts_with("#0 tool  synthetic"));
    }
}
