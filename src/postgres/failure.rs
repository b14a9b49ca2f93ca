//! What became of a call that has no answer: whether it may have taken effect, and whether it may be made again.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::error::Error;

/// The kind of a connection that was lost before its transaction was committed.
const LOST: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// Why a call has no answer.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// There was no connection: nothing was sent.
    Unreached(String),
    /// The server lets nobody in for this reason, which stays.
    NotLetIn(String),
    /// All connections are in use: so many.
    Exhausted(usize),
    /// The server refused it: it did not take effect.
    Refused { code: SqlState, message: String },
    /// The connection ended: it may have taken effect.
    Lost(String),
    /// No answer came in this time: it may have taken effect.
    Unanswered(Duration),
}

impl Failure {
    /// Of a statement that was sent.
    pub(super) fn of(error: &tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            // The server or the connection ends: a commit may be on its way already.
            Some(error) if ends_server(error.code()) || ends_connection(error) => Self::Lost(said(error)),
            Some(error) => Self::Refused { code: error.code().clone(), message: said(error) },
            None => Self::Lost(chain(error)),
        }
    }

    /// Of a connection that was not made.
    pub(super) fn of_connecting(error: &tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(error) if may_pass(error.code()) || ends_server(error.code()) => Self::Unreached(said(error)),
            Some(error) => Self::NotLetIn(said(error)),
            None => Self::Unreached(chain(error)),
        }
    }

    /// Whether the call may be made again, and may succeed then. `is_repeatable`: it may be made twice.
    pub(super) fn passes(&self, is_repeatable: bool) -> bool {
        match self {
            Self::Unreached(_) => true,
            Self::NotLetIn(_) | Self::Exhausted(_) => false,
            Self::Refused { code, .. } => may_pass(code),
            Self::Lost(_) | Self::Unanswered(_) => is_repeatable,
        }
    }

    /// Whether what was sent may have taken effect.
    pub(super) const fn may_have_effect(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Unanswered(_))
    }

    /// Whether nothing else may be sent through its connection.
    pub(super) fn spoils_connection(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Unanswered(_) => true,
            // It is no primary any more: another host may be.
            Self::Refused { code, .. } => {
                [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::INVALID_SQL_STATEMENT_NAME].contains(code)
            }
            Self::Unreached(_) | Self::NotLetIn(_) | Self::Exhausted(_) => false,
        }
    }

    /// The error for callers; `shown` is where the database is.
    pub(super) fn into_error(self, shown: &str) -> Error {
        let io = |action: &str, kind: io::ErrorKind, message: String| {
            Error::io(format!("{action} PostgreSQL at {shown}"))(io::Error::new(kind, message))
        };
        match self {
            Self::Unreached(cause) => io("connect to", io::ErrorKind::NotConnected, cause),
            Self::NotLetIn(cause) => io("connect to", io::ErrorKind::PermissionDenied, cause),
            Self::Exhausted(connections) => Error::Busy(format!(
                "all {connections} connections to PostgreSQL at {shown} are in use: try again, or open the store with a \
                 larger `pool`"
            )),
            Self::Refused { code, message } if may_pass(&code) || code == SqlState::QUERY_CANCELED => {
                Error::Busy(format!("PostgreSQL at {shown} did not get to it: {message}"))
            }
            Self::Refused { code, message } if is_of_shards(&code) => {
                Error::Busy(format!("PostgreSQL at {shown}: {message}"))
            }
            Self::Refused { code: SqlState::INVALID_TRANSACTION_STATE, message } => {
                Error::InvalidInput(format!("PostgreSQL at {shown}: {message}"))
            }
            Self::Refused { code, message } => io("use", kind(&code), message),
            Self::Lost(cause) => Error::OutcomeUnknown { cause: format!("PostgreSQL at {shown}: {cause}") },
            Self::Unanswered(limit) => Self::Lost(unanswered(limit)).into_error(shown),
        }
    }

    /// As [`Failure::into_error`], of a statement whose transaction is not committed: it has no effect.
    pub(super) fn into_error_without_effect(self, shown: &str) -> Error {
        let (kind, cause) = match self {
            Self::Lost(cause) => (LOST, cause),
            Self::Unanswered(limit) => (io::ErrorKind::TimedOut, unanswered(limit)),
            other => return other.into_error(shown),
        };
        Error::io(format!("use PostgreSQL at {shown}"))(io::Error::new(kind, cause))
    }
}

/// Whether an error says that a connection was lost, or gave no answer, before anything had an effect.
pub(super) fn is_lost_without_effect(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if [LOST, io::ErrorKind::TimedOut].contains(&source.kind()))
}

fn unanswered(limit: Duration) -> String {
    format!("no answer within {} s", limit.as_secs())
}

fn kind(code: &SqlState) -> io::ErrorKind {
    match *code {
        SqlState::INSUFFICIENT_PRIVILEGE => io::ErrorKind::PermissionDenied,
        SqlState::DISK_FULL => io::ErrorKind::StorageFull,
        SqlState::READ_ONLY_SQL_TRANSACTION => io::ErrorKind::ReadOnlyFilesystem,
        _ => io::ErrorKind::Other,
    }
}

/// Whether what was refused may be taken when it is sent again: others were in the way, or the server just starts, or is no
/// primary any more.
fn may_pass(code: &SqlState) -> bool {
    [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        // A pooler gave another connection than the one that the statement was prepared on.
        SqlState::INVALID_SQL_STATEMENT_NAME,
    ]
    .contains(code)
}

/// Whether the bucket of a conversation is not where it was looked for: `cluster.sql` has the codes.
fn is_of_shards(code: &SqlState) -> bool {
    code.code().starts_with("CSB")
}

fn ends_server(code: &SqlState) -> bool {
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN].contains(code) || code.code().starts_with("08")
}

/// Whether the connection ends with it. A server that cannot write its log says so in this way, and may have committed.
fn ends_connection(error: &DbError) -> bool {
    matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

/// What the server said, without its details: they may quote what is stored.
fn said(error: &DbError) -> String {
    format!("{} ({})", error.message(), error.code().code())
}

fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
