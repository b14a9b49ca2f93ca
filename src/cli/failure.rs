use std::process::ExitCode;

use conversation_store::Error;
use serde::{Serialize, Serializer};

/// How the program ends: exit codes as `grep` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done, repairs included.
    Done = 0,
    /// Done, but the result needs a look: findings, problems, an answer that is an error.
    Findings = 1,
    /// The operation failed, or the command line or its input is wrong.
    Failed = 2,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why the program ends early, and what to do about it.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    /// The kind of failure, for programs: [`Error::code`], or one of the program's own.
    pub(super) code: &'static str,
    /// Empty if there is nobody to report to: the reader of the output has gone.
    pub(super) message: String,
    /// What to do, if the message does not state it.
    pub(super) cure: Option<String>,
}

/// The result of a command.
pub(super) type Outcome = Result<Exit, Failure>;

impl Failure {
    /// An operation failed.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new("failed", message)
    }

    /// The command line, or the input, is wrong.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new("usage", message)
    }

    /// The operation succeeded, and its result needs a look.
    pub(super) fn finding(code: &'static str, message: impl Into<String>) -> Self {
        Self { exit: Exit::Findings, ..Self::new(code, message) }
    }

    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, code, message: message.into(), cure: None }
    }

    /// The output could not be written. A reader that has gone, as `head` does, has what it wanted.
    pub(super) fn output(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self { exit: Exit::Done, ..Self::new("reader_gone", "") },
            _ => Self::new("io", format!("cannot write the output: {error}")),
        }
    }

    pub(super) fn is_reader_gone(&self) -> bool {
        self.message.is_empty()
    }

    #[must_use]
    pub(super) fn with_cure(mut self, cure: impl Into<String>) -> Self {
        self.cure = Some(cure.into());
        self
    }

    /// The same, at a place of the input.
    #[must_use]
    pub(super) fn at(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown<'a> {
            kind: &'static str,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            cure: Option<&'a str>,
            exit_code: u8,
        }
        let Self { exit, code, message, cure } = self;
        Shown { kind: code, message, cure: cure.as_deref(), exit_code: *exit as u8 }.serialize(serializer)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self::new(error.code(), error.to_string());
        match cure(&error) {
            Some(cure) => failure.with_cure(cure),
            None => failure,
        }
    }
}

/// What to do, if the error itself does not state it.
const fn cure(error: &Error) -> Option<&'static str> {
    match error {
        Error::NotFound { .. } => Some("`convo list` shows the conversations, `convo show CONVERSATION` the messages"),
        Error::StaleHead { .. } => Some("`convo show CONVERSATION` shows what is stored; look, then decide"),
        Error::NameTaken { .. } => {
            Some("`convo show CONVERSATION` shows what is stored under this name; choose another name, or append to it")
        }
        Error::KeyReused { .. } => Some("a repeated append needs the same content; give new content a new key"),
        Error::MessageClosed { .. } => Some("append a new message"),
        Error::BeingWritten { .. } => {
            Some("wait until the program that writes it finishes it; `convo unfinished` lists such messages")
        }
        Error::SharedByForks { .. } => Some("`convo list` shows the forks; `convo delete` removes them"),
        Error::StaleCursor { .. } => {
            Some("that conversation is gone: read the one that is there now from its beginning")
        }
        Error::CursorOutOfRange { .. } => {
            Some("--since 0 starts from the beginning; is it the same conversation, and the same store?")
        }
        Error::ReadOnly => Some("a backup is read-only: `convo restore` turns it into a store"),
        Error::Busy(_) => Some(
            "wait longer with --wait SECONDS, or end that process; for many programs at once, start `convo serve`, and use \
             --store http://127.0.0.1:8080",
        ),
        Error::OutcomeUnknown { .. } => Some("`convo show CONVERSATION` shows whether it is there"),
        Error::Corrupt { .. } => Some("`convo verify` shows what else is damaged; the rest can still be read"),
        Error::WentBack { .. } => Some(
            "`convo verify` shows what is left: restore a backup, or accept the loss with `convo verify --accept-loss`",
        ),
        Error::NothingToSend(_) => Some("`convo show CONVERSATION --raw` shows what is stored"),
        Error::LimitExceeded { .. } => Some("make it shorter, or split it"),
        _ => None,
    }
}
