//! How a server speaks this wire: what its manner may differ in from OpenAI's.

use crate::provider::tool_id::IdRule;
use crate::provider::{Target, dialect};

/// How a server speaks this wire. A dialect says only what it does otherwise than [`OPENAI`].
#[derive(Debug)]
pub(in crate::provider) struct Manner {
    /// The providers whose thinking is the server's own, by what they are called; first what their answers are stored
    /// under.
    pub(in crate::provider) providers: &'static [&'static str],
    pub(in crate::provider) ids: IdRule,
    /// Whether the content of system, assistant and tool messages may be an array.
    pub(in crate::provider) arrays: bool,
    pub(in crate::provider) user: UserContent,
    pub(in crate::provider) images: Images,
    /// Whether sound is taken.
    pub(in crate::provider) audio: bool,
    /// Whether documents are taken.
    pub(in crate::provider) files: bool,
    /// What `reasoning_content` holds beside calls where nothing was thought; none if there is no such field.
    pub(in crate::provider) reasoning_content: Option<&'static str>,
    /// Whether a refusal has a field of its own.
    pub(in crate::provider) refusal: bool,
    /// Whether content may be `null` beside calls; else it is an empty string.
    pub(in crate::provider) null: bool,
    pub(in crate::provider) texts: Texts,
    pub(in crate::provider) system: System,
    pub(in crate::provider) order: Order,
    /// Whether the tools of the history have to be declared.
    pub(in crate::provider) declares: bool,
}

impl Manner {
    pub(in crate::provider) fn of(target: Target) -> &'static Self {
        match target.dialect().map(|dialect| &dialect.manner) {
            Some(dialect::Manner::OpenAiChat(manner)) => manner,
            _ => &OPENAI,
        }
    }
}

/// The form of what the user says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::provider) enum UserContent {
    /// One text as a string, anything else as an array.
    Natural,
    /// An array only where there are images, sound or documents.
    Joined,
    /// Always an array, for messages that may grow.
    Array,
}

/// Which images are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::provider) enum Images {
    Never,
    /// Those that are in the request.
    Data,
    /// Those at an address too.
    Any,
}

/// Which texts are taken. An empty text is left out of a message anywhere; a tool's output may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::provider) enum Texts {
    Any,
    NotEmpty,
    /// None of white space only.
    NotBlank,
}

/// Where system messages are taken. Elsewhere the user says what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::provider) enum System {
    Anywhere,
    /// Not behind an assistant or tool message.
    NotBehindModel,
    /// One, at the beginning.
    First,
}

/// In what order roles may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::provider) struct Order {
    /// Whether the user begins, behind the system.
    pub(in crate::provider) begins: bool,
    /// Whether neighbours of one role become one message.
    pub(in crate::provider) merges: bool,
    /// Whether the assistant speaks between tools and the user.
    pub(in crate::provider) bridges: bool,
    /// Whether the user or a tool ends.
    pub(in crate::provider) ends: bool,
}

impl Order {
    pub(in crate::provider) const ANY: Self = Self { begins: false, merges: false, bridges: false, ends: false };
}

/// As OpenAI speaks it. The ids: OC-13.
pub(in crate::provider) const OPENAI: Manner = Manner {
    providers: &["openai"],
    ids: IdRule { min: 1, max: 40, allows: |character| !character.is_control() },
    arrays: true,
    user: UserContent::Natural,
    images: Images::Any,
    audio: true,
    files: true,
    reasoning_content: None,
    refusal: true,
    null: true,
    texts: Texts::Any,
    system: System::Anywhere,
    order: Order::ANY,
    declares: false,
};
