//! The one way to sled: its panics stop here, and its errors become ours.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::super::guard::{damaged, guarded};
use super::watch::Watch;
use crate::error::{Error, Result};

/// An open sled. It panics when it meets damage or a failing disk.
pub(super) struct Handle {
    /// Dropped first: its thread has the store open too. Absent only during the drop.
    watch: Option<Watch>,
    /// Absent only during the drop.
    db: Option<sled::Db>,
}

/// Without the stored data: sled would print all of it.
impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("watch", &self.watch).finish_non_exhaustive()
    }
}

impl Handle {
    pub(super) fn open(config: &sled::Config, path: &Path) -> Result<sled::Result<Self>> {
        let db = match guarded(path, "open", || config.open())? {
            Ok(db) => db,
            Err(error) => return Ok(Err(error)),
        };
        let watch = Watch::start(config.clone(), db.clone())?;
        Ok(Ok(Self { watch: Some(watch), db: Some(db) }))
    }

    /// Hands everything to the operating system.
    pub(super) fn flush(&self, path: &Path) -> Result<()> {
        let flush = || self.call(path, "flush", |tree| tree.flush()).map(|_| ());
        self.watch.as_ref().map_or_else(flush, |watch| watch.flush(flush))
    }

    pub(super) fn call<T>(
        &self,
        path: &Path,
        action: &str,
        call: impl FnOnce(&sled::Tree) -> sled::Result<T>,
    ) -> Result<T> {
        let tree = self.db.as_deref().ok_or_else(|| damaged(path, "it is closed"))?;
        guarded(path, action, || call(tree))?.map_err(|error| from_sled(action, path, error))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        drop(self.watch.take());
        let db = self.db.take();
        // What was acknowledged is on the disk. sled syncs once more, and panics if it cannot.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(db)));
    }
}

pub(super) fn from_sled(action: &str, path: &Path, error: sled::Error) -> Error {
    match error {
        sled::Error::Io(source) => {
            Error::Io { action: format!("{action} the store {}", path.display()), source: plain(source) }
        }
        error => damaged(path, &format!("{action}: {error}")),
    }
}

/// The operating system's error that sled turned into text: `Os { code: 28, kind: ..`.
fn plain(error: io::Error) -> io::Error {
    let text = error.to_string();
    let code = text.strip_prefix("Os { code: ").and_then(|rest| rest.split(',').next()?.parse().ok());
    code.map_or(error, io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_operating_system_read_as_such() {
        for error in [io::Error::from_raw_os_error(28), io::Error::other("something else")] {
            let cloned = sled::Error::Io(io::Error::new(error.kind(), format!("{error:?}")));
            let Error::Io { source, .. } = from_sled("flush", Path::new("db"), cloned) else { panic!("an I/O error") };
            assert_eq!(source.raw_os_error(), error.raw_os_error());
        }
    }
}
