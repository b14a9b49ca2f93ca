//! Words to the messages and titles that have them: an index beside the store, derived from the log.
//!
//! `words` splits texts into words; `document` states what is in the index; `index` opens it; `refresh` brings it up to date;
//! `find` answers a query, and proves each hit in the store.
//! [`crate::documentation::search`] describes what it costs and what it does not do.

mod document;
mod find;
mod index;
mod refresh;
mod words;

pub use find::{Hit, Refreshed, SearchQuery};
pub use index::SearchIndex;
