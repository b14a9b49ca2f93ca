//! Entries to bytes and back: the only code that knows the disk format. Described byte by byte in `docs/format.md`.
//!
//! To add a kind of entry: a constant and a struct in `v1.rs`, a variant of [`Line`], its row in [`Line::decode`]; from
//! `v1::NEEDED` on, if older programs must not pass over it. A new
//! version of the format: a file beside `v1.rs`, which stays as it is.

mod decode;
mod encode;
mod envelope;
mod head;
pub(crate) mod key;
mod records;
#[cfg(test)]
mod tests;
mod v1;

pub(crate) use decode::role;
pub(crate) use encode::{Body, Fragment};
pub(crate) use envelope::{VERSION, check_number, newer, open, seal};
pub(crate) use head::{
    Commit, ForkPoint, Head, Lag, Lost, Parent, Receipt, StoreInfo, TitleSource, Tombstone, index_keys, is_unfinished,
    listed_micros, owner_digest,
};
pub(crate) use key::{FORGOTTEN, digest};
#[cfg(feature = "postgres")]
pub(crate) use records::seal_entries;
pub(crate) use records::{
    Header, Line, Origin, REDACTED, Record, Replacement, at, is_redacted, mark_deleted, redact, seal_record, truncate,
};
pub(crate) use v1::{ChunkLine, Header as MessageHeader, InterruptCause, Meta, Redact, Remove, Rewind, Summary};
