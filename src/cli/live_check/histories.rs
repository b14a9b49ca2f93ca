//! Ten small histories that have broken products.

use conversation_store::model::{Chunk, FinishReason, Message};
use conversation_store::{Conversation, MessageState, StoredMessage};

/// A history, and what it is.
pub(super) struct History {
    pub(super) name: &'static str,
    pub(super) conversation: Conversation,
}

/// The tool that the calls name.
pub(super) const TOOL: &str = "read_file";

pub(super) fn all() -> Vec<History> {
    let ask = || Message::user("Answer with one word.");
    let call = |id: &str| Chunk::tool_call(id, TOOL, r#"{"path":"a.txt"}"#);
    let calls = |ids: &[&str]| Message::assistant(ids.iter().map(|id| call(id)));
    let said = |text: &str| Message::assistant([Chunk::text(text)]);
    let cut = || {
        let mut message = said("It is in the fi");
        message.finish_reason = Some(FinishReason::Interrupted);
        message
    };
    let foreign = || {
        let mut message = Message::assistant([Chunk::thinking("I have to look."), call("call_1")]);
        (message.metadata.provider, message.metadata.model) =
            (Some("another".to_owned()), Some("another-1".to_owned()));
        message
    };
    let broken = Chunk::tool_call("call_1", TOOL, r#"{"path": "a.t"#);
    let histories = [
        ("a question", vec![ask()]),
        ("a call without a result", vec![ask(), calls(&["call_1"]), ask()]),
        ("a result without a call", vec![ask(), said("Yes."), Message::tool("call_1", "text"), ask()]),
        (
            "results in another order than their calls, and one that is missing",
            vec![
                ask(),
                calls(&["call_1", "call_2", "call_3"]),
                Message::tool("call_3", "c"),
                Message::tool("call_1", "a"),
                ask(),
            ],
        ),
        (
            "a result after the user has gone on",
            vec![ask(), calls(&["call_1"]), ask(), Message::tool("call_1", "text"), said("Yes."), ask()],
        ),
        ("arguments that were cut off", vec![ask(), Message::assistant([broken]), ask()]),
        (
            "an answer of nothing, and one that failed",
            vec![ask(), said(""), ask(), Message::assistant([Chunk::error("overloaded")]), said(" \n"), ask()],
        ),
        ("an answer that was cut off", vec![ask(), cut(), ask()]),
        (
            "one id of two calls",
            vec![
                ask(),
                calls(&["call_1"]),
                Message::tool("call_1", "a"),
                calls(&["call_1"]),
                Message::tool("call_1", "b"),
                said("Yes."),
                ask(),
            ],
        ),
        (
            "thinking and a call of another provider",
            vec![ask(), foreign(), Message::tool("call_1", "text"), said("Yes."), ask()],
        ),
    ];
    let stored = |(index, message)| StoredMessage::new(index, MessageState::Complete, message);
    let history = |(name, messages): (&'static str, Vec<Message>)| History {
        name,
        conversation: Conversation::new((0..).zip(messages).map(stored).collect()),
    };
    histories.into_iter().map(history).collect()
}
