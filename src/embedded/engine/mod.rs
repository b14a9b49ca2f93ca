//! Ordered bytes, written in atomic batches. An engine knows nothing of conversations.
//!
//! To add an engine: one file that implements [`Engine`] and passes `conformance.rs`, and one row in [`ENGINES`].
#![cfg_attr(
    not(any(feature = "fjall", feature = "sled")),
    allow(dead_code, reason = "directories, their locks and watermarks are there for engines that write to a disk")
)]

mod backup;
mod ballast;
#[cfg(test)]
mod conformance;
mod directory;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(any(feature = "fjall", feature = "sled"))]
mod guard;
mod memory;
#[cfg(feature = "sled")]
mod sled;
mod url;
mod watermark;

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use crate::error::Result;

pub(crate) use directory::{Directory, MARKER};
pub(crate) use memory::Memory;
pub(crate) use url::{Url, is_vacant, open};

/// Sorted keys and values. All calls block; all may be made from several threads at once, except that only one thread
/// writes.
pub(crate) trait Engine: Send + Sync + fmt::Debug {
    /// The value under a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Visits the keys of a range with their values, until the visitor breaks. What is written meanwhile may be seen or
    /// not. The visitor may call the engine.
    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()>;

    /// Writes all of a batch or nothing. Readers see it at once; a power cut may take it until [`Engine::sync`] returns.
    fn write(&self, batch: Batch) -> Result<()>;

    /// Everything written before survives a power cut once this returns.
    fn sync(&self) -> Result<()>;

    /// Whether it takes no writes at all.
    fn is_read_only(&self) -> bool {
        false
    }

    /// The directory in which the engine lives, if it has one.
    fn directory(&self) -> Option<&Directory>;
}

/// What a scan calls: with key and value.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// The order of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Ascending,
    Descending,
}

/// Puts (`Some`) and removals (`None`), applied in order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) ops: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Batch {
    pub(crate) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.ops.push((key, Some(value)));
    }

    pub(crate) fn remove(&mut self, key: Vec<u8>) {
        self.ops.push((key, None));
    }
}

/// A way to open an engine: its name in a URL, and the function.
struct Row {
    name: &'static str,
    open: fn(&Path, &Url) -> Result<Arc<dyn Engine>>,
}

/// All engines that have a path.
const ENGINES: &[Row] = &[
    #[cfg(feature = "sled")]
    Row { name: "sled", open: sled::open },
    #[cfg(feature = "fjall")]
    Row { name: "fjall", open: fjall::open },
    Row { name: "backup", open: backup::open },
];
