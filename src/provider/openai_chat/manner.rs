//! How a server speaks this wire: what its manner may differ in from OpenAI's.

use crate::provider::check::shape::Shape;
use crate::provider::prompt::tool_id::IdRule;
use crate::provider::target::Target;

/// The wire's name, also where a chunk holds what the provider wrote.
pub(crate) const NAME: &str = "openai-chat";
/// OpenAI. Opaque chunks under this name are items of Responses.
pub(crate) const OPENAI_NAME: &str = "openai";

/// How a server speaks this wire. A dialect says only what it does otherwise than [`OPENAI`].
#[derive(Debug)]
pub(crate) struct Manner {
    /// The providers whose thinking is the server's own, by what they are called; first what their answers are stored
    /// under.
    pub(crate) providers: &'static [&'static str],
    pub(crate) ids: IdRule,
    /// The types of its messages, role by role, where they are not OpenAI's.
    pub(crate) types: Option<&'static [(&'static str, &'static Shape)]>,
    /// Whether the ids of a model's own calls go back to it however long they are: the limit is OpenAI's.
    pub(crate) own_ids: bool,
    /// Whether the content of system, assistant and tool messages may be an array.
    pub(crate) arrays: bool,
    pub(crate) user: UserContent,
    pub(crate) images: ImagesTaken,
    /// Whether the address of an image may stand without the object around it.
    pub(crate) image_strings: bool,
    /// Whether sound is taken.
    pub(crate) audio: bool,
    /// Whether documents are taken.
    pub(crate) files: bool,
    /// What `reasoning_content` holds beside calls where nothing was thought; none if there is no such field.
    pub(crate) reasoning_content: Option<&'static str>,
    /// Whether a refusal has a field of its own.
    pub(crate) refusal: bool,
    /// Whether content may be `null` beside calls; else it is an empty string.
    pub(crate) null: bool,
    pub(crate) texts: Texts,
    pub(crate) system: System,
    pub(crate) order: Order,
    /// Whether the tools of the history have to be declared.
    pub(crate) declares: bool,
}

impl Manner {
    pub(crate) fn of(target: Target) -> &'static Self {
        target.manner().unwrap_or(&OPENAI)
    }
}

/// The form of what the user says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserContent {
    /// One text as a string, anything else as an array.
    Natural,
    /// An array only where there are images, sound or documents.
    Joined,
    /// Always an array, for messages that may grow.
    Array,
}

/// Which images are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImagesTaken {
    Never,
    /// Those that are in the request.
    Data,
    /// Those at an address too.
    Any,
}

/// Which texts are taken. An empty text is left out of a message anywhere; a tool's output may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Texts {
    Any,
    NotEmpty,
    /// None of white space only.
    NotBlank,
}

/// Where system messages are taken. Elsewhere the user says what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Anywhere,
    /// Not after an assistant or tool message.
    NotBehindModel,
    /// One, at the beginning.
    First,
}

/// In what order roles may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// Whether the user begins, after the system.
    pub(crate) begins: bool,
    /// Whether neighbours of one role become one message.
    pub(crate) merges: bool,
    /// Whether the assistant speaks between tools and the user.
    pub(crate) bridges: bool,
    pub(crate) ends: Ends,
}

/// Who has to speak last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Anyone,
    /// The user or a tool.
    Asking,
    /// The user, a tool, or the assistant whose `prefix` is true: its words are gone on with.
    AskingOrPrefix,
}

impl Order {
    pub(crate) const ANY: Self = Self { begins: false, merges: false, bridges: false, ends: Ends::Anyone };
}

/// As OpenAI speaks it. The ids: OC-13.
pub(crate) const OPENAI: Manner = Manner {
    providers: &[OPENAI_NAME],
    ids: IdRule { min: 1, max: 40, allows: |character| !character.is_control() },
    types: None,
    own_ids: false,
    arrays: true,
    user: UserContent::Natural,
    images: ImagesTaken::Any,
    image_strings: false,
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

/// Whose answers a target's are.
pub(crate) fn provider(target: Target) -> &'static str {
    Manner::of(target).providers.first().copied().unwrap_or_default()
}

/// Under whose name a part of a content array is kept. OpenAI has two wires, and what one of them has is not the other's:
/// its parts have the name of this wire, so that they never go to Responses as items, nor items come here as parts.
pub(crate) fn of_parts(provider: &str) -> &str {
    if provider == OPENAI_NAME { NAME } else { provider }
}
