//! Why something was done, as far as a fact has several reasons.

use crate::model::{Body, Role};

/// A rule by which a target refuses something.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) rule: &'static str,
    pub(crate) problem: String,
}

/// Why a provider's own block, item, part or field is not sent.
#[derive(Clone, Debug)]
pub(crate) enum Unsent<'a> {
    /// It is this provider's, and holds nothing that other models could read.
    Foreign(&'a str),
    Refused(Refusal),
    /// A message of this role does not hold it, at this target.
    NotInRole(Role, &'a str),
    NoId,
    /// By which rule, where one says so.
    IdUsed(Option<&'static str>),
    IdForeign,
    ResultMissing,
    /// By which rule.
    CallMissing(&'static str),
    CallerMissing,
    CallRemoved,
    /// By which rule.
    Unanswered(&'static str),
    ByCaller,
    WithoutReasoning,
    NotTyped,
    BesideMessage,
    FieldTaken,
    Alone,
    Blank,
    /// Of fields of a call.
    Changed,
    Unreadable,
}

impl<'a> Unsent<'a> {
    /// What a chunk is called that a message of this role does not hold at the target, which takes the own items of these
    /// providers; and why it is not sent.
    pub(crate) fn of(body: &'a Body, role: Role, target: &'a str, providers: &[&str]) -> (&'a str, Self) {
        match body {
            Body::Opaque { provider, kind, .. } if !providers.contains(&provider.as_str()) => {
                (kind, Self::Foreign(provider))
            }
            Body::Opaque { kind, .. } => (kind, Self::NotInRole(role, target)),
            body => (body.kind(), Self::NotInRole(role, target)),
        }
    }
}

/// Why thinking is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thought {
    AsAsked,
    WithCalls,
    Foreign,
    Encrypted,
    Unsigned,
    NotForModel,
    OutOfPlace,
    /// Of a turn before those whose thinking was asked for.
    OlderTurn,
    NothingFollows,
    /// Its item has no more than the server's id, which cannot be sent.
    ByServer,
    NoPlace,
    /// It is encrypted, and has no words.
    NoText,
    /// There is nothing in it.
    Empty,
}

/// Why a call's signature is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsigned {
    /// The wire's calls have none.
    NoPlace,
    Foreign,
    NotOne,
}

/// Why citations are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cited {
    NoPlace,
    OwnOnly,
    AssistantOnly,
}

/// Where lone surrogate escapes were replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surrogates {
    Request,
    /// Of a message that was appended.
    #[cfg(feature = "server")]
    Chunk,
    Block,
    Arguments,
}

/// What is wrong with arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    NotAnObject,
    TooDeep,
    RepeatedKey,
    Number,
}

/// Why media stand in a later place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// A message of this role does not hold them.
    Role(Role),
    /// A tool's result does not.
    Result,
    /// A tool's result that failed does not.
    Failure,
}

/// Why a user message says what another role said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    ToolMessage,
    LaterSystem,
}

/// Why an item's id is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdGone {
    Used,
    WithReasoning,
}

/// Why an attachment is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    NotTaken,
    NoTranscript,
    NoAddress,
    AddressNotTaken(String),
    AddressOnly,
    NoData,
    NotBase64,
    UrlNotBase64,
    NotUtf8,
    Blank,
    /// What its bytes or its label show, and what is taken.
    Shows(String, &'static str),
    /// How its type is called, and what it is not.
    Type(String, &'static str),
    TypeUnknown,
    /// Its bytes are those of no image that is taken; how it is labelled.
    NoImage(String),
    /// Bytes as base64, and how many are taken.
    Long(usize, usize),
    /// Pixels of its longer side, and how many are taken.
    Wide(u32, u32),
    /// The same, and among more than how many images.
    WideAmong(u32, u32, usize),
    /// How many of what are taken.
    Many(usize, &'static str),
}

/// How an attachment was changed so that the target takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mended {
    Canonical,
    /// Bare base64 became a data URL of this type.
    Bare(String),
    /// How it is labelled, and what its bytes show.
    Labelled(String, String),
    /// How text is labelled that is sent as plain text.
    TextLabelled(String),
    Decoded,
    LongTitle,
    AddressHasNoName,
    NoNames,
}
