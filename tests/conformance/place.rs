//! A place that a store can be in, made anew for each test.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::{Arc, Mutex};
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
    /// Empties a store that is closed, so that it is as one that is new: other tests use it then. Absent where a new one costs
    /// less.
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
    dir: Arc<TempDir>,
    made: Cell<u32>,
    servers: RefCell<Vec<Served>>,
    /// The stores that can be emptied.
    used: RefCell<Vec<Used>>,
}

/// A store that can be emptied.
struct Used {
    /// The name of its row.
    row: &'static str,
    url: String,
    /// Where the files are that its URL names.
    _dir: Arc<TempDir>,
}

/// The stores that tests are done with, those that were closed first before the others.
static DONE: Mutex<Vec<Used>> = Mutex::new(Vec::new());

/// The store of a row that was closed first.
fn done(row: &str) -> Option<Used> {
    let mut done = DONE.lock().unwrap();
    let at = done.iter().position(|store| store.row == row)?;
    Some(done.remove(at))
}

/// Removes the files that the stores have here: no test comes any more.
pub(crate) fn end() {
    DONE.lock().unwrap().clear();
}

impl Place {
    pub(crate) fn new(row: &'static Row) -> Self {
        Self {
            row,
            dir: Arc::new(crate::common::tempdir().unwrap()),
            made: Cell::new(0),
            servers: RefCell::default(),
            used: RefCell::default(),
        }
    }

    /// The URL of a new store.
    pub(crate) fn url(&self) -> String {
        self.url_with(&StoreOptions::new())
    }

    /// As [`Place::url`]. A server opens its store with these options: times and windows are the store's.
    pub(crate) fn url_with(&self, options: &StoreOptions) -> String {
        let url = self.empty();
        if !self.row.served {
            return url;
        }
        let served = Served::start(options.open(&url).unwrap());
        let url = served.url.clone();
        self.servers.borrow_mut().push(served);
        url
    }

    /// The URL of a store that is new, or as one that is new, and that no server has open.
    fn empty(&self) -> String {
        let Some(empty) = self.row.empty else { return self.vacant() };
        let store = match done(self.row.name) {
            Some(store) => {
                // Not when it was closed: what it still wrote then is there now.
                empty(&store.url);
                store
            }
            None => Used { row: self.row.name, url: self.vacant(), _dir: Arc::clone(&self.dir) },
        };
        let url = store.url.clone();
        self.used.borrow_mut().push(store);
        url
    }

    /// The URL of a store that nobody has made and no server has open. No other test uses it: what is restored there makes it
    /// the store that the backup is of.
    pub(crate) fn vacant(&self) -> String {
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

    /// Gives up the stores made so far, which are closed: a property makes thousands.
    pub(crate) fn clear(&self) {
        self.servers.borrow_mut().clear();
        if self.row.empty.is_some() {
            DONE.lock().unwrap().append(&mut self.used.borrow_mut());
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

impl Drop for Place {
    /// Leaves its stores to other tests, unless this one failed: they may be open still.
    fn drop(&mut self) {
        if self.row.empty.is_some() && !std::thread::panicking() {
            self.clear();
        }
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
