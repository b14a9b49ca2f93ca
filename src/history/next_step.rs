//! What an agent loop must do now.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::conversation::Conversation;
use super::group::{MessageState, StoredMessage};
use super::reconcile::{Calls, Site, is_cut_off, is_pending};
use crate::model::{Body, Chunk, FinishReason, Role};

/// What an agent loop must do now.
///
/// As JSON: `step`, the step's name, and, where tools are to be run, `calls`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextStep {
    /// Run these tools, append their results. After a crash a tool may have begun already: its id is the idempotency key.
    RunTools(Vec<PendingCall>),
    /// Call the model.
    CallModel,
    /// The answer's text was cut off: let the model go on with it.
    ContinueText,
    /// An answer is being written, if only begun: wait for it.
    AwaitModel,
    /// The model is done, or cannot go on by itself: it is the user's turn. An answer that ran into its limit of tokens
    /// while it thought, and said nothing, is one of these: asked again with the same limit, the model would think to the
    /// same end. Its finish reason, `length`, tells; raise the limit and call the model.
    AwaitUser,
}

/// A call that nobody has answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PendingCall {
    /// The index of the call's message.
    pub message_index: u64,
    /// The call's id as it is stored.
    pub tool_call_id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
}

impl NextStep {
    /// The step's name in JSON: `run_tools`, `call_model`, `continue_text`, `await_model` or `await_user`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunTools(_) => "run_tools",
            Self::CallModel => "call_model",
            Self::ContinueText => "continue_text",
            Self::AwaitModel => "await_model",
            Self::AwaitUser => "await_user",
        }
    }
}

impl Serialize for NextStep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("step", self.name())?;
        if let Self::RunTools(calls) = self {
            map.serialize_entry("calls", calls)?;
        }
        map.end()
    }
}

/// What an agent loop must do now. Answers that reconcile made up count for nothing here.
///
/// ```
/// use conversation_store::model::{Chunk, Message};
/// use conversation_store::{NextStep, Store, next_step};
///
/// let store = Store::open("memory:")?;
/// store.append("chat", &[Message::user("What time is it?")])?;
/// assert_eq!(next_step(&store.load("chat")?), NextStep::CallModel);
/// store.append("chat", &[Message::assistant([Chunk::tool_call("call_1", "clock", "{}")])])?;
/// assert!(matches!(next_step(&store.load("chat")?), NextStep::RunTools(calls) if calls[0].name == "clock"));
/// store.append("chat", &[Message::tool("call_1", "10:34")])?;
/// assert_eq!(next_step(&store.load("chat")?), NextStep::CallModel);
/// # Ok::<(), conversation_store::Error>(())
/// ```
#[must_use]
pub fn next_step(conversation: &Conversation) -> NextStep {
    let messages: Vec<StoredMessage> = conversation
        .messages()
        .iter()
        .filter(|stored| stored.state != MessageState::Synthetic && stored.message.role != Role::System)
        .cloned()
        .collect();
    if conversation.is_being_answered() {
        return NextStep::AwaitModel;
    }
    let Some(last) = messages.last() else { return NextStep::AwaitUser };
    let assistant = messages.iter().rposition(|stored| stored.message.role == Role::Assistant);
    if let Some((position, stored)) = assistant.and_then(|position| Some((position, messages.get(position)?))) {
        // Calls that the provider answers itself ask nothing of us.
        let is_ours = |chunk: &Chunk| matches!(chunk.body, Body::ToolCall { server: false, .. });
        let has_calls = stored.message.chunks.iter().any(is_ours);
        if has_calls && is_pending(&messages, position) {
            let calls = open_calls(&messages, position, stored);
            return if calls.is_empty() { NextStep::CallModel } else { NextStep::RunTools(calls) };
        }
    }
    match last.message.role {
        Role::Assistant => after_answer(last),
        _ => NextStep::CallModel,
    }
}

/// The calls of a message that are whole and have no result.
fn open_calls(messages: &[StoredMessage], position: usize, stored: &StoredMessage) -> Vec<PendingCall> {
    let paired = Calls::pair(messages);
    let open = stored.message.chunks.iter().enumerate().filter_map(|(chunk, content)| match &content.body {
        Body::ToolCall { id, name, arguments, server: false, .. }
            if paired.result(Site { message: position, chunk }).is_none() && !is_cut_off(stored, chunk) =>
        {
            Some(PendingCall {
                message_index: stored.index,
                tool_call_id: id.clone(),
                name: name.clone(),
                arguments: arguments.clone(),
            })
        }
        _ => None,
    });
    open.collect()
}

fn after_answer(last: &StoredMessage) -> NextStep {
    let has_text =
        last.message.chunks.iter().any(|chunk| matches!(&chunk.body, Body::Text { text, .. } if !text.is_empty()));
    match last.message.finish_reason {
        Some(FinishReason::Length | FinishReason::Interrupted) if has_text => NextStep::ContinueText,
        // Only thinking came before it was cut off: nothing was said yet.
        Some(FinishReason::Interrupted) => NextStep::CallModel,
        _ => NextStep::AwaitUser,
    }
}
