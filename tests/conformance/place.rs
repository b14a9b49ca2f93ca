//! A place that a store can be in, made anew for each test.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Duration;

use conversation_store::{Interruption, Store, StoreOptions};
use tempfile::TempDir;

/// A kind of place.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Why there is none here.
    pub(crate) missing: fn() -> Option<String>,
    /// The URL of a new store, which may use this path.
    pub(crate) url: fn(&Path) -> String,
    /// Empties a store that is closed, so that it is as one that is new. Absent where a new one costs less.
    pub(crate) empty: Option<fn(&str)>,
    /// Whether a server has it open, and the store is a client of the server.
    pub(crate) served: bool,
    /// Whether a call is one of this process. Elsewhere it takes a thousand times as long.
    pub(crate) near: bool,
    /// Whether a store that is closed can be opened again.
    pub(crate) survives: bool,
    /// Whether a buffered append returns before it is durable. A log may make it durable at once.
    pub(crate) buffers: bool,
    /// What interrupts a message that is being written when its store is closed.
    pub(crate) closed: Interruption,
}

/// A place for as many stores as a test wants.
pub(crate) struct Place {
    row: &'static Row,
    dir: TempDir,
    made: Cell<u32>,
    servers: RefCell<Vec<Served>>,
    /// The URLs of stores that can be emptied, and of those that are empty.
    used: RefCell<Vec<String>>,
    empty: RefCell<Vec<String>>,
}

impl Place {
    pub(crate) fn new(row: &'static Row) -> Self {
        Self {
            row,
            dir: crate::common::tempdir().unwrap(),
            made: Cell::new(0),
            servers: RefCell::default(),
            used: RefCell::default(),
            empty: RefCell::default(),
        }
    }

    /// The URL of a new store.
    pub(crate) fn url(&self) -> String {
        self.url_with(&StoreOptions::new())
    }

    /// As [`Place::url`]. A server opens its store with these options: times and windows are the store's.
    pub(crate) fn url_with(&self, options: &StoreOptions) -> String {
        let url = self.vacant();
        if !self.row.served {
            return url;
        }
        let served = Served::start(options.open(&url).unwrap());
        let url = served.url.clone();
        self.servers.borrow_mut().push(served);
        url
    }

    /// The URL of a new store that no server has open.
    pub(crate) fn vacant(&self) -> String {
        let empty = self.empty.borrow_mut().pop();
        let url = empty.unwrap_or_else(|| {
            self.made.set(self.made.get() + 1);
            (self.row.url)(&self.dir.path().join(format!("store-{}", self.made.get())))
        });
        if self.row.empty.is_some() {
            self.used.borrow_mut().push(url.clone());
        }
        url
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
        options.open(&self.url_with(options)).unwrap()
    }

    /// Whether a call is one of this process.
    pub(crate) fn is_near(&self) -> bool {
        self.row.near
    }

    /// Whether a store that is closed can be opened again.
    pub(crate) fn survives(&self) -> bool {
        self.row.survives
    }

    /// Whether a buffered append returns before it is durable.
    pub(crate) fn buffers(&self) -> bool {
        self.row.buffers
    }

    /// What interrupts a message that is being written when its store is closed.
    pub(crate) fn closed(&self) -> Interruption {
        self.row.closed
    }

    /// Removes what is in the stores made so far, which are closed: a property makes thousands.
    pub(crate) fn clear(&self) {
        self.servers.borrow_mut().clear();
        if let Some(empty) = self.row.empty {
            let mut used = self.used.borrow_mut();
            used.iter().for_each(|url| empty(url));
            self.empty.borrow_mut().append(&mut used);
            return;
        }
        for entry in std::fs::read_dir(self.dir.path()).unwrap() {
            let path = entry.unwrap().path();
            // sled writes a snapshot when its last user is gone, which may be a thread of a server that has ended.
            while let Err(error) = std::fs::remove_dir_all(&path) {
                assert_eq!(error.kind(), std::io::ErrorKind::DirectoryNotEmpty);
            }
        }
    }

    /// A file that nobody has made.
    pub(crate) fn file(&self) -> std::path::PathBuf {
        self.made.set(self.made.get() + 1);
        self.dir.path().join(format!("file-{}", self.made.get()))
    }
}

/// A server on a port of its own. It ends when it is dropped.
struct Served {
    url: String,
    #[cfg(feature = "server")]
    handle: conversation_store::server::ServerHandle,
    #[cfg(feature = "server")]
    running: Option<std::thread::JoinHandle<()>>,
}

#[cfg(feature = "server")]
impl Served {
    fn start(store: Store) -> Self {
        use conversation_store::server::{Config, Server};
        let mut config = Config::default();
        config.server.listen.set_port(0);
        let server = Server::bind(store, config).unwrap();
        let (url, handle) = (format!("http://{}", server.address().unwrap()), server.handle());
        let running = std::thread::spawn(move || server.run().unwrap());
        Self { url, handle, running: Some(running) }
    }
}

#[cfg(feature = "server")]
impl Drop for Served {
    fn drop(&mut self) {
        self.handle.end();
        let ended = self.running.take().unwrap().join();
        // A test that failed already shows why.
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

#[cfg(not(feature = "server"))]
impl Served {
    fn start(_: Store) -> Self {
        unreachable!("no row is served")
    }
}
