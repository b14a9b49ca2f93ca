//! What finds conversations by their words: a search index, opened when the first one is searched for.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::search::{Hit, SearchIndex, SearchQuery};
use crate::store::Store;

/// The index that the pages search.
#[derive(Debug)]
pub(crate) struct Finder {
    /// Absent: it is in memory.
    directory: Option<PathBuf>,
    index: Mutex<Option<Arc<SearchIndex>>>,
}

impl Finder {
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self { directory, index: Mutex::default() }
    }

    /// The messages and titles of an owner that have all of the words. Cost: as [`Store::search`].
    pub(crate) fn find(&self, store: &Store, query: &SearchQuery) -> Result<Vec<Hit>> {
        store.search(&*self.index()?, query)
    }

    fn index(&self) -> Result<Arc<SearchIndex>> {
        let mut opened = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = &*opened {
            return Ok(Arc::clone(index));
        }
        let index = match &self.directory {
            Some(directory) => SearchIndex::open(directory)?,
            None => SearchIndex::in_memory()?,
        };
        Ok(Arc::clone(opened.insert(Arc::new(index))))
    }
}
