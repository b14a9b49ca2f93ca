//! The engines, and how one is opened.

use std::path::Path;
use std::sync::Arc;

use super::contract::Engine;
use super::directory::Directory;
#[cfg(feature = "fjall")]
use super::fjall;
use super::journal;
use super::memory::{Memory, open_backup};
#[cfg(feature = "sled")]
use super::sled;
use super::url::Url;
use crate::error::Result;

/// A way to open an engine: its name in a URL, and the function.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) open: fn(&Path, &Url) -> Result<Arc<dyn Engine>>,
}

/// All engines that have a path. A journal is put before those that write to it.
pub(super) const ENGINES: &[Row] = &[
    #[cfg(feature = "sled")]
    Row { name: "sled", open: sled::open },
    #[cfg(feature = "fjall")]
    Row { name: "fjall", open: fjall::open },
    Row { name: "backup", open: open_backup },
];

/// Reads the URL of an engine.
pub(super) fn parse(text: &str) -> Result<Url> {
    let names: Vec<&str> = ENGINES.iter().map(|row| row.name).collect();
    Url::parse(text, &names)
}

/// Whether nothing exists where the URL points to. What exists there may be no store.
pub(crate) fn is_vacant(url: &str) -> Result<bool> {
    let url = parse(url)?;
    if url.path().is_empty() { Ok(false) } else { Directory::is_vacant(Path::new(url.path())) }
}

/// The URL of an engine as that of this one, in a folder of its directory.
pub(super) fn inside(url: &str, folder: &str) -> String {
    let (place, options) =
        url.split_once('?').map_or((url, String::new()), |(place, options)| (place, format!("?{options}")));
    format!("{}/{folder}{options}", place.trim_end_matches('/'))
}

/// Opens the engine that the URL names, creating it if there is none.
pub(crate) fn open(url: &str) -> Result<Arc<dyn Engine>> {
    open_parsed(&parse(url)?)
}

/// As [`open`], to fill it from a backup. Until [`Directory::restored`] nothing else opens it, whatever happens.
pub(crate) fn open_to_restore(url: &str) -> Result<Arc<dyn Engine>> {
    open_parsed(&parse(url)?.for_restore())
}

fn open_parsed(url: &Url) -> Result<Arc<dyn Engine>> {
    match ENGINES.iter().find(|row| row.name == url.engine()) {
        Some(row) => journal::before((row.open)(Path::new(url.path()), url)?, url),
        None => Ok(Arc::new(Memory::default())),
    }
}
