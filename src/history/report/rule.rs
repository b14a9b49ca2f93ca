//! What was done, and what it means for the one who reads it.

use std::fmt;

use serde::Serialize;

/// The enum of the rules, and what is said of each: its documentation.
macro_rules! rules {
    ($($(#[doc = $about:literal])+ $rule:ident,)+) => {
        /// What was done. Names in JSON are in snake case: `error_chunk_removed`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[doc = $about])+ $rule,)+
        }

        impl Rule {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$rule),+];

            /// What was done, in a sentence.
            #[must_use]
            pub fn about(self) -> &'static str {
                match self {
                    $(Self::$rule => concat!($($about),+).trim_start(),)+
                }
            }
        }
    };
}

rules! {
    /// A record could not be read; what it held is missing.
    DamagedRecord,
    /// An error chunk is not part of the conversation.
    ErrorChunkRemoved,
    /// A message without any content is not part of the conversation.
    EmptyMessageRemoved,
    /// A tool result was moved to the place directly after its call's message.
    ResultMoved,
    /// A further result for a call that has one is not part of the conversation.
    DuplicateResultRemoved,
    /// A result without a call is not part of the conversation.
    OrphanResultRemoved,
    /// A call without a result was answered: outcome unknown.
    OutcomeUnknown,
    /// A call that was cut off was answered: not run.
    NotRun,
    /// A pending call was answered for this prompt: outcome unknown.
    PendingAnswered,
    /// A message that is still being written was taken as it is.
    StreamingTakenAsInterrupted,
    /// A lone surrogate escape was replaced by U+FFFD.
    SurrogateReplaced,
    /// A chunk, or a part of a tool's output, was left out: the target does not take it.
    LeftOut,
    /// Thinking was left out.
    ThinkingLeftOut,
    /// Thinking was rendered as text in `<think>` tags.
    ThinkingTagged,
    /// A chunk was rendered in another form.
    Altered,
    /// A signature, or a provider's own item, was sent as the target's own, though it is not stated who made it.
    OriginAssumed,
    /// Reasoning was sent by the server's id alone: the server takes it if it stored the answer.
    KeptByServer,
    /// A call or an answer of a round that is over was written as text.
    FinishedToolFlattened,
    /// A call or a result of a tool round that is over was left out.
    FinishedToolDropped,
    /// A summary takes the place of the messages up to this one; or, of a chunk: it answers a call among them.
    Summarized,
    /// Messages were left out: the window that was asked for begins after them, at this one. System messages stay.
    OutsideWindow,
    /// The last turn, with what is always sent, is more than the window may hold, and was kept whole.
    WindowExceeded,
    /// Arguments that are not a JSON object were made one.
    ArgumentsRepaired,
    /// The documented substitute for a signature was added: the target requires one.
    SignatureMade,
    /// A tool's name was changed to what the target takes.
    NameChanged,
    /// A text or thinking was sent that holds a call as text: it is sent as text, and nothing ran.
    CallAsText,
    /// An image, audio or a file was moved into a user message.
    MediaMoved,
    /// A chunk was rendered under another role.
    RoleChanged,
    /// A message was added that nobody said: the target wants one in that place.
    TurnMade,
    /// A last user message was added, only because the list ends there: a longer prompt does not have it.
    BridgeAdded,
    /// The last answer was to be continued, and the target has no way to do so: the user asks for it.
    NotContinued,
    /// A parameter was added that the target requires.
    FieldAdded,
    /// The target still refuses this place of a repaired request: only the caller can cure it.
    StillRefused,
}

impl Rule {
    /// The rule's name in JSON.
    #[must_use]
    pub fn name(self) -> String {
        // A unit variant serialises as its name in quotes.
        serde_json::to_string(&self).unwrap_or_default().trim_matches('"').to_owned()
    }
}

/// What a report line means for the one who reads it. The worst comes first. Names in JSON are in lower case: `lost`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Content of the input does not reach the output: a text, thinking, a result, a file, citations, a field.
    Lost,
    /// Content reaches the output in another form, or without something that only marks it: a name, an id, a signature, the
    /// flag of an error.
    Changed,
    /// Content is in another place.
    Moved,
    /// Something is in the output that nobody said.
    Added,
    /// Nothing of the content changed; something is good to know.
    Note,
}

impl Severity {
    /// All of them, the worst first.
    pub const ALL: &'static [Self] = &[Self::Lost, Self::Changed, Self::Moved, Self::Added, Self::Note];

    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Changed => "changed",
            Self::Moved => "moved",
            Self::Added => "added",
            Self::Note => "note",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
