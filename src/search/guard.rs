//! Calls of the index and of the store: which errors end a search, and which only mean that something is not there.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tantivy::TantivyError;
use tantivy::directory::error::LockError;

use crate::error::{Error, Result};

/// Calls the index. It may panic when its files are damaged: that ends here, as an error.
pub(super) fn guarded<T>(call: impl FnOnce() -> tantivy::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(TantivyError::LockFailure(LockError::LockBusy, _))) => {
            Err(Error::Busy("another process writes the search index".to_owned()))
        }
        Ok(Err(TantivyError::IoError(error))) => {
            Err(Error::io("use the search index")(io::Error::new(error.kind(), error)))
        }
        Ok(Err(error)) => Err(damaged(&error.to_string())),
        Err(_) => Err(damaged("it panicked")),
    }
}

/// The error of an index whose files are damaged.
pub(super) fn damaged(problem: &str) -> Error {
    let detail = format!("the search index: {problem}; remove its directory: the next search makes it again");
    Error::Corrupt { conversation: None, seq: None, detail }
}

/// What the store has, or nothing if that is gone, was replaced, or is damaged.
pub(super) fn found<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(
            Error::NotFound { .. }
            | Error::StaleCursor { .. }
            | Error::CursorOutOfRange { .. }
            | Error::Corrupt { .. }
            | Error::UnsupportedVersion { .. },
        ) => Ok(None),
        Err(error) => Err(error),
    }
}
