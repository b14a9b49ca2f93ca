//! `logs.db` of the program `llm`: `responses` are what its versions up to 0.31 wrote, `threads` what 0.32 writes. A
//! database that was upgraded has both; the id of a conversation is the id of its thread.
//!
//! Source: llm 0.32's `migrations.py`, `logs.py` and `docs/logging.md`. Columns that a version does not have are absent.

#[cfg(feature = "archives")]
mod responses;
#[cfg(feature = "archives")]
mod row;
#[cfg(feature = "archives")]
mod tables;
#[cfg(feature = "archives")]
mod threads;

use crate::transfer::format::{Format, Tables};

pub(crate) const FORMAT: Format = Format {
    name: "llm",
    about: "logs.db of the program llm",
    read: None,
    tables: Some(Tables {
        #[cfg(feature = "archives")]
        recognise: |database| Ok(database.has(&["conversations", "responses"])),
        #[cfg(feature = "archives")]
        read: tables::read,
    }),
    write: None,
};
