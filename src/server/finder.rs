//! What finds conversations by their words: a search index, opened when the first one is searched for.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;

use crate::error::{Error, Result};
use crate::log::locked;
use crate::search::{Language, SearchIndex, SearchPage, SearchQuery};
use crate::store::Store;

/// The most searches at one time. Each brings the index up to date, one after the other: others must not hold all threads of the
/// store meanwhile.
const SEARCHES: usize = 8;

/// The index of what is searched.
#[derive(Debug)]
pub(crate) struct Finder {
    /// Absent: it is in memory.
    directory: Option<PathBuf>,
    /// Absent: the one that the index has.
    language: Option<Language>,
    index: Mutex<Option<Arc<SearchIndex>>>,
    room: Semaphore,
}

impl Finder {
    pub(crate) fn new(directory: Option<PathBuf>, language: Option<Language>) -> Self {
        Self { directory, language, index: Mutex::default(), room: Semaphore::new(SEARCHES) }
    }

    /// The messages and titles of an owner that have all of the words. Cost: as [`Store::search`].
    pub(crate) fn find(&self, store: &Store, query: &SearchQuery) -> Result<SearchPage> {
        let busy = |_| Error::Busy("the server is at its limit of searches; try again".to_owned());
        let _room = self.room.try_acquire().map_err(busy)?;
        store.search(&*self.index()?, query)
    }

    fn index(&self) -> Result<Arc<SearchIndex>> {
        let mut opened = locked(&self.index);
        if let Some(index) = &*opened {
            return Ok(Arc::clone(index));
        }
        let index = match &self.directory {
            Some(directory) => SearchIndex::open_in(directory, self.language)?,
            None => SearchIndex::in_memory(self.language.unwrap_or_default())?,
        };
        Ok(Arc::clone(opened.insert(Arc::new(index))))
    }
}
