//! What an agent loop must do now, also after answers that were cut short, and go on in the next message.

use std::collections::HashMap;

use serde::Serialize;

use super::conversation::Conversation;
use super::group::{MessageState, StoredMessage};
use super::item_calls::{Asked, ToolKind, answered_by, asked_by};
use super::reconcile::{Calls, Site, first_pending, is_content, is_cut_off};
use crate::json;
use crate::model::{Body, Chunk, FinishReason, Json, Role};

/// What an agent loop must do now.
///
/// As JSON: `step`, the step's name, and, where tools are to be run, `calls`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[serde(tag = "step", content = "calls", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NextStep {
    /// Run these tools, append their results. After a crash a tool may have begun already: its id is the idempotency key.
    RunTools(
        #[cfg_attr(feature = "server", schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>"))]
        Vec<PendingCall>,
    ),
    /// Call the model.
    CallModel,
    /// Call the model again: its answer has nothing for the user, only thinking, or it says that it calls tools and calls
    /// none. After a second such answer it is the user's turn.
    CallModelAgain,
    /// The answer's text was cut off: let the model go on with it.
    ContinueText,
    /// The provider paused a long turn: send the conversation as it is, and it goes on with the turn.
    ContinueTurn,
    /// An answer is being written, if only begun: wait for it.
    AwaitModel,
    /// The model is done, or cannot go on by itself: it is the user's turn. An answer that ran into its limit of tokens
    /// while it thought, and said nothing, is one of these: asked again with the same limit, the model would think to the
    /// same end. Its finish reason is `length`: raise the limit, and call the model. So is a failure that the same request
    /// would meet again, such as a wrong key; one that passes, such as too many requests, is [`NextStep::CallModel`].
    AwaitUser,
}

/// A call that nobody has answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PendingCall {
    /// What runs it.
    pub kind: ToolKind,
    /// The index of the call's message.
    pub message_index: u64,
    /// The call's id as it is stored.
    pub tool_call_id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them; of what is no function, what has to be done: JSON, or a custom tool's text.
    pub arguments: String,
    /// The provider's own item, of what is no function. In JSON: `item`.
    #[serde(rename = "item", skip_serializing_if = "Option::is_none")]
    pub raw: Option<Json>,
}

impl NextStep {
    /// The step's name in JSON: `run_tools`, `call_model`, `call_model_again`, `continue_text`, `continue_turn`,
    /// `await_model` or `await_user`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunTools(_) => "run_tools",
            Self::CallModel => "call_model",
            Self::CallModelAgain => "call_model_again",
            Self::ContinueText => "continue_text",
            Self::ContinueTurn => "continue_turn",
            Self::AwaitModel => "await_model",
            Self::AwaitUser => "await_user",
        }
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
///
/// Cost: it looks at what was said since the model's last answer began, however long the conversation is.
#[must_use]
pub fn next_step(conversation: &Conversation) -> NextStep {
    if conversation.is_being_answered() {
        return NextStep::AwaitModel;
    }
    if conversation.fails_again() {
        return NextStep::AwaitUser;
    }
    let counts =
        |stored: &StoredMessage| stored.state != MessageState::Synthetic && stored.message.role != Role::System;
    let messages = conversation.messages();
    let Some(last) = messages.iter().rfind(|stored| counts(stored)) else { return NextStep::AwaitUser };
    let is_answer = |stored: &StoredMessage| stored.message.role == Role::Assistant && counts(stored);
    let Some(answer) = messages.iter().rposition(is_answer) else { return NextStep::CallModel };
    // What came before the answer asks for nothing any more, and a result is always after its call.
    let later: Vec<StoredMessage> = messages.iter().skip(answer).filter(|stored| counts(stored)).cloned().collect();
    let Some(stored) = later.first() else { return NextStep::CallModel };
    // Calls that the provider answers itself ask nothing of us.
    let is_ours = |chunk: &Chunk| matches!(chunk.body, Body::ToolCall { server: false, .. });
    let has_calls = stored.message.chunks.iter().any(is_ours);
    let mut calls = open_items(stored, &later);
    if has_calls && first_pending(&later) == 0 {
        calls.extend(open_calls(stored, &later));
        calls.sort_by_key(|(chunk, _)| *chunk);
        if calls.is_empty() {
            return NextStep::CallModel;
        }
    }
    if !calls.is_empty() {
        return NextStep::RunTools(calls.into_iter().map(|(_, call)| call).collect());
    }
    match last.message.role {
        Role::Assistant => after_answer(last, messages.iter().take(answer).rfind(|stored| counts(stored))),
        _ => NextStep::CallModel,
    }
}

/// The calls of the first of these messages that are whole and have no result, with their positions in it.
fn open_calls(stored: &StoredMessage, messages: &[StoredMessage]) -> Vec<(usize, PendingCall)> {
    let paired = Calls::pair(messages);
    let open = stored.message.chunks.iter().enumerate().filter_map(|(chunk, content)| match &content.body {
        Body::ToolCall { id, name, arguments, server: false, .. }
            if paired.result(Site { message: 0, chunk }).is_none() && !is_cut_off(stored, chunk) =>
        {
            let raw = content.native.as_ref().map(|native| &native.json).filter(|json| is_custom(json));
            let call = PendingCall {
                kind: if raw.is_some() { ToolKind::Custom } else { ToolKind::Function },
                message_index: stored.index,
                tool_call_id: id.clone(),
                name: name.clone(),
                arguments: arguments.clone(),
                raw: raw.cloned(),
            };
            Some((chunk, call))
        }
        _ => None,
    });
    open.collect()
}

/// Is this the call of a tool whose input is text?
fn is_custom(json: &Json) -> bool {
    let call = json::value::<serde_json::Value>(json.as_str()).unwrap_or_default();
    call.get("type").is_some_and(|kind| kind == "custom" || kind == "custom_tool_call")
}

/// What the first of these messages asks of the application beside functions, and nobody has answered; nothing if somebody
/// went on.
fn open_items(stored: &StoredMessage, messages: &[StoredMessage]) -> Vec<(usize, PendingCall)> {
    let later = messages.get(1..).unwrap_or_default();
    let mut answers: HashMap<(ToolKind, String), usize> = HashMap::new();
    let chunks = later.iter().flat_map(|stored| &stored.message.chunks);
    for chunk in stored.message.chunks.iter().chain(chunks) {
        if let Some(key) = answered_by(chunk) {
            *answers.entry(key).or_default() += 1;
        }
    }
    let goes_on = |chunk: &Chunk| {
        is_content(chunk) && answered_by(chunk).is_none() && !matches!(chunk.body, Body::ToolResult { .. })
    };
    if later.iter().any(|stored| stored.message.chunks.iter().any(goes_on)) {
        return Vec::new();
    }
    let mut open = Vec::new();
    for (at, chunk) in stored.message.chunks.iter().enumerate() {
        let Some(Asked { kind, id, name, arguments, raw }) = asked_by(chunk) else { continue };
        match answers.get_mut(&(kind, id.clone())).filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None => {
                let (message_index, raw) = (stored.index, Some(raw.clone()));
                open.push((at, PendingCall { kind, message_index, tool_call_id: id, name, arguments, raw }));
            }
        }
    }
    open
}

/// `before`: what came before the answer.
fn after_answer(last: &StoredMessage, before: Option<&StoredMessage>) -> NextStep {
    match (rest(last), &last.message.finish_reason) {
        (Some(Rest::Text), _) => NextStep::ContinueText,
        (Some(Rest::Turn), _) => NextStep::ContinueTurn,
        // Only thinking came before it was cut off: nothing was said yet.
        (None, Some(FinishReason::Interrupted)) => NextStep::CallModel,
        _ if is_unfinished(last) && !before.is_some_and(is_unfinished) => NextStep::CallModelAgain,
        _ => NextStep::AwaitUser,
    }
}

/// Whether an answer ended by itself, and what it was to say is missing.
fn is_unfinished(stored: &StoredMessage) -> bool {
    let chunks = || stored.message.chunks.iter().map(|chunk| &chunk.body);
    let is_silent = |body: &Body| match body {
        Body::Thinking { .. } => true,
        Body::Text { text, .. } => text.trim().is_empty(),
        _ => false,
    };
    match stored.message.finish_reason {
        _ if stored.message.role != Role::Assistant => false,
        Some(FinishReason::Stop) => chunks().all(is_silent),
        Some(FinishReason::ToolCalls) => chunks().all(|body| is_silent(body) || matches!(body, Body::Text { .. })),
        _ => false,
    }
}

/// What is to go on of an answer.
pub(super) enum Rest {
    Text,
    Turn,
}

/// What of an answer is still to come, as it says itself.
pub(super) fn rest(stored: &StoredMessage) -> Option<Rest> {
    let chunks = &stored.message.chunks;
    let has_text = || chunks.iter().any(|chunk| matches!(&chunk.body, Body::Text { text, .. } if !text.is_empty()));
    match &stored.message.finish_reason {
        Some(FinishReason::Length | FinishReason::Interrupted) if has_text() => Some(Rest::Text),
        Some(FinishReason::Other(word)) if word == "pause_turn" => Some(Rest::Turn),
        _ => None,
    }
}

impl StoredMessage {
    /// Whether this message goes on with the answer of the one before it, which was cut short: people read both as one.
    ///
    /// ```
    /// use conversation_store::model::{Chunk, FinishReason, Message};
    /// # use conversation_store::Store;
    /// # let store = Store::open("memory:")?;
    /// let mut half = Message::assistant([Chunk::text("A cold ni")]);
    /// half.finish_reason = Some(FinishReason::Length);
    /// store.append("chat", &[half, Message::assistant([Chunk::text("ght.")])])?;
    /// let messages = store.load_raw("chat")?;
    /// assert!(messages[1].continues(&messages[0]));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    #[must_use]
    pub fn continues(&self, before: &Self) -> bool {
        let is_answer =
            |stored: &Self| stored.message.role == Role::Assistant && stored.state != MessageState::Synthetic;
        is_answer(self) && is_answer(before) && rest(before).is_some()
    }
}
