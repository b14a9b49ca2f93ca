//! What the fuzz targets share with the test that replays their findings.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a finding is a panic")]

#[path = "../common/mod.rs"]
mod common;
pub mod properties;
