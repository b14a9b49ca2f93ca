use std::fmt;

use super::{Chunk, Extra, FinishReason, Json, Native, Timestamp};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::System, Self::User, Self::Assistant, Self::Tool];

    /// The role's name in the transcript format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One message: a pure value. Its place in a conversation, its order and its state belong to the log.
///
/// ```
/// use conversation_store::model::{Chunk, Message};
///
/// let question = Message::user("What is in this folder?");
/// let answer = Message::assistant([
///     Chunk::thinking("I have to look."),
///     Chunk::tool_call("call_1", "list_files", r#"{"path":"."}"#),
/// ]);
/// let result = Message::tool("call_1", "Cargo.toml src");
/// # let _ = (question, answer, result);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub chunks: Vec<Chunk>,
    /// Why the model stopped.
    pub finish_reason: Option<FinishReason>,
    /// Token counts, as the provider wrote them.
    pub usage: Option<Json>,
    /// What is known about the message before it is said.
    pub metadata: Metadata,
}

/// What is known about a message before it is said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The model that makes the message.
    pub model: Option<String>,
    /// The provider that makes the message.
    pub provider: Option<String>,
    /// When it is made. The store's clock at append, if the caller does not say. Nothing is ordered by it.
    pub created_at: Option<Timestamp>,
    /// The caller's id of the turn.
    pub turn_id: Option<String>,
    /// The caller's id of the step within the turn.
    pub step_id: Option<String>,
    /// The provider's id of the message.
    pub id: Option<String>,
    /// The very message that it came from, where the typed fields would not give it back.
    pub native: Option<Native>,
    /// Fields of the transcript that this crate does not know.
    pub extra: Extra,
}

impl Message {
    /// A message of this role.
    #[must_use]
    pub fn new(role: Role, chunks: impl IntoIterator<Item = Chunk>) -> Self {
        let chunks = chunks.into_iter().collect();
        Self { role, chunks, finish_reason: None, usage: None, metadata: Metadata::default() }
    }

    /// Instructions.
    #[must_use]
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, [Chunk::text(text)])
    }

    /// What a person said.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, [Chunk::text(text)])
    }

    /// What a model said.
    #[must_use]
    pub fn assistant(chunks: impl IntoIterator<Item = Chunk>) -> Self {
        Self::new(Role::Assistant, chunks)
    }

    /// The result of one tool call, as text.
    #[must_use]
    pub fn tool(tool_call_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Role::Tool, [Chunk::tool_result(tool_call_id, text)])
    }
}
