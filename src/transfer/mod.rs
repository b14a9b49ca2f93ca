//! Conversations from other programs' files, and into them.
//!
//! `source` opens a file, a folder, an archive; `values` finds the JSON values in a stream of any length; a format
//! reads them into a `foreign` conversation, a tree; `keep` stores it, branch by branch. `import` drives them. One
//! conversation of an export is in memory at a time.
//!
//! **To add a format**: write its file in `formats/`, and its row in [`FORMATS`]. `docs/transfer.md` states what is
//! imported from each.

#[cfg(feature = "archives")]
mod archive;
#[cfg(feature = "archives")]
mod database;
mod export;
mod foreign;
mod format;
mod formats;
mod groups;
mod hand_over;
mod import;
mod keep;
mod recognise;
mod source;
mod take;
mod values;

pub use export::{ExportSummary, export, export_markdown};
pub use format::Format;
pub use hand_over::{Agent, HandedOver, hand_over};
pub use import::{ImportOptions, ImportSummary, Imported, Input, Progress, import, key};
pub use keep::Branches;

/// All formats, in the order in which a file is compared with them.
pub static FORMATS: &[Format] = &[
    formats::transcript::FORMAT,
    formats::chatgpt::FORMAT,
    formats::claude_ai::FORMAT,
    formats::claude_code::FORMAT,
    formats::codex::FORMAT,
    formats::rows::FORMAT,
    formats::open_webui::FORMAT,
    formats::librechat::FORMAT,
    formats::ai_sdk::FORMAT,
    formats::finetune::FORMAT,
    formats::sharegpt::FORMAT,
    formats::langchain::FORMAT,
    formats::pydantic_ai::FORMAT,
    formats::items::FORMAT,
    formats::llm::FORMAT,
    formats::markdown::FORMAT,
    formats::html::FORMAT,
];
