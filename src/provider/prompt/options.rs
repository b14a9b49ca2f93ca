//! How a conversation is to be rendered.

use super::tools::Tool;
use crate::history::report::{Fact, Thought as Why};

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
    /// The model that the prompt is for. Thinking is native only for the model that made it, where both are known. A
    /// prompt that ends with the assistant's words is left so, for the model to go on with them, where the target takes
    /// it: Anthropic of Claude models before 4.6, named here; elsewhere a word of the user is added and reported
    /// ([`Rule::BridgeAdded`]).
    ///
    /// [`Rule::BridgeAdded`]: crate::Rule::BridgeAdded
    pub model: Option<String>,
    /// What becomes of thinking.
    pub thinking: Thinking,
    /// The thinking of at least this many turns of the user is sent: the last ones. `None` sends that of all turns, 0
    /// sends none.
    ///
    /// Older thinking is left out in steps of that many turns, for prompt caches: with 3, the thinking of the last 3 to 5
    /// turns is sent. Within a step a prompt begins with the bytes of the one before; with the turn that ends a step it
    /// changes from the first thinking on that is left out. Each is one line of the report ([`Rule::ThinkingLeftOut`]).
    ///
    /// [`Rule::ThinkingLeftOut`]: crate::Rule::ThinkingLeftOut
    pub thinking_turns: Option<u64>,
    /// How many bytes of text a tool's result may have. If a result is longer, its beginning is sent, up to the end of
    /// a character, and then a line with the number of bytes that were left out. Parts that are not text stay. The same
    /// result is always sent the same way, whatever follows it, so a prompt cache holds. Each is one line of the report
    /// ([`Rule::Altered`]). What a provider's own tool gave goes back to it whole.
    ///
    /// [`Rule::Altered`]: crate::Rule::Altered
    pub max_result_bytes: Option<u64>,
    /// What happens to images. If the bytes are not an image, no target can read it, and words are sent in its place in
    /// any case.
    pub images: Images,
    /// What becomes of calls and answers that are over.
    pub finished_tools: FinishedTools,
    /// What an assistant's message of calls only has for content, on `openai-chat`.
    pub no_content: NoContent,
    /// Whether the model is to go on with an answer that ends the conversation, in place of answering it: Claude models
    /// before 4.6 and Gemini models up to 3.1, named in `model`, take its words as the beginning of theirs; DeepSeek and
    /// Mistral get them with `prefix`; a turn that Anthropic paused goes back as it is. Elsewhere a word of the user asks for
    /// it, and the report says so ([`Rule::NotContinued`]).
    ///
    /// [`Rule::NotContinued`]: crate::Rule::NotContinued
    pub continue_last: bool,
    /// How many messages the prompt may hold.
    ///
    /// This option and the next two make a window: if the history is longer, the prompt holds the newest part. It begins
    /// with a message of the user, so that no call is parted from its results; system messages are always in it, and do
    /// not count here. It moves in steps, for prompt caches: the user's turns make up blocks of up to half of the limit,
    /// and whole blocks are left out, the oldest first, until the rest fits; so right after a step the window may be half
    /// full. The last turn is kept whole: if it alone is more, the report says so ([`Rule::WindowExceeded`]). What was
    /// left out is one line ([`Rule::OutsideWindow`]). Of several limits the narrowest counts.
    ///
    /// [`Rule::WindowExceeded`]: crate::Rule::WindowExceeded
    /// [`Rule::OutsideWindow`]: crate::Rule::OutsideWindow
    pub last_messages: Option<u64>,
    /// How many turns of the user the prompt may hold: what the user says in one go, and all that follows it. A
    /// message for which the target is sent nothing, such as another provider's blocks, begins no turn. The same turns
    /// count for `thinking_turns`.
    pub last_turns: Option<u64>,
    /// How many tokens the prompt may have, system messages and declared tools included.
    ///
    /// Texts are estimated, mostly too high: up to twice what OpenAI's vocabulary `o200k_base` makes of them; with the
    /// feature `tokens` they are counted by it. Other providers' vocabularies differ. To that come allowances: 8 tokens a
    /// message, 16 a call or result, 1,600 an image, one for each 5 bytes of a file's base64 (at least 1,600), for each
    /// 256 of sound, and for each 4 of encrypted thinking. Thinking that the target is not sent does not count. Cost: the
    /// whole history is measured; turns with thinking are rendered for it.
    pub max_tokens: Option<u64>,
    /// The tools that the model may call, in the order in which they are declared. Where the target wants the tools of the
    /// history declared, stubs of those that are missing come after them.
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

/// What becomes of images: no request shows whether the model of a target sees any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Images {
    /// They are sent where the target takes them.
    #[default]
    Send,
    /// Words stand in their place, for models that refuse them.
    Omit,
}

/// What becomes of the rounds of tools that are over: calls and their answers, after which the user has spoken.
///
/// Unless they are kept, a prompt changes from the first of them on when the user speaks, and a prompt cache holds up to
/// there only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinishedTools {
    /// They stay calls and answers.
    #[default]
    Keep,
    /// What was called and what it gave is text, said by the user. The thinking that led to it is left out.
    Flatten,
    /// They are left out, and the thinking that led to them.
    Drop,
}

/// What an assistant's message of calls only has for content, on `openai-chat`. Dialects that take one of both have that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoContent {
    /// `null`, as OpenAI writes it.
    #[default]
    Null,
    /// An empty string, for servers that refuse `null`.
    Empty,
}

impl PromptOptions {
    /// No model, native thinking of all turns, whole results, images sent, all tools' rounds kept, no window, no tools
    /// declared.
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

    /// Sets of how many turns of the user, the last ones, the thinking is sent.
    #[must_use]
    pub fn with_thinking_turns(mut self, turns: u64) -> Self {
        self.thinking_turns = Some(turns);
        self
    }

    /// Sets how many bytes of text a tool's result may have.
    #[must_use]
    pub fn with_max_result_bytes(mut self, bytes: u64) -> Self {
        self.max_result_bytes = Some(bytes);
        self
    }

    /// Sets what becomes of images.
    #[must_use]
    pub fn with_images(mut self, images: Images) -> Self {
        self.images = images;
        self
    }

    /// Sets what becomes of calls and answers that are over.
    #[must_use]
    pub fn with_finished_tools(mut self, finished_tools: FinishedTools) -> Self {
        self.finished_tools = finished_tools;
        self
    }

    /// Sets what an assistant's message of calls only has for content.
    #[must_use]
    pub fn with_no_content(mut self, no_content: NoContent) -> Self {
        self.no_content = no_content;
        self
    }

    /// Sets whether the model is to go on with the last answer.
    #[must_use]
    pub fn with_continue_last(mut self, continues: bool) -> Self {
        self.continue_last = continues;
        self
    }

    /// Sets how many messages the prompt may hold.
    #[must_use]
    pub fn with_last_messages(mut self, messages: u64) -> Self {
        self.last_messages = Some(messages);
        self
    }

    /// Sets how many turns of the user the prompt may hold.
    #[must_use]
    pub fn with_last_turns(mut self, turns: u64) -> Self {
        self.last_turns = Some(turns);
        self
    }

    /// Sets how many tokens the prompt may have.
    #[must_use]
    pub fn with_max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets the tools that the model may call.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools = tools.into_iter().collect();
        self
    }
}

impl Thinking {
    /// Thinking as text.
    pub(crate) fn tagged(thought: &str) -> String {
        format!("<think>\n{thought}\n</think>")
    }

    /// The line for thinking as text.
    pub(crate) fn tagging(self) -> Fact<'static> {
        Fact::ThinkingTagged { asked: self == Self::Tagged }
    }

    /// Whether thinking that the target does not take as such becomes text. `is_all`: its message is nothing else.
    pub(crate) const fn tags(self, is_all: bool) -> bool {
        match self {
            Self::Tagged => true,
            Self::Native => is_all,
            Self::Omit => false,
        }
    }

    /// Why thinking that has no place of its own, and is no text either, is left out. `otherwise`: why, where the wire
    /// decides.
    pub(crate) const fn why_left_out(self, text: &str, is_opaque: bool, is_foreign: bool, otherwise: Why) -> Why {
        match self {
            Self::Omit => Why::AsAsked,
            _ if text.is_empty() && !is_opaque => Why::Empty,
            Self::Tagged => Why::NoText,
            Self::Native if is_opaque && is_foreign => Why::Foreign,
            Self::Native => otherwise,
        }
    }
}
