//! What was done: facts, without words; and what each means for the one who reads it: its rule and severity.

use std::fmt;

use serde::Serialize;

use super::reasons::{
    Arguments, Cited, IdGone, Mended, Moved, Refusal, Surrogates, Taken, Thought, Unfit, Unsent, Unsigned,
};
use crate::model::Role;

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

/// What was done to a conversation, a prompt or a request.
#[derive(Clone, Debug)]
pub(crate) enum Fact<'a> {
    // What is wrong with a conversation.
    RecordDamaged {
        error: &'a str,
    },
    ErrorRemoved,
    MessageEmpty {
        role: Role,
    },
    ResultMoved,
    ResultRepeated,
    ResultUnpaired,
    ResultShortened {
        bytes: usize,
        most: usize,
    },
    /// What came between calls and their outputs comes before the calls.
    OutputsJoined,
    /// No result is stored: this one was made. The rule has the reason.
    ResultMade {
        rule: Rule,
        text: &'a str,
    },
    StillWritten,

    // Texts.
    TextEmpty,
    TextBlank,
    EndTrimmed,
    RefusalAsText,
    AnnotationsRemoved(Cited),
    CitedFilesRemoved,
    SurrogatesReplaced(Surrogates),

    // Calls and their results.
    /// A text holds a call: in the form of which models, and what such a call begins with.
    CallAsText {
        models: &'static str,
        begin: &'static str,
    },
    CallNotAssistants {
        role: Role,
    },
    CallUnended,
    /// A call of this kind, of a tool that is no function, was answered.
    ItemAnswered {
        kind: &'a str,
    },
    CallClosed,
    CallSignatureRemoved(Unsigned),
    TextSignatureRemoved,
    SignatureMade,
    CallFieldsRemoved(Unsent<'a>),
    ArgumentsReplaced {
        why: Arguments,
        now: &'a str,
    },
    NameChanged {
        from: &'a str,
        to: &'a str,
    },
    DeclarationRenamed {
        from: &'a str,
        to: &'a str,
    },
    ErrorFlagRemoved,
    FailureWorded {
        text: &'a str,
    },
    OutputWorded {
        text: &'a str,
    },
    PartAsJson {
        kind: &'a str,
    },
    RoundAsText,
    RoundRemoved,

    // A provider's own.
    /// Of this kind of thing: a block, an item, a part.
    Rebuilt {
        what: &'static str,
    },
    Removed {
        kind: &'a str,
        why: Unsent<'a>,
    },
    ToldAsText {
        kind: &'a str,
        provider: &'a str,
    },
    IdRemoved {
        kind: &'a str,
        why: IdGone,
    },
    OriginAssumed,
    KeptByServer,

    // Thinking.
    /// `asked`: the options want it so.
    ThinkingTagged {
        asked: bool,
    },
    ThinkingRemoved {
        why: Thought,
        text: &'a str,
    },

    // Attachments.
    AttachmentRemoved {
        what: &'static str,
        why: &'a Unfit,
    },
    AttachmentMended {
        what: &'static str,
        how: &'a Mended,
    },
    ImageOmitted,
    TranscriptSent,
    MediaMoved(Moved),
    DocumentRenamed {
        to: &'a str,
    },
    DocumentWorded {
        text: &'a str,
    },

    // Turns.
    SaidByUser(Taken),
    /// A message of this role was added.
    TurnAdded {
        role: Role,
        text: &'a str,
    },
    BridgeAdded {
        text: &'a str,
    },
    NotContinued,
    Summarized {
        seq: u64,
    },
    CallSummarized,
    OutsideWindow {
        from: u64,
        to: u64,
    },
    ResultOutsideWindow,
    WindowExceeded {
        held: u64,
        limit: u64,
        unit: &'static str,
    },

    // A request as it was read.
    ContentAsText,
    ArgumentsAsText,
    SystemAsText,
    /// A string is in the place of a message; what the wire calls one.
    StringAsMessage {
        what: &'static str,
    },
    JsonAsMessage {
        what: &'static str,
    },
    ToolMessageAsOutput,
    /// A result without an id was taken for that of this call.
    ResultGiven {
        id: &'a str,
    },
    RoleTaken {
        name: Option<&'a str>,
        taken: Role,
    },

    // A request that was repaired.
    FieldUnknown {
        name: &'a str,
    },
    FieldForeign {
        name: &'a str,
        from: &'a str,
        target: &'a str,
    },
    FieldUnfit {
        name: &'a str,
        problem: &'a str,
    },
    FieldSet {
        name: &'a str,
        value: &'a str,
    },
    /// `given`: a model of the other wire.
    ModelNeeded {
        given: Option<&'a str>,
        target: &'a str,
    },
    ToolUndeclared {
        name: &'a str,
        problem: &'a str,
    },
    FieldRemoved {
        name: &'a str,
        refusal: Refusal,
    },
    FieldRebuilt {
        name: &'a str,
        refusal: Refusal,
    },
    /// Items of the list of messages, that no other line reports.
    ItemsAdded {
        why: &'a str,
    },
    ItemsRemoved {
        count: usize,
        why: &'a str,
    },
    ItemsRebuilt {
        count: usize,
        why: &'a str,
    },
    StillRefused {
        refusal: Refusal,
        cure: &'static str,
    },
}

impl Fact<'_> {
    /// A text that says nothing.
    pub(crate) const fn blank(text: &str) -> Self {
        if text.is_empty() { Self::TextEmpty } else { Self::TextBlank }
    }

    /// What programs know it by, and what it means for the reader.
    pub(crate) const fn class(&self) -> (Rule, Severity) {
        match self {
            Self::RecordDamaged { .. } => (Rule::DamagedRecord, Severity::Lost),
            Self::ErrorRemoved => (Rule::ErrorChunkRemoved, Severity::Lost),
            Self::MessageEmpty { .. } => (Rule::EmptyMessageRemoved, Severity::Note),
            Self::ResultMoved => (Rule::ResultMoved, Severity::Moved),
            Self::ResultRepeated => (Rule::DuplicateResultRemoved, Severity::Lost),
            Self::ResultUnpaired => (Rule::OrphanResultRemoved, Severity::Lost),
            Self::ResultMade { rule, .. } => (*rule, Severity::Added),
            Self::ItemAnswered { .. } | Self::CallClosed => (Rule::PendingAnswered, Severity::Added),
            Self::StillWritten => (Rule::StreamingTakenAsInterrupted, Severity::Note),
            Self::SurrogatesReplaced(_) => (Rule::SurrogateReplaced, Severity::Changed),
            Self::ArgumentsReplaced { .. } => (Rule::ArgumentsRepaired, Severity::Changed),
            Self::CallAsText { .. } => (Rule::CallAsText, Severity::Note),
            Self::SignatureMade => (Rule::SignatureMade, Severity::Added),
            Self::NameChanged { .. } | Self::DeclarationRenamed { .. } => (Rule::NameChanged, Severity::Changed),
            Self::RoundAsText => (Rule::FinishedToolFlattened, Severity::Changed),
            Self::RoundRemoved => (Rule::FinishedToolDropped, Severity::Lost),
            Self::OriginAssumed => (Rule::OriginAssumed, Severity::Note),
            Self::KeptByServer => (Rule::KeptByServer, Severity::Note),
            Self::ThinkingTagged { .. } => (Rule::ThinkingTagged, Severity::Changed),
            Self::ThinkingRemoved { why: Thought::Empty, .. } => (Rule::ThinkingLeftOut, Severity::Note),
            Self::ThinkingRemoved { .. } => (Rule::ThinkingLeftOut, Severity::Lost),
            Self::MediaMoved(_) => (Rule::MediaMoved, Severity::Moved),
            Self::SaidByUser(_) | Self::StringAsMessage { .. } | Self::RoleTaken { .. } => {
                (Rule::RoleChanged, Severity::Changed)
            }
            Self::TurnAdded { .. } => (Rule::TurnMade, Severity::Added),
            Self::BridgeAdded { .. } | Self::ItemsAdded { .. } => (Rule::BridgeAdded, Severity::Added),
            Self::NotContinued => (Rule::NotContinued, Severity::Note),
            Self::Summarized { .. } | Self::CallSummarized => (Rule::Summarized, Severity::Changed),
            Self::OutsideWindow { .. } => (Rule::OutsideWindow, Severity::Lost),
            Self::WindowExceeded { .. } => (Rule::WindowExceeded, Severity::Note),
            Self::StillRefused { .. } | Self::ModelNeeded { given: None, .. } => (Rule::StillRefused, Severity::Note),
            Self::ModelNeeded { given: Some(_), .. } => (Rule::StillRefused, Severity::Lost),
            Self::FieldSet { .. } => (Rule::FieldAdded, Severity::Added),
            Self::ResultOutsideWindow
            | Self::AnnotationsRemoved(_)
            | Self::CallNotAssistants { .. }
            | Self::CallUnended
            | Self::Removed { .. }
            | Self::AttachmentRemoved { .. }
            | Self::ImageOmitted
            | Self::FieldUnknown { .. }
            | Self::FieldForeign { .. }
            | Self::FieldUnfit { .. }
            | Self::ToolUndeclared { .. }
            | Self::FieldRemoved { .. }
            | Self::ItemsRemoved { .. } => (Rule::LeftOut, Severity::Lost),
            Self::TextEmpty => (Rule::LeftOut, Severity::Note),
            Self::TextBlank | Self::CallSignatureRemoved(_) | Self::ErrorFlagRemoved => {
                (Rule::LeftOut, Severity::Changed)
            }
            Self::EndTrimmed
            | Self::RefusalAsText
            | Self::CitedFilesRemoved
            | Self::CallFieldsRemoved(_)
            | Self::TextSignatureRemoved
            | Self::PartAsJson { .. }
            | Self::ResultShortened { .. }
            | Self::Rebuilt { .. }
            | Self::ToldAsText { .. }
            | Self::IdRemoved { .. }
            | Self::AttachmentMended { .. }
            | Self::TranscriptSent
            | Self::DocumentRenamed { .. }
            | Self::ContentAsText
            | Self::ArgumentsAsText
            | Self::SystemAsText
            | Self::JsonAsMessage { .. }
            | Self::ToolMessageAsOutput
            | Self::ResultGiven { .. }
            | Self::FieldRebuilt { .. }
            | Self::ItemsRebuilt { .. } => (Rule::Altered, Severity::Changed),
            Self::FailureWorded { .. } | Self::OutputWorded { .. } | Self::DocumentWorded { .. } => {
                (Rule::Altered, Severity::Added)
            }
            Self::OutputsJoined => (Rule::Altered, Severity::Moved),
        }
    }
}
