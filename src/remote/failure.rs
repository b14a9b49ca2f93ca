//! An error on the way: its kind, its text, and its fields.

#[cfg(any(feature = "client", test))]
use std::collections::BTreeSet;
#[cfg(any(feature = "client", test))]
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Error;
#[cfg(any(feature = "client", test))]
use crate::model::Name;

/// An error on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// As [`Error::code`], or one of the server's own.
    #[serde(default)]
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) details: Map<String, Value>,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self { code: Some(error.code().to_owned()), message: error.to_string(), details: details(error) }
    }
}

/// The fields of an error, beside its text.
pub(crate) fn details(error: &Error) -> Map<String, Value> {
    let text = |value: &dyn std::fmt::Display| Value::from(value.to_string());
    let fields: Vec<(&str, Value)> = match error {
        Error::NotFound { what } => vec![("what", text(what))],
        Error::StaleHead { conversation, expected, actual } => {
            vec![("conversation", text(conversation)), ("expected", (*expected).into()), ("actual", (*actual).into())]
        }
        Error::NameTaken { conversation, actual } => {
            vec![("conversation", text(conversation)), ("actual", (*actual).into())]
        }
        Error::SharedByForks { conversation } | Error::StaleCursor { conversation } => {
            vec![("conversation", text(conversation))]
        }
        Error::CursorOutOfRange { conversation, cursor, last_seq } => {
            vec![("conversation", text(conversation)), ("cursor", (*cursor).into()), ("last_seq", (*last_seq).into())]
        }
        Error::KeyReused { conversation, key } => vec![("conversation", text(conversation)), ("key", text(key))],
        Error::MessageClosed { conversation, message_index, reason } => vec![
            ("conversation", text(conversation)),
            ("message_index", (*message_index).into()),
            ("reason", text(reason)),
        ],
        Error::BeingWritten { conversation, message_index } => {
            vec![("conversation", text(conversation)), ("message_index", (*message_index).into())]
        }
        Error::LimitExceeded { what, actual, limit } => {
            vec![("what", text(what)), ("actual", text(actual)), ("limit", text(limit))]
        }
        Error::Corrupt { conversation, seq, detail } => {
            let conversation = conversation.as_ref().map(|name| ("conversation", text(name)));
            let seq = seq.map(|seq| ("seq", seq.into()));
            conversation.into_iter().chain(seq).chain([("detail", text(detail))]).collect()
        }
        Error::UnsupportedVersion { what, found, supported } => {
            vec![("what", text(what)), ("found", (*found).into()), ("supported", (*supported).into())]
        }
        Error::WentBack { from, to } => vec![("from", (*from).into()), ("to", (*to).into())],
        Error::Poisoned { cause } | Error::OutcomeUnknown { cause } => vec![("cause", text(cause))],
        Error::Io { action, source } => vec![("action", text(action)), ("source", text(source))],
        Error::NothingToSend(cause) | Error::TooLarge(cause) => vec![("cause", text(cause))],
        Error::InvalidInput(_) | Error::Busy(_) | Error::ReadOnly | Error::Closed => Vec::new(),
    };
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A text of an error's that does not change: of all errors there are few, and each is kept once, for good. A server that
/// sends ever new ones gets a common one for them.
#[cfg(any(feature = "client", test))]
fn kept(text: &str) -> &'static str {
    const MOST: usize = 256;
    const MOST_BYTES: usize = 256;
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = crate::log::locked(&KEPT);
    match kept.get(text) {
        Some(known) => known,
        None if kept.len() >= MOST || text.len() > MOST_BYTES => "what the server names",
        None => {
            let new: &'static str = Box::leak(text.into());
            kept.insert(new);
            new
        }
    }
}

#[cfg(any(feature = "client", test))]
impl Failure {
    /// The error that it was. One of a kind that this program does not know is a failure of the server's.
    pub(crate) fn into_error(self) -> Error {
        self.known().unwrap_or_else(|error| error)
    }

    /// The error that it was; `Err` if this program does not know its kind.
    pub(crate) fn known(self) -> Result<Error, Error> {
        let Self { code, message, details } = self;
        let text = |name: &str| details.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let shown = |name: &str| kept(&text(name));
        let number = |name: &str| details.get(name).and_then(Value::as_u64).unwrap_or_default();
        let small = |name: &str| u32::try_from(number(name)).unwrap_or(u32::MAX);
        let conversation = || Name::from(text("conversation"));
        Ok(match code.as_deref().unwrap_or_default() {
            "not_found" => Error::NotFound {
                what: match text("what") {
                    what if what.is_empty() => message.trim_end_matches(" not found").to_owned(),
                    what => what,
                },
            },
            "stale_head" => Error::StaleHead {
                conversation: conversation(),
                expected: number("expected"),
                actual: number("actual"),
            },
            "name_taken" => Error::NameTaken { conversation: conversation(), actual: number("actual") },
            "shared_by_forks" => Error::SharedByForks { conversation: conversation() },
            "cursor_out_of_range" => Error::CursorOutOfRange {
                conversation: conversation(),
                cursor: number("cursor"),
                last_seq: number("last_seq"),
            },
            "stale_cursor" => Error::StaleCursor { conversation: conversation() },
            "key_reused" => Error::KeyReused { conversation: conversation(), key: text("key") },
            "message_closed" => Error::MessageClosed {
                conversation: conversation(),
                message_index: number("message_index"),
                reason: shown("reason"),
            },
            "being_written" => {
                Error::BeingWritten { conversation: conversation(), message_index: number("message_index") }
            }
            "invalid_input" => Error::InvalidInput(message),
            "limit_exceeded" | "body_too_large" => {
                Error::LimitExceeded { what: shown("what"), actual: text("actual"), limit: text("limit") }
            }
            "busy" | "rate_limit_exceeded" | "too_many_streams" | "slow_body" => Error::Busy(message),
            "corrupt" => Error::Corrupt {
                conversation: details.contains_key("conversation").then(conversation),
                seq: details.get("seq").and_then(Value::as_u64),
                detail: text("detail"),
            },
            "unsupported_version" => {
                Error::UnsupportedVersion { what: text("what"), found: small("found"), supported: small("supported") }
            }
            "went_back" => Error::WentBack { from: number("from"), to: number("to") },
            "poisoned" => Error::Poisoned { cause: text("cause") },
            "read_only" => Error::ReadOnly,
            "closed" => Error::Closed,
            "outcome_unknown" => Error::OutcomeUnknown { cause: text("cause") },
            "io" => Error::Io { action: text("action"), source: std::io::Error::other(text("source")) },
            "nothing_to_send" => Error::NothingToSend(text("cause")),
            "too_large" => Error::TooLarge(text("cause")),
            "invalid_api_key" | "missing_scope" => {
                Error::InvalidInput(format!("the server refuses the key: {message}"))
            }
            _ => {
                let (action, source) = ("ask the server".to_owned(), std::io::Error::other(message));
                return Err(Error::Io { action, source });
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ConversationId;

    #[test]
    fn every_error_is_the_same_at_the_other_end() {
        let id = ConversationId::new();
        let conversation = || Name::from("chat-42");
        let said = || "said".to_owned();
        let errors = [
            Error::NotFound { what: said() },
            Error::StaleHead { conversation: conversation(), expected: 1, actual: 2 },
            Error::NameTaken { conversation: Name::from(id), actual: u64::MAX },
            Error::SharedByForks { conversation: conversation() },
            Error::CursorOutOfRange { conversation: conversation(), cursor: 3, last_seq: 2 },
            Error::StaleCursor { conversation: conversation() },
            Error::KeyReused { conversation: conversation(), key: said() },
            Error::MessageClosed { conversation: conversation(), message_index: 1, reason: "it is finished" },
            Error::BeingWritten { conversation: conversation(), message_index: 1 },
            Error::InvalidInput(said()),
            Error::LimitExceeded { what: "a chunk", actual: said(), limit: said() },
            Error::Busy(said()),
            Error::Corrupt { conversation: Some(Name::from(id)), seq: Some(7), detail: said() },
            Error::Corrupt { conversation: None, seq: None, detail: said() },
            Error::UnsupportedVersion { what: said(), found: 2, supported: 1 },
            Error::WentBack { from: 1, to: 2 },
            Error::Poisoned { cause: said() },
            Error::ReadOnly,
            Error::Closed,
            Error::OutcomeUnknown { cause: said() },
            Error::Io { action: said(), source: std::io::Error::other("it failed") },
            Error::NothingToSend(said()),
            Error::TooLarge(said()),
        ];
        for error in errors {
            let text = serde_json::to_string(&Failure::from(&error)).unwrap();
            let back = serde_json::from_str::<Failure>(&text).unwrap().into_error();
            // An error of the operating system is its text at the other end.
            let shown = |error: &Error| match error {
                Error::Io { .. } => error.to_string(),
                error => format!("{error:?}"),
            };
            assert_eq!((shown(&back), back.to_string()), (shown(&error), error.to_string()));
        }
    }
}
