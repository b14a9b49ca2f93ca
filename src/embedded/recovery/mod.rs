//! A store as a whole: opened, repaired, verified, backed up.
//!
//! `open` decides whether what is there is the store that was there before, and finishes what a crash left or damage
//! took. `verify` reports what does not fit together; `backup` copies what is there, and fills a new store.

mod backup;
mod open;
mod verify;

pub(crate) use backup::{backup, restore};
pub(crate) use open::open;
#[cfg(test)]
pub(crate) use open::rebuild_all;
pub(crate) use verify::verify;
