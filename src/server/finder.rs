//! What finds conversations by their words: a search index, opened when the first one is searched for.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use super::refusal::Refusal;
use crate::error::Result;
use crate::search::{Hit, SearchIndex, SearchQuery};
use crate::store::Store;

/// The most searches at one time. Each brings the index up to date, one after the other: others must not hold all threads of the
/// store meanwhile.
const SEARCHES: usize = 8;

/// The index that the pages search.
#[derive(Debug)]
pub(crate) struct Finder {
    /// Absent: it is in memory.
    directory: Option<PathBuf>,
    index: Mutex<Option<Arc<SearchIndex>>>,
    room: Semaphore,
}

impl Finder {
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self { directory, index: Mutex::default(), room: Semaphore::new(SEARCHES) }
    }

    /// The messages and titles of an owner that have all of the words. Cost: as [`Store::search`].
    pub(crate) fn find(&self, store: &Store, query: &SearchQuery) -> Result<Vec<Hit>, Refusal> {
        let busy = |_| Refusal::busy("the server is at its limit of searches; try again");
        let _room = self.room.try_acquire().map_err(busy)?;
        Ok(store.search(&*self.index()?, query)?)
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
