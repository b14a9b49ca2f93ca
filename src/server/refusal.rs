//! Why a request fails: one form for both APIs, and one table from the store's errors.

use std::io::ErrorKind;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::keys::Scope;
use super::schemas::Object;
use crate::error::Error;
use crate::remote::failure::details;

/// Why a request fails.
///
/// As JSON: `{"error": {"message", "type", "param", "code", "details"?}}`, as OpenAI's SDKs read it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    /// The wrong field or parameter.
    pub(crate) param: Option<String>,
    /// What a client decides by.
    pub(crate) code: Option<&'static str>,
    /// Further fields of the error, for programs.
    pub(crate) details: Map<String, Value>,
    /// Seconds after which another attempt may succeed.
    pub(crate) retry_after: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(status: u16, code: impl Into<Option<&'static str>>, message: impl Into<String>) -> Self {
        let (message, code) = (message.into(), code.into());
        Self { status, message, param: None, code, details: Map::new(), retry_after: None }
    }

    /// 400, with the wrong parameter.
    pub(crate) fn invalid(param: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..Self::new(400, code, message) }
    }

    /// 400, with a parameter that has a wrong value.
    pub(crate) fn value(param: impl Into<String>, problem: &str) -> Self {
        let param = param.into();
        let message = format!("Invalid '{param}': {problem}.");
        Self::invalid(param, "invalid_value", message)
    }

    /// 400, without a parameter that has to be there.
    pub(crate) fn missing(param: &str) -> Self {
        Self::invalid(param, "missing_required_parameter", format!("Missing required parameter: '{param}'."))
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, "not_found", message)
    }

    /// 503, to be tried again.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self { retry_after: Some(1), ..Self::new(503, "busy", message) }
    }

    pub(crate) fn missing_scope(scope: Scope) -> Self {
        Self::new(403, "missing_scope", format!("this key lacks the scope `{}`", scope.as_str()))
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "internal", message)
    }

    pub(crate) fn at(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    pub(crate) fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// OpenAI's name for the side that caused the error.
    fn kind(&self) -> &'static str {
        match self.status {
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// Whether the same request may succeed later. OpenAI's SDKs repeat a request after 408, 409, 429 and 5xx unless
    /// the answer asks them not to.
    pub(crate) const fn may_be_repeated(&self) -> bool {
        self.retry_after.is_some()
    }

    /// The body.
    pub(crate) fn body(&self) -> Body<'_> {
        let Self { message, param, code, details, .. } = self;
        let (code, param) = (*code, param.as_deref());
        Body { error: Fields { code, details, message, param, kind: self.kind() } }
    }
}

/// A refusal as JSON.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct Body<'a> {
    error: Fields<'a>,
}

#[derive(Serialize, JsonSchema)]
struct Fields<'a> {
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "Object")]
    details: &'a Map<String, Value>,
    message: &'a str,
    param: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// The status of each kind of the store's errors; their codes are [`Error::code`]. `docs/http-api.md` has the table for
/// people.
fn status(error: &Error) -> u16 {
    match error {
        Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull => 503,
        Error::InvalidInput(_) => 400,
        Error::NotFound { .. } => 404,
        Error::NameTaken { .. }
        | Error::SharedByForks { .. }
        | Error::MessageClosed { .. }
        | Error::BeingWritten { .. } => 409,
        Error::CursorOutOfRange { .. } | Error::StaleCursor { .. } => 410,
        Error::StaleHead { .. } => 412,
        Error::LimitExceeded { .. } | Error::TooLarge(_) => 413,
        Error::KeyReused { .. } | Error::NothingToSend(_) => 422,
        Error::Corrupt { .. } | Error::UnsupportedVersion { .. } | Error::Io { .. } => 500,
        Error::Busy(_)
        | Error::ReadOnly
        | Error::Closed
        | Error::Poisoned { .. }
        | Error::WentBack { .. }
        | Error::OutcomeUnknown { .. } => 503,
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let refusal = Self { details: details(&error), ..Self::new(status(&error), error.code(), error.to_string()) };
        match error {
            Error::Busy(_) | Error::OutcomeUnknown { .. } => Self { retry_after: Some(1), ..refusal },
            // The operator must act: an immediate repetition is of no use.
            Error::ReadOnly | Error::Closed | Error::Poisoned { .. } | Error::WentBack { .. } => {
                Self { retry_after: Some(30), ..refusal }
            }
            // A full disk.
            Error::Io { .. } if refusal.status == 503 => Self { retry_after: Some(30), ..refusal },
            _ => refusal,
        }
    }
}
