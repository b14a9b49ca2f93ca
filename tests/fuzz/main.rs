//! What fuzzing found stays found: its inputs are kept, and replayed here.
//!
//! `cargo fuzz run --fuzz-dir tests/fuzz -s none TARGET` looks for more (`cargo install cargo-fuzz`). A finding is mended,
//! its input made small (`cargo fuzz tmin`), and put into `regressions/TARGET` under a name that says what it was.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "the fuzz targets reach the properties through a library")]

#[path = "../common/mod.rs"]
mod common;
mod properties;

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};

use properties::ALL;

fn inputs(folder: &str, property: &str) -> Vec<PathBuf> {
    let folder = Path::new("tests/fuzz").join(folder).join(property);
    let files = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    files
}

#[test]
fn what_was_found_stays_mended() {
    let mut replayed = 0;
    let mut failed = Vec::new();
    for property in ALL {
        for path in ["seeds", "regressions"].into_iter().flat_map(|folder| inputs(folder, property.name)) {
            replayed += 1;
            let bytes = fs::read(&path).unwrap();
            if panic::catch_unwind(|| (property.holds)(&bytes)).is_err() {
                failed.push(path);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(replayed > 3, "{replayed} inputs");
}

#[test]
fn every_property_has_its_target() {
    let manifest = fs::read_to_string("tests/fuzz/Cargo.toml").unwrap();
    for property in ALL {
        assert!(manifest.contains(&format!("path = \"targets/{}.rs\"", property.name)), "{}", property.name);
    }
    // That of imports needs its feature.
    let hidden = usize::from(!cfg!(feature = "transfer"));
    assert_eq!(fs::read_dir("tests/fuzz/targets").unwrap().count(), ALL.len() + hidden);
}
