//! What is erased together with a conversation, or something of it: an upstream's words for an error may quote what people said.

use std::fmt;
use std::sync::Arc;

use super::book::Book;
use crate::error::{Error, Result};
use crate::history::Cursor;
use crate::log::{Around, Log, Redaction, View};
use crate::model::Name;
use crate::server::keys::RESERVED;
use crate::store::Store;

/// A log whose deletions and redactions reach the books.
struct Erasing {
    log: Arc<dyn Log>,
    /// The same log, as a store.
    store: Store,
}

impl fmt::Debug for Erasing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.log.fmt(f)
    }
}

/// The store, whose deletions and redactions erase what the proxy keeps of the same.
#[must_use]
pub fn erasing(store: Store) -> Store {
    let inner = store.clone();
    store.around(|log| Erasing { log, store: inner })
}

impl Erasing {
    /// The conversation, if it can be read: of one that is damaged its owner is not known.
    fn view(&self, name: &Name) -> Result<Option<View>> {
        match self.log.view(name) {
            Err(Error::Corrupt { .. }) => Ok(None),
            view => view,
        }
    }

    fn forget(&self, view: Option<&View>) -> Result<()> {
        let Some(view) = view.filter(|view| !view.head.owner.starts_with(RESERVED)) else { return Ok(()) };
        match Book::known(&self.store, &view.head.owner)? {
            Some(book) => book.forget(view.id),
            None => Ok(()),
        }
    }
}

impl Around for Erasing {
    fn log(&self) -> &dyn Log {
        &*self.log
    }

    fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()> {
        let view = self.view(name)?;
        self.log.delete(name, at)?;
        self.forget(view.as_ref())
    }

    fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction> {
        let view = self.view(name)?;
        let redacted = self.log.redact(name, message, chunk);
        // Also what could be erased of a damaged one was erased.
        if !matches!(redacted, Err(Error::NotFound { .. })) {
            self.forget(view.as_ref())?;
        }
        redacted
    }
}
