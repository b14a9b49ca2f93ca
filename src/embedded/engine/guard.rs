//! Engines panic when they meet damage or a failing disk. Their panics end here, as errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::error::{Error, Result};

/// Calls an engine. `action` names what it does.
pub(super) fn guarded<T>(path: &Path, action: &str, call: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| damaged(path, &format!("{action}: the engine panicked")))
}

/// The error of a store whose data does not fit together.
pub(super) fn damaged(path: &Path, detail: &str) -> Error {
    let detail = format!("{}: {detail}", path.display());
    Error::Corrupt { conversation: None, seq: None, detail }
}
