//! A place that a store can be in, made anew for each test.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use conversation_store::{Store, StoreOptions};
use tempfile::TempDir;

/// A kind of place.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Why there is none here.
    pub(crate) missing: fn() -> Option<String>,
    /// The URL of a new store, which may use this path.
    pub(crate) url: fn(&Path) -> String,
    /// Whether a store that is closed can be opened again.
    pub(crate) survives: bool,
    /// Whether a buffered append returns before it is durable. A log may make it durable at once.
    pub(crate) buffers: bool,
}

/// A place for as many stores as a test wants.
pub(crate) struct Place {
    row: &'static Row,
    dir: TempDir,
    made: Cell<u32>,
}

impl Place {
    pub(crate) fn new(row: &'static Row) -> Self {
        Self { row, dir: tempfile::tempdir().unwrap(), made: Cell::new(0) }
    }

    /// The URL of a store that nobody has made.
    pub(crate) fn url(&self) -> String {
        self.made.set(self.made.get() + 1);
        (self.row.url)(&self.dir.path().join(format!("store-{}", self.made.get())))
    }

    /// A new store.
    pub(crate) fn store(&self) -> Store {
        self.store_with(&StoreOptions::new())
    }

    /// A new store with a short window.
    pub(crate) fn quick_store(&self) -> Store {
        self.store_with(&StoreOptions::new().with_window(Duration::from_millis(1)))
    }

    pub(crate) fn store_with(&self, options: &StoreOptions) -> Store {
        options.open(&self.url()).unwrap()
    }

    /// Whether a store that is closed can be opened again.
    pub(crate) fn survives(&self) -> bool {
        self.row.survives
    }

    /// Whether a buffered append returns before it is durable.
    pub(crate) fn buffers(&self) -> bool {
        self.row.buffers
    }

    /// Removes what is in the stores made so far, which are closed: a property makes thousands.
    pub(crate) fn clear(&self) {
        for entry in std::fs::read_dir(self.dir.path()).unwrap() {
            std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
        }
    }

    /// A file that nobody has made.
    pub(crate) fn file(&self) -> std::path::PathBuf {
        self.made.set(self.made.get() + 1);
        self.dir.path().join(format!("file-{}", self.made.get()))
    }
}
