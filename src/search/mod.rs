//! Words to the messages and titles that have them: an index beside the store, derived from the log.
//!
//! `words` splits texts into words, and cuts off their endings; `document` states what is in the index; `index` opens it;
//! `refresh` brings it up to date; `query` is what is asked, and `find` answers it: the index names candidates, and the store
//! proves each of them; `excerpt` is the text around what was found. [`crate::documentation::search`] describes what it costs
//! and what it does not do.

mod document;
mod excerpt;
mod find;
mod index;
mod query;
mod refresh;
mod words;

pub use excerpt::Piece;
pub use find::{Found, Hit, SearchPage};
pub use index::SearchIndex;
pub use query::{SearchCursor, SearchIn, SearchQuery};
pub use refresh::Refreshed;
pub use words::Language;
