//! Why a call fails.

use crate::error::Error;

/// Why a call failed, in words for the model.
#[derive(Debug)]
pub(super) enum Wrong {
    Argument(String),
    Store(Error),
}

impl Wrong {
    pub(super) fn argument(name: &str, problem: &str) -> Self {
        Self::Argument(format!("{name}: {problem}"))
    }
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Argument(problem) => f.write_str(problem),
            Self::Store(error) => error.fmt(f),
        }
    }
}
