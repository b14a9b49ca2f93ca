//! The store of a command, and the owner of its conversations.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use conversation_store::model::Name;
use conversation_store::{Error, Health, Store, StoreOptions};

use super::failure::Failure;
use super::output::warn;

/// The store of a project, used if it exists.
const OF_PROJECT: &str = "sled:./convo.db";
/// The file that marks a directory as a store.
const MARKER: &str = "convo.db/CONVERSATION-STORE";
/// The time between two attempts to open a store that another process holds.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// The store of a command, and how to open it.
pub(super) struct Location {
    url: Option<String>,
    owner: Option<String>,
    /// Whose conversation a key means if no owner is named: known once the store is open.
    meant: OnceCell<String>,
    /// How long to wait for a store that another process holds.
    patience: Duration,
}

impl Location {
    /// `url`: what `--store` or CONVO_STORE names.
    pub(super) fn new(url: Option<String>, owner: Option<String>, patience: Duration) -> Self {
        Self { url: url.filter(|url| !url.is_empty()), owner, meant: OnceCell::new(), patience }
    }

    /// Opens the store, and creates it if it does not exist.
    pub(super) fn create(&self) -> Result<Store, Failure> {
        if self.url.is_none()
            && let Some(parent) = directory(&self.url()?).and_then(Path::parent)
        {
            private_folder(parent)?;
        }
        self.open_with(&StoreOptions::new())
    }

    /// Opens an existing store for writing.
    pub(super) fn open(&self) -> Result<Store, Failure> {
        self.open_with(&StoreOptions::new().with_create(false))
    }

    /// Opens a store that lost acknowledged data, so that it can be written again.
    pub(super) fn open_accepting_loss(&self) -> Result<Store, Failure> {
        self.open_with(&StoreOptions::new().with_create(false).with_accept_loss(true))
    }

    /// Opens an existing store for reading. Warns of what prevents writing.
    pub(super) fn read(&self) -> Result<Store, Failure> {
        let store = self.open_with(&StoreOptions::new().with_create(false).with_read_only(true))?;
        let Health { went_back, watermark_lost, disk_full, damage, warnings, .. } = store.health();
        for detail in damage {
            warn(&format!("the store is damaged: {detail}"));
        }
        warnings.iter().for_each(|warning| warn(warning));
        if let Some((from, to)) = went_back {
            warn(&format!("{}: what is left can be read", Error::WentBack { from, to }));
        }
        if watermark_lost {
            warn("the store's file `watermark` is damaged or missing: what is there can be read, more may be lost");
        }
        if disk_full {
            warn("the disk is full: the store can be read; make room to write");
        }
        Ok(store)
    }

    /// Does something with the store, for which no other process may have it open.
    pub(super) fn patiently<T>(&self, mut call: impl FnMut(&str) -> Result<T, Error>) -> Result<T, Failure> {
        let url = self.url()?;
        let begun = Instant::now();
        loop {
            match call(&url) {
                Err(Error::Busy(_)) if begun.elapsed() < self.patience => thread::sleep(PAUSE),
                done => return done.map_err(|error| not_opened(&url, error)),
            }
        }
    }

    fn open_with(&self, options: &StoreOptions) -> Result<Store, Failure> {
        let store = self.patiently(|url| options.open(url))?;
        // A store that is opened again has the same key.
        let _ = self.meant.set(store.owner().to_owned());
        if let Some(copy) = store.health().set_aside {
            let copy = copy.display();
            warn(&format!(
                "damage kept the store from opening as it was, and more may be lost; a copy of it is at {copy}"
            ));
        }
        Ok(store)
    }

    /// The named store; otherwise that of the project, if it exists; otherwise the user's own.
    ///
    /// # Errors
    /// No store is named, and the user has no home directory.
    pub(super) fn url(&self) -> Result<Cow<'_, str>, Failure> {
        match &self.url {
            Some(url) => Ok(Cow::Borrowed(url)),
            None if Path::new(MARKER).is_file() => Ok(Cow::Borrowed(OF_PROJECT)),
            None => match data_folder() {
                Some(folder) => Ok(Cow::Owned(format!("sled:{}", folder.join("convo/store.db").display()))),
                None => Err(Failure::usage("no store is named, and you have no home directory for one")
                    .with_cure("name one with --store URL or CONVO_STORE")),
            },
        }
    }

    /// When a file of the store was last written, if the store is a directory.
    pub(super) fn changed(&self) -> Option<SystemTime> {
        let url = self.url().ok()?;
        let files = fs::read_dir(directory(&url)?).ok()?;
        files.filter_map(|file| file.ok()?.metadata().ok()?.modified().ok()).max()
    }

    /// Whether other processes can write to the store while this one has it open: it is a database's, or a server's.
    pub(super) fn is_shared(&self) -> bool {
        self.url().is_ok_and(|url| is_remote(&url))
    }

    /// How long to wait for a store that another process holds.
    #[cfg(feature = "mcp")]
    pub(super) const fn patience(&self) -> Duration {
        self.patience
    }

    /// Whether a store was named.
    pub(super) const fn is_named(&self) -> bool {
        self.url.is_some()
    }

    /// The owner whose conversations are meant.
    pub(super) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// The conversation that the caller names, in the store that is open.
    pub(super) fn name(&self, conversation: &str) -> Name {
        let name = Name::from(conversation);
        let meant = self.meant.get().filter(|meant| !meant.is_empty() && name.key().is_some());
        match self.owner.as_ref().or(meant) {
            Some(owner) => name.with_owner(owner),
            None => name,
        }
    }
}

/// The directory of a store's URL, if it names one.
pub(super) fn directory(url: &str) -> Option<&Path> {
    let (_, rest) = url.split_once(':')?;
    let (path, _) = rest.split_once('?').unwrap_or((rest, ""));
    (!path.is_empty() && !is_remote(url)).then(|| Path::new(path))
}

/// Whether a store's URL names databases or a server, not a directory.
fn is_remote(url: &str) -> bool {
    is_server(url) || ["postgres://", "postgresql://", "shards:"].iter().any(|scheme| url.starts_with(scheme))
}

fn is_server(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
}

fn not_opened(url: &str, error: Error) -> Failure {
    match error {
        Error::NotFound { .. } if url.starts_with("backup:") => {
            Failure::new(error.code(), format!("there is no backup at {url}"))
        }
        Error::Io { .. } if is_server(url) => {
            Failure::from(error).with_cure("does it run? `convo serve` starts a server; --store URL names another")
        }
        // Such a URL may hold a password: the error names the place without it.
        Error::NotFound { .. } if is_remote(url) => Failure::from(error)
            .with_cure("`convo append` and `convo replay` make one; --store URL or CONVO_STORE names another"),
        Error::NotFound { .. } => Failure::new(error.code(), format!("there is no store at {url}"))
            .with_cure("`convo append` creates one; --store URL or CONVO_STORE names another"),
        Error::Corrupt { .. } => {
            Failure::from(error).with_cure("move the store's directory aside unchanged, and restore a backup")
        }
        other => other.into(),
    }
}

/// The directory in which programs keep a user's data.
fn data_folder() -> Option<PathBuf> {
    let of = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let windows = || if cfg!(windows) { of("LOCALAPPDATA") } else { None };
    let home = || env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".local/share"));
    of("XDG_DATA_HOME").or_else(windows).or_else(home)
}

/// Creates a directory that only the user can read: conversations are private.
fn private_folder(path: &Path) -> Result<(), Failure> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let made = builder.create(path);
    made.map_err(|error| Failure::new("io", format!("cannot create {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_has_a_directory_where_its_url_names_one() {
        assert_eq!(directory("sled:a/b.db?cache_mb=1"), Some(Path::new("a/b.db")));
        assert_eq!(directory("memory:"), None);
        assert_eq!(directory("http://127.0.0.1:8080"), None);
        assert_eq!(directory("postgres://ada:secret@db.example.org/chats"), None);
        assert_eq!(directory("shards:clusters"), None);
    }
}
