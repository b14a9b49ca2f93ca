//! Faults that a review found, one test each: what is asserted is how it should be.
//!
//! Where a store has to be damaged, it is closed, and pairs of its engine are changed, removed or exchanged.

mod attack;
mod backup;
mod damage;
mod errors;
mod followers;
mod forks;
mod ids;
mod limits;
mod listing;
mod newer;
mod recovery;
mod redact;
mod story;
mod stream;

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use conversation_store::model::{Body, ConversationId, Message, Name};
use conversation_store::{Conversation, Error, ListQuery, MessageState, Receipt, Rule, Store, StoreOptions};
use damage::Raw;

/// A call that has not returned by then hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A store on the disk, opened and closed as a test wants.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("db")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn url(&self) -> String {
        url(&self.path())
    }

    fn try_open(&self) -> Result<Store, Error> {
        Store::open(&self.url())
    }

    fn open(&self) -> Store {
        self.try_open().unwrap()
    }

    fn read_only(&self) -> Store {
        StoreOptions::new().with_read_only(true).open(&self.url()).unwrap()
    }

    fn try_accept_loss(&self) -> Result<Store, Error> {
        StoreOptions::new().with_accept_loss(true).open(&self.url())
    }

    fn accept_loss(&self) -> Store {
        self.try_accept_loss().unwrap()
    }

    /// Makes a store, and closes it.
    fn with(make: impl FnOnce(&Store)) -> Self {
        let place = Self::new();
        let store = place.open();
        make(&store);
        store.close().unwrap();
        drop(store);
        place
    }

    /// Changes the pairs of the closed store.
    fn damage(&self, change: impl FnOnce(&Raw)) {
        let raw = Raw::open(&self.path());
        change(&raw);
        raw.close();
    }
}

fn url(path: &std::path::Path) -> String {
    // What is tried here is not the disk.
    format!("sled:{}?sync=never", path.display())
}

fn id(name: &str) -> ConversationId {
    Name::from(name).id()
}

/// Says `{name} 1`, `{name} 2` ... in a conversation, each with the seq of its number if it is the first that is said.
fn say(store: &Store, name: &str, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        store.append(name, &[Message::user(format!("{name} {number}"))]).unwrap();
    }
}

fn said(name: &str, numbers: std::ops::RangeInclusive<u64>) -> Vec<String> {
    numbers.map(|number| format!("{name} {number}")).collect()
}

fn user(store: &Store, name: &str, text: &str) -> Result<Receipt, Error> {
    store.append(name, &[Message::user(text)])
}

/// The texts of the messages that were said.
fn texts_of(conversation: &Conversation) -> Vec<String> {
    let messages = conversation.messages().iter().filter(|stored| stored.state != MessageState::Synthetic);
    messages.map(|stored| text_of(&stored.message)).collect()
}

fn text_of(message: &Message) -> String {
    let texts = message.chunks.iter().filter_map(|chunk| match &chunk.body {
        Body::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn texts(store: &Store, name: &str) -> Vec<String> {
    texts_of(&store.load(name).unwrap())
}

/// Whether loading reports damage.
fn is_reported(conversation: &Conversation) -> bool {
    conversation.report().iter().any(|line| line.rule == Rule::DamagedRecord)
}

/// Fails if a conversation holds what is not among `known`, or if something of `known` is missing and loading does not
/// report it.
fn assert_no_stranger(store: &Store, name: &str, known: &[String]) {
    let loaded = match store.load(name) {
        Ok(loaded) => loaded,
        Err(Error::Corrupt { .. }) => return,
        Err(error) => panic!("{name}: {error}"),
    };
    let texts = texts_of(&loaded);
    let strangers: Vec<_> = texts.iter().filter(|text| !known.contains(text)).collect();
    assert!(strangers.is_empty(), "{name} reads {strangers:?}, strict: {:?}", store.load_strict(name).map(|_| ()));
    assert!(texts == known || is_reported(&loaded), "{name} has {texts:?}, and nothing is reported");
}

fn listed(store: &Store) -> Vec<String> {
    let page = store.list(&ListQuery::new().with_limit(10_000)).unwrap();
    page.items.into_iter().map(|item| item.key.unwrap_or_else(|| item.id.to_string())).collect()
}

fn problems(store: &Store) -> Vec<String> {
    store.verify(|_, _| ()).unwrap().problems.iter().map(ToString::to_string).collect()
}

/// Runs in a thread of its own: what does not end within [`PATIENCE`] is a failure, not a test that hangs.
fn within<T: Send + 'static>(what: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, waiting) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = run();
        let _ = done.send(());
        result
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = waiting.recv_timeout(PATIENCE) {
        panic!("{what}: it has not returned after {PATIENCE:?}");
    }
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
