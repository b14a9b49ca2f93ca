//! A request that somebody has, broken ones too, to the messages in it.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::Target;
use super::check::NotJson;
use super::ingest::fields::{Fields, json, string};
use crate::error::{Error, Result};
use crate::history::{ReportLine, Rule};
use crate::model::{Body, Chunk, Message, Role};

/// The messages of a request.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Parsed {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// What could not be taken as it stands, and what it was taken for. Message indexes are positions in `messages`.
    pub notes: Vec<ReportLine>,
}

/// Reads the messages of a request: of a whole one, or of just the array of its messages.
///
/// It takes what it can: results without calls, contents that are `null`, arguments that are objects, roles of other
/// wires. What had to be taken for something else has its note; parts that are not known become opaque chunks, fields
/// that are not known become `extra`. Nothing is judged and nothing repaired: see [`super::check`] and [`super::repair`].
///
/// ```
/// use conversation_store::model::{Chunk, Role};
/// use conversation_store::provider::{Target, parse};
///
/// let request = r#"[{"role": "human", "content": "What time is it?"},
///                   {"role": "tool", "tool_call_id": "call_1", "content": "10:34"}]"#;
/// let parsed = parse(Target::OPENAI_CHAT, request)?;
/// assert_eq!(parsed.messages[1].chunks, [Chunk::tool_result("call_1", "10:34")]);
/// assert_eq!((parsed.messages[0].role, parsed.notes.len()), (Role::User, 1));
/// # Ok::<(), conversation_store::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` if the text is no JSON, or has no list of messages.
pub fn parse(target: Target, request: &str) -> Result<Parsed> {
    let text = Readable::of(request);
    Request::read(target, &text).map(|request| request.parsed)
}

/// A request's text as a JSON parser takes it: lone surrogate escapes are replaced.
#[derive(Debug)]
pub(super) struct Readable<'a>(Cow<'a, str>);

impl<'a> Readable<'a> {
    pub(super) fn of(request: &'a str) -> Self {
        Self(crate::model::json_text::replace_lone_surrogates(request.trim_start_matches('\u{feff}')))
    }
}

/// A request, taken apart.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// The names of its fields, in order.
    pub(super) names: Vec<String>,
    pub(super) parsed: Parsed,
    /// What is no part of the conversation.
    pub(super) rest: Fields<'a>,
}

impl<'a> Request<'a> {
    /// Takes a request apart. An array is that of the messages.
    pub(super) fn read(target: Target, text: &'a Readable<'_>) -> Result<Self> {
        let wire = target.wire();
        let request: &RawValue =
            serde_json::from_str(&text.0).map_err(|error| Error::InvalidInput(NotJson::from(error).to_string()))?;
        let fields = if request.get().starts_with('[') {
            Some(Fields::one(wire.messages, request))
        } else {
            Fields::of(request)
        };
        let mut rest = fields.ok_or_else(|| no_messages(wire.messages))?;
        let names = rest.names().map(str::to_owned).collect();
        let mut parsed = (wire.parse)(target, &mut rest)?;
        if matches!(text.0, Cow::Owned(_)) {
            let detail = "lone surrogate escapes in the request are no characters; U+FFFD stands in their place";
            parsed.notes.insert(0, ReportLine::new(Rule::SurrogateReplaced, detail));
        }
        Ok(Self { names, parsed, rest })
    }
}

/// The error of a request without a list of messages.
pub(super) fn no_messages(key: &str) -> Error {
    Error::InvalidInput(format!("no request: expected an object with an array `{key}`, or that array"))
}

/// The notes on one message.
#[derive(Debug)]
pub(super) struct Notes<'a> {
    message: u64,
    lines: &'a mut Vec<ReportLine>,
}

impl<'a> Notes<'a> {
    /// On the message of this index.
    pub(super) fn new(message: usize, lines: &'a mut Vec<ReportLine>) -> Self {
        Self { message: u64::try_from(message).unwrap_or(u64::MAX), lines }
    }

    pub(super) fn push(&mut self, rule: Rule, detail: impl Into<String>) {
        self.lines.push(ReportLine { message_index: Some(self.message), ..ReportLine::new(rule, detail) });
    }

    pub(super) fn of_call(&mut self, rule: Rule, id: &str, detail: impl Into<String>) {
        self.push(rule, detail);
        if let Some(line) = self.lines.last_mut() {
            line.tool_call_id = Some(id.to_owned());
        }
    }
}

/// The names of a wire's roles.
#[derive(Debug)]
pub(super) struct RoleNames {
    /// Those of each role: the wire's own, and what others call it.
    pub(super) known: &'static [(Role, &'static [&'static str])],
    /// Those that need no note: what is rendered has the same meaning.
    pub(super) same: &'static [&'static str],
}

/// What every role is called.
pub(super) const ROLES: &[(Role, &[&str])] = &[
    (Role::System, &["system", "developer"]),
    (Role::User, &["user", "human"]),
    (Role::Assistant, &["assistant", "ai", "model", "bot"]),
    (Role::Tool, &["tool", "function"]),
];

impl RoleNames {
    /// The role of this name, whatever its case.
    pub(super) fn find(&self, name: &str) -> Option<Role> {
        let lower = name.trim().to_lowercase();
        self.known.iter().find(|(_, names)| names.contains(&lower.as_str())).map(|(role, _)| *role)
    }

    /// The role of this name, or the guess.
    pub(super) fn role(&self, name: &str, guess: Role, notes: &mut Notes<'_>) -> Role {
        let role = self.find(name).unwrap_or(guess);
        if !self.same.contains(&name) {
            notes.push(Rule::RoleChanged, format!("there is no role {name:?}; it was taken for {role}"));
        }
        role
    }

    /// The role that a message names, or the guess.
    pub(super) fn take(&self, message: &mut Fields<'_>, guess: Role, notes: &mut Notes<'_>) -> Role {
        if let Some(name) = message.text("role") {
            return self.role(&name, guess, notes);
        }
        notes.push(Rule::RoleChanged, format!("the message has no role; it was taken for {guess}"));
        guess
    }
}

/// A content that is no array, whatever it is.
pub(super) fn words(raw: &RawValue, notes: &mut Notes<'_>) -> String {
    string(raw).unwrap_or_else(|| {
        notes.push(Rule::Altered, "the content is neither a string nor an array; its JSON text stands for it");
        raw.get().to_owned()
    })
}

/// What stands where a message should, or what the wire has for it: a string is what the user said; other JSON is kept as
/// an opaque chunk, `null` not at all.
pub(super) fn stranger(raw: &RawValue, what: &str, opaque: Option<Chunk>, notes: &mut Notes<'_>) -> Message {
    if let Some(text) = string(raw) {
        notes.push(Rule::RoleChanged, format!("a string in place of the {what}; it was taken for the user's"));
        return Message::user(text);
    }
    notes.push(Rule::Altered, format!("no {what}, but other JSON; it is an opaque chunk, and nothing if it is null"));
    Message::new(Role::User, opaque)
}

/// A value that is not known, as a chunk of its own.
pub(super) fn opaque(raw: &RawValue, kind: impl Into<String>, provider: &str) -> Option<Chunk> {
    Some(Body::Opaque { provider: provider.to_owned(), kind: kind.into(), json: json(raw)? }.into())
}
