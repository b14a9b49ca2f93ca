//! What is acknowledged stays: kills, calls that fail, full disks, damage, and other programs' stores.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

#[cfg(feature = "sled")]
mod backup;
#[cfg(all(feature = "cli", feature = "sled", unix))]
mod damage;
mod directory;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod failing_calls;
#[cfg(all(feature = "sled", feature = "cli"))]
mod faults;
#[cfg(all(feature = "sled", feature = "fjall"))]
mod format;
#[cfg(all(feature = "sled", target_os = "linux"))]
mod full_disk;
#[cfg(all(feature = "cli", feature = "sled", unix))]
mod journal;
#[cfg(all(feature = "cli", unix))]
mod kill;
#[cfg(all(feature = "cli", feature = "sled", target_os = "linux"))]
mod unsynced;
#[cfg(all(feature = "cli", feature = "sled"))]
mod vacuum;
