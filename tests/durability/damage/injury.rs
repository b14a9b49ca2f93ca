//! What happens to a file.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::common::program::Dice;

pub(crate) const WATERMARK: &str = "watermark";
const PAGE: u64 = 4096;

/// What was done to which file of a store.
pub(crate) struct Injury {
    file: PathBuf,
    bytes: u64,
    kind: Kind,
    at: u64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Flip,
    Zero,
    Truncate,
}

impl Injury {
    /// Damages one file below a directory.
    pub(crate) fn inflict(directory: &Path, dice: &mut Dice) -> Self {
        let mut files = files(directory);
        // The largest one holds most of the data: every second injury is its.
        files.sort_by_key(|(path, bytes)| (*bytes, path.clone()));
        let largest = files.len() as u64 - 1;
        let at = if dice.below(2) == 0 { largest } else { dice.below(largest + 1) };
        let (file, bytes) = files.swap_remove(at as usize);
        let at = dice.below(bytes);
        let kind = [Kind::Flip, Kind::Zero, Kind::Truncate][dice.below(3) as usize];
        let open = File::options().read(true).write(true).open(&file).unwrap();
        match kind {
            Kind::Flip => {
                let mut byte = [0];
                open.read_exact_at(&mut byte, at).unwrap();
                byte[0] ^= 1 << dice.below(8);
                open.write_all_at(&byte, at).unwrap();
            }
            Kind::Zero => {
                let page = at / PAGE * PAGE;
                open.write_all_at(&vec![0; PAGE.min(bytes - page) as usize], page).unwrap();
            }
            Kind::Truncate => open.set_len(at).unwrap(),
        }
        Self { file: file.strip_prefix(directory).unwrap().to_owned(), bytes, kind, at }
    }
}

impl fmt::Display for Injury {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} of {} in {}", self.kind, self.at, self.bytes, self.file.display())
    }
}

/// All files below a directory that hold anything, with their lengths.
fn files(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::metadata(&path).unwrap();
        if metadata.is_dir() {
            found.extend(files(&path));
        } else if metadata.len() > 0 {
            found.push((path, metadata.len()));
        }
    }
    found
}
