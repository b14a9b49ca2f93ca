//! What a store asks of a log, and what every log does alike.

pub(crate) mod health;
pub(crate) mod limits;
pub(crate) mod list;
pub(crate) mod options;
pub(crate) mod results;
pub(crate) mod title;
pub(crate) mod verification;

pub use health::Health;
pub use limits::Limits;
pub use list::{Cursor, Fork, ListItem, ListPage, ListQuery};
pub use options::{AppendOptions, Durability, ExpectedHead};
pub use results::{BackupSummary, Item, Receipt, Redaction};
pub use verification::{Problem, Verification};
