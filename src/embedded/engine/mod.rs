//! Ordered bytes, written in atomic batches. An engine knows nothing of conversations.
//!
//! To add an engine: one file that implements [`Engine`] and passes `conformance.rs`, and one row in `table.rs`.
#![cfg_attr(
    not(any(feature = "fjall", feature = "sled")),
    allow(dead_code, reason = "directories, their locks and watermarks are there for engines that write to a disk")
)]

mod ballast;
#[cfg(test)]
mod conformance;
mod contract;
mod directory;
#[cfg(feature = "fjall")]
mod fjall;
mod journal;
mod memory;
#[cfg(feature = "sled")]
mod sled;
mod swap;
mod table;
mod url;
mod vacuum;
mod watermark;

pub(crate) use crate::log::Order;
#[cfg(test)]
pub(crate) use contract::Visit;
pub(crate) use contract::{Batch, Engine, LARGE_BYTES};
pub(crate) use directory::{Directory, MARKER, half_restored};
#[cfg(test)]
pub(crate) use memory::Memory;
pub(crate) use table::{is_vacant, open, open_to_restore};
pub(crate) use vacuum::vacuum;
