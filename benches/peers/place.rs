//! Where the stores are made, and what they take there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A directory that goes when the value is dropped; below target/ unless `--dir` is given. A file system in memory is
/// refused: nothing is durable there.
pub(crate) fn directory(parent: Option<&Path>) -> Result<TempDir, String> {
    let parent = parent.unwrap_or(Path::new(env!("CARGO_TARGET_TMPDIR")));
    fs::create_dir_all(parent).map_err(|error| format!("create {}: {error}", parent.display()))?;
    let parent = parent.canonicalize().map_err(|error| format!("{}: {error}", parent.display()))?;
    if let Some(kind @ ("tmpfs" | "ramfs")) = file_system(&parent).as_deref() {
        return Err(format!("{} is on a {kind}: name a directory on a disk with --dir", parent.display()));
    }
    let made = tempfile::Builder::new().prefix("peers-").tempdir_in(&parent);
    made.map_err(|error| format!("make a directory in {}: {error}", parent.display()))
}

/// The kind of file system that a path is on, where the system reports it.
fn file_system(path: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let (_, kind) = fields.filter(|(point, _)| path.starts_with(point)).max_by_key(|(point, _)| point.len())?;
    Some(kind.to_owned())
}

/// The bytes that a directory takes on disk.
pub(crate) fn bytes_on_disk(path: &Path) -> u64 {
    let metadata = fs::metadata(path).unwrap();
    if !metadata.is_dir() {
        return metadata.blocks() * 512;
    }
    fs::read_dir(path).unwrap().map(|entry| bytes_on_disk(&entry.unwrap().path())).sum()
}

/// Makes the system forget what it has read from disk. False: it is not permitted.
pub(crate) fn drop_caches() -> bool {
    let synced = Command::new("sync").status().is_ok_and(|status| status.success());
    synced && fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

/// The most memory that this process has had, or has now, in MiB, where the system reports it.
pub(crate) fn memory(what: &str) -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? / 1024.0)
}

/// What the figures were measured on, in words.
pub(crate) fn machine(dir: &Path) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let (release, load) = (read("/proc/sys/kernel/osrelease"), read("/proc/loadavg"));
    let load = load.split(' ').next().unwrap_or_default();
    let system = file_system(dir).unwrap_or_default();
    format!("{} {release}, {cores} cores, {system}; load average at the end: {load}.", std::env::consts::OS)
}
