//! Where tests keep their files.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tempfile::TempDir;

/// Where tests keep what they need that are not about durability: in memory if there is enough of it, because they learn
/// nothing from a disk but how slow it is. `TMPDIR` names another place.
pub(crate) fn quick() -> &'static Path {
    const ENOUGH: u64 = 4 << 30;
    static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
        let memory = Path::new("/dev/shm");
        let free = |path| rustix::fs::statvfs(path).ok().map(|of| of.f_bavail * of.f_frsize);
        let is_quick = std::env::var_os("TMPDIR").is_none() && free(memory).is_some_and(|free| free >= ENOUGH);
        if is_quick { memory.to_owned() } else { std::env::temp_dir() }
    });
    &PLACE
}

/// A new directory for a test; it is removed with this value.
#[allow(dead_code, reason = "the library's own tests need only the place")]
pub(crate) fn tempdir() -> std::io::Result<TempDir> {
    tempfile::tempdir_in(quick())
}
