//! Conversations from other programs' files, and into them.
//!
//! `source` opens a file, a folder, an archive; `values` finds the JSON values in a stream of any length; a format reads
//! them into a `foreign` conversation, a tree; `keep` keeps it, branch by branch. `import` leads. Of an export one
//! conversation is in memory at a time.
//!
//! **To add a format**: its file in `formats/`, and its row in [`FORMATS`]. `docs/transfer.md` says what is taken from each.

mod database;
mod foreign;
mod format;
mod formats;
mod import;
mod keep;
mod source;
mod take;
mod values;

pub use format::Format;
pub use import::{ImportOptions, ImportSummary, Imported, Input, Progress, import, key};
pub use keep::Branches;

/// All formats, in the order in which a file is compared with them.
pub static FORMATS: &[Format] = &[
    formats::chatgpt::FORMAT,
    formats::claude_ai::FORMAT,
];
