//! The target of a request: a wire, and a dialect of it. Also the types of the rows of both tables.

use std::any::Any;
use std::fmt;

use serde_json::Value;
use serde_json::value::RawValue;

use super::check::findings::Findings;
use super::check::rule::{Overrides, ProtocolRule};
use super::prompt::options::PromptOptions;
use super::prompt::tool_id::NameRule;
use super::read::answer::Decode;
use super::read::forms::{GrowingTexts, ToolForm};
use super::read::parsed::{Given, Parsed};
use crate::error::Result;
use crate::history::{ReportLine, StoredMessage};
use crate::json::fields::Fields;
use crate::model::FinishReason;

/// A request format: its name, its rules, its functions, and what it calls the things that all wires have.
#[derive(Debug)]
pub struct Wire {
    /// Name as in `--for`, for example `openai-chat`.
    pub name: &'static str,
    /// Whose it is, for people.
    pub about: &'static str,
    /// When a request is refused, or accepted with a loss.
    pub rules: &'static [&'static ProtocolRule],
    /// The key of the request under which its messages stand. An array in place of a request is taken as theirs.
    pub(super) messages: &'static str,
    /// The rule that an unknown field of the request breaks.
    pub(super) parameters: &'static ProtocolRule,
    /// The rule that a lone surrogate breaks, in any string of the request.
    pub(super) surrogates: &'static ProtocolRule,
    /// Judges a request by all other rules.
    pub(super) check: fn(Target, &Value, &mut Findings),
    /// Renders reconciled messages.
    pub(super) render: Render,
    /// Whether one message may hold several steps of tools that a provider ran itself. If not, the steps are separated
    /// first.
    pub(super) joins_steps: bool,
    /// Whether an object, or an event of this name, is of an answer of this wire and of no other.
    pub(super) is_of_answer: fn(&str, &Fields<'_>) -> bool,
    /// The provider whose answers a target gives: their thinking is the target's own.
    pub(super) provider: fn(Target) -> &'static str,
    /// Makes a decoder of a provider's answers.
    pub(super) decode: fn(&'static str) -> Box<dyn Decode>,
    /// Takes the messages out of a request's fields. What it leaves there is no part of the conversation.
    pub(super) parse: for<'a> fn(Target, Given<'a>) -> Result<(Parsed, Fields<'a>)>,
    /// How its requests declare tools.
    pub(super) tools: ToolForm,
    /// What a target takes as a tool's name.
    pub(super) names: fn(Target) -> NameRule,
    /// Its answers' words for why the model stopped, without those that transcripts also have.
    pub(super) reasons: &'static [(&'static str, FinishReason)],
    /// Which texts of its streams grow.
    pub(super) growing: GrowingTexts,
}

type Render = fn(Target, &[StoredMessage], &PromptOptions) -> Result<(Box<RawValue>, Vec<ReportLine>)>;

/// A server's way of speaking a wire.
#[derive(Debug)]
pub struct Dialect {
    /// Name as in `--for openai-chat/deepseek`, here `deepseek`.
    pub name: &'static str,
    /// Whose servers speak it, for people.
    pub about: &'static str,
    /// Name of the wire it speaks.
    pub wire: &'static str,
    /// Its own rules; those of the wire hold as well.
    pub rules: &'static [&'static ProtocolRule],
    /// Fields of its requests that the wire's inventor does not have.
    pub(super) parameters: &'static [&'static str],
    /// How it takes the rules of the wire.
    pub(super) overrides: Overrides,
    /// Judges a request, its messages under their key, by its own rules.
    pub(super) check: fn(&Value, &mut Findings),
    /// How it speaks: the `Manner` of its wire's folder, which the wire's own functions ask for.
    pub(super) manner: &'static (dyn Any + Send + Sync),
}

impl Dialect {
    /// One without rules and parameters of its own.
    pub(super) const fn plain(
        name: &'static str,
        about: &'static str,
        wire: &'static str,
        manner: &'static (dyn Any + Send + Sync),
    ) -> Self {
        let overrides = Overrides::NONE;
        Self { name, about, wire, rules: &[], parameters: &[], overrides, check: |_, _| {}, manner }
    }
}

/// A wire, and the dialect of it where one is spoken.
///
/// Written `openai-chat` or `openai-chat/deepseek`:
///
/// ```
/// use conversation_store::provider::Target;
///
/// let target: Target = "openai-chat/deepseek".parse()?;
/// assert_eq!(target.to_string(), Target::OPENAI_CHAT.with_dialect("deepseek")?.to_string());
/// # Ok::<(), conversation_store::provider::UnknownTarget>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Target {
    wire: &'static Wire,
    dialect: Option<&'static Dialect>,
}

impl Target {
    /// The wire, as its inventor speaks it.
    pub(super) const fn of(wire: &'static Wire) -> Self {
        Self { wire, dialect: None }
    }

    /// The wire in that dialect, which must be one of it.
    pub(super) const fn speaking(self, dialect: &'static Dialect) -> Self {
        Self { dialect: Some(dialect), ..self }
    }

    /// How the dialect speaks its wire: `None` without a dialect, and where it says nothing in the wire's own terms.
    pub(super) fn manner<M: Any>(self) -> Option<&'static M> {
        self.dialect.and_then(|dialect| dialect.manner.downcast_ref())
    }

    /// The wire.
    #[must_use]
    pub fn wire(self) -> &'static Wire {
        self.wire
    }

    /// The dialect. `None` is the wire as its inventor speaks it.
    #[must_use]
    pub fn dialect(self) -> Option<&'static Dialect> {
        self.dialect
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wire.name)?;
        self.dialect.map_or(Ok(()), |dialect| write!(f, "/{}", dialect.name))
    }
}
