//! Words to the messages and titles that have them: an index beside the store, derived from the log.
//!
//! `words` splits texts into words; `document` states what is in the index; `index` opens it; `refresh` brings it up to date;
//! `find` answers a query, and proves each hit in the store; `query` has what goes in and what comes out.
//! [`crate::documentation::search`] describes what it costs and what it does not do.

mod document;
mod find;
mod guard;
mod index;
mod query;
mod refresh;
mod words;

pub use index::SearchIndex;
pub use query::{Hit, Refreshed, SearchQuery};
