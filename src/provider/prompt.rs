//! What a rendered conversation is, and how it is to be rendered.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::tools::Tool;
use super::{Target, rounds};
use crate::conversation::Conversation;
use crate::error::Result;
use crate::reconcile::ReportLine;

/// A conversation as a provider takes it.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The part of the provider's request that holds the conversation, as compact JSON: an object with the wire's keys
    /// (`openai-chat`: `messages`, and `tools` where some are declared or the dialect needs them). Model, limits and the
    /// like are the caller's to add.
    pub request: Box<RawValue>,
    /// What was done to the conversation: reconcile's lines first, then the renderer's.
    pub report: Vec<ReportLine>,
}

/// How a conversation is to be rendered.
///
/// ```
/// use conversation_store::provider::{PromptOptions, Thinking};
///
/// let options = PromptOptions::new().with_model("deepseek-v4").with_thinking(Thinking::Tagged);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptOptions {
    /// The model that the prompt is for. Thinking is native only for the model that made it, where both are known.
    pub model: Option<String>,
    /// What becomes of thinking.
    pub thinking: Thinking,
    /// What becomes of calls and answers that are over.
    pub finished_tools: FinishedTools,
    /// The tools that the model may call, in the order in which they are declared. Where the target wants the tools of the
    /// history declared, stubs of those that are missing stand behind them.
    pub tools: Vec<Tool>,
}

/// What becomes of thinking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thinking {
    /// In the target's own form where it takes it, else left out. A message of thinking only becomes text in `<think>` tags.
    #[default]
    Native,
    /// Text in `<think>` tags.
    Tagged,
    /// Left out.
    Omit,
}

/// What becomes of the rounds of tools that are over: calls and their answers, behind which the user has spoken.
///
/// Unless they are kept, a prompt changes from the first of them on when the user speaks, and a prompt cache holds up to
/// there only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinishedTools {
    /// They stay calls and answers.
    #[default]
    Keep,
    /// What was called and what it gave is told in text, by the user. The thinking that led to it is left out.
    Flatten,
    /// They are left out, and the thinking that led to them.
    Drop,
}

impl Thinking {
    /// Thinking as text.
    pub(super) fn tagged(thought: &str) -> String {
        format!("<think>\n{thought}\n</think>")
    }
}

impl PromptOptions {
    /// No model, native thinking, all tools' rounds kept, none declared.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets what becomes of thinking.
    #[must_use]
    pub fn with_thinking(mut self, thinking: Thinking) -> Self {
        self.thinking = thinking;
        self
    }

    /// Sets what becomes of calls and answers that are over.
    #[must_use]
    pub fn with_finished_tools(mut self, finished_tools: FinishedTools) -> Self {
        self.finished_tools = finished_tools;
        self
    }

    /// Sets the tools that the model may call.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools = tools.into_iter().collect();
        self
    }
}

/// Renders a conversation for a target.
///
/// Whatever the conversation holds, [`super::check`] finds nothing hard in the request; every chunk is in it unchanged, or
/// has a line in the report; and for the same options, a conversation that goes on gives a request that begins with the
/// bytes of the one before, so that a provider's prompt cache holds.
///
/// ```
/// use conversation_store::model::Message;
/// use conversation_store::provider::{PromptOptions, Target, render};
/// use conversation_store::Store;
///
/// let store = Store::open("memory:")?;
/// store.append("chat", &[Message::user("hello")])?;
/// let prompt = render(Target::OPENAI_CHAT, &store.load("chat")?, &PromptOptions::new())?;
/// assert_eq!(prompt.request.get(), r#"{"messages":[{"role":"user","content":"hello"}]}"#);
/// # Ok::<(), conversation_store::Error>(())
/// ```
///
/// # Errors
/// `NothingToSend` if nothing of the conversation is left for this target, `TooLarge` if it is more than the target takes,
/// `InvalidInput` if the declared tools have one name twice, or parameters that are no object.
pub fn render(target: Target, conversation: &Conversation, options: &PromptOptions) -> Result<Prompt> {
    let mut report = conversation.report().to_vec();
    let messages = match options.finished_tools {
        FinishedTools::Keep => Cow::Borrowed(conversation.messages()),
        FinishedTools::Flatten | FinishedTools::Drop => {
            Cow::Owned(rounds::told(conversation.messages(), options, &mut report))
        }
    };
    let (request, mut lines) = (target.wire().render)(target, &messages, options)?;
    report.append(&mut lines);
    Ok(Prompt { request, report })
}
