//! A disk of its own whose power can be cut: ext4 in a file, on a loop device.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::common::program::Writer;

/// The file has holes: it takes what is written to it.
const IMAGE: &str = "4G";

/// How the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The file system is shut down: no dirty page, and no journal, is written any more.
    Shutdown,
    /// The writer is stopped and the image copied as it is at one moment: for kernels without that call.
    Copy,
}

pub(crate) struct Disk {
    dir: TempDir,
    image: PathBuf,
    mounted: bool,
}

impl Disk {
    /// A new file system, mounted.
    pub(crate) fn new() -> Result<Self, String> {
        Self::of(IMAGE)
    }

    /// As [`Disk::new`], of a size.
    pub(crate) fn of(size: &str) -> Result<Self, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let image = dir.path().join("image");
        let mut disk = Self { image, dir, mounted: false };
        fs::create_dir(disk.mount_point()).map_err(|error| error.to_string())?;
        let image = disk.image.display().to_string();
        done(Command::new("truncate").args(["-s", size, &image]))?;
        done(Command::new("mkfs.ext4").args(["-qF", "-E", "lazy_itable_init=1,nodiscard", &image]))?;
        disk.mount()?;
        Ok(disk)
    }

    pub(crate) fn mount_point(&self) -> PathBuf {
        self.dir.path().join("mount")
    }

    /// A place outside of the disk.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Bytes that the image takes.
    pub(crate) fn used(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(&self.image).unwrap().blocks() * 512
    }

    /// Cuts the power under a writer. What was not on the disk is gone once it is mounted again.
    pub(crate) fn cut(&mut self, cut: Cut, writer: &Writer) {
        match cut {
            Cut::Shutdown => shutdown(&self.mount_point()).unwrap(),
            Cut::Copy => {
                writer.stop();
                let copy = self.dir.path().join("copy");
                // The kernel goes on writing, and a copy must be the disk of one moment: the one after the copy and before
                // the look whether the image is still the same.
                let is_one_moment = || {
                    done(Command::new("cp").arg("--sparse=always").args([&self.image, &copy])).unwrap();
                    done(Command::new("cmp").arg("--silent").args([&self.image, &copy])).is_ok()
                };
                assert!((0..100).any(|_| is_one_moment()), "the disk does not come to rest");
                self.image = copy;
            }
        }
    }

    /// Mounts what is on the disk after a cut. The writer is gone.
    pub(crate) fn remount(&mut self) {
        self.unmount().unwrap();
        let (copy, image) = (self.dir.path().join("copy"), self.dir.path().join("image"));
        if self.image == copy {
            fs::rename(copy, &image).unwrap();
            self.image = image;
        }
        self.mount().unwrap();
    }

    fn mount(&mut self) -> Result<(), String> {
        done(Command::new("mount").args(["-o", "loop"]).args([&self.image, &self.mount_point()]))?;
        self.mounted = true;
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), String> {
        done(Command::new("umount").arg(self.mount_point()))?;
        self.mounted = false;
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.mounted && self.unmount().is_err() {
            // A test failed with the writer still there: the mount goes with it.
            let _ = done(Command::new("umount").arg("--lazy").arg(self.mount_point()));
        }
    }
}

fn shutdown(mount_point: &Path) -> Result<(), String> {
    done(Command::new("xfs_io").args(["-x", "-c", "shutdown"]).arg(mount_point))
}

/// How the power of a disk can be cut here.
pub(crate) fn cut() -> Result<Cut, String> {
    let disk = Disk::new()?;
    Ok(if shutdown(&disk.mount_point()).is_ok() { Cut::Shutdown } else { Cut::Copy })
}

fn done(command: &mut Command) -> Result<(), String> {
    match command.output() {
        // xfs_io says what failed, and ends as if nothing had.
        Ok(Output { status, stderr, .. }) if status.success() && stderr.is_empty() => Ok(()),
        Ok(output) => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}
