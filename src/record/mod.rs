//! Entries to bytes and back: the only code that knows the disk format. Described byte by byte in `docs/format.md`.
//!
//! To add a kind of entry: a constant and a struct in `v1.rs`, a variant of [`Line`], its row in [`Line::decode`]; from
//! `v1::NEEDED` on, if older programs must not pass over it. A new
//! version of the format: a file beside `v1.rs`, which stays as it is.

#[cfg(feature = "postgres")]
mod beside;
mod digest;
mod encode;
mod envelope;
mod head;
mod index;
pub(crate) mod key;
mod list;
mod read;
mod rewrite;
mod split;
#[cfg(test)]
mod tests;
mod text;
mod v1;

#[cfg(feature = "postgres")]
pub(crate) use beside::seal_entries;
pub(crate) use digest::{FORGOTTEN, digest};
pub(crate) use encode::{Body, Fragment};
pub(crate) use envelope::{VERSION, check_number, newer, open, seal};
pub(crate) use head::{
    Commit, ForkPoint, Head, Lag, Lost, Parent, Receipt, StoreInfo, TitleSource, Tombstone, owner_digest,
};
pub(crate) use index::{index_keys, is_unfinished, listed_micros};
pub(crate) use read::role;
pub(crate) use rewrite::{REDACTED, Replacement, is_redacted, mark_deleted, redact, truncate};
pub(crate) use split::{Header, Line, Origin, Record, at, seal_record};
pub(crate) use v1::{ChunkLine, Header as MessageHeader, InterruptCause, Meta, Redact, Remove, Rewind, Summary};
