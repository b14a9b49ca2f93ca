use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Directory, ENGINES, Engine, Memory};
use crate::error::{Error, Result};

/// The location of a store: `memory:`, `sled:PATH`, each with options after a `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    engine: String,
    path: String,
    options: Vec<(String, String)>,
}

/// The most of sled's cache that an option may ask for: 64 GiB, in MiB.
const MAX_CACHE_MB: u64 = 64 * 1024;

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let problem = |problem: &str| {
            let names = ENGINES.iter().map(|row| format!("{}:PATH, ", row.name)).collect::<String>();
            Error::InvalidInput(format!("store URL {text:?}: {problem}; expected {names}or memory:"))
        };
        let (engine, rest) = text.split_once(':').ok_or_else(|| problem("no engine is named"))?;
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
        let mut pairs = Vec::new();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or_else(|| problem("an option is NAME=VALUE"))?;
            pairs.push((name.to_owned(), value.to_owned()));
        }
        let url = Self { engine: engine.to_owned(), path: path.to_owned(), options: pairs };
        match url.engine.as_str() {
            "memory" if url.path.is_empty() && url.options.is_empty() => Ok(url),
            "memory" => Err(problem("memory: takes no path and no options")),
            name if !ENGINES.iter().any(|row| row.name == name) => Err(problem("this engine is not known")),
            _ if url.path.is_empty() => Err(problem("the path is missing")),
            _ => Ok(url),
        }
    }

    /// Fails on an option that is not among `known`.
    pub(crate) fn check_options(&self, known: &[&str]) -> Result<()> {
        match self.options.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => Err(Error::InvalidInput(format!(
                "option {name:?} is not known for {}; known are: {}",
                self.engine,
                known.join(", ")
            ))),
        }
    }

    /// The value of an option, if it is given; the last one counts.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rfind(|(option, _)| option == name).map(|(_, value)| value.as_str())
    }
}

/// Whether an engine syncs, as an option states it. `never` is for throw-away stores only: a power cut takes what was
/// acknowledged, or the store.
pub(crate) fn syncs(url: &Url) -> Result<bool> {
    match url.option("sync") {
        None | Some("always") => Ok(true),
        Some("never") => Ok(false),
        Some(other) => Err(Error::InvalidInput(format!("sync={other}: expected always or never"))),
    }
}

/// A cache size in bytes, from an option in MiB.
pub(crate) fn cache_bytes(value: &str) -> Result<u64> {
    match value.parse::<u64>() {
        Ok(mb @ 1..=MAX_CACHE_MB) => Ok(mb * 1024 * 1024),
        _ => Err(Error::InvalidInput(format!("cache_mb={value}: expected a number from 1 to {MAX_CACHE_MB}"))),
    }
}

/// Whether nothing exists where the URL points to. What exists there may be no store.
pub(crate) fn is_vacant(url: &str) -> Result<bool> {
    let url = Url::parse(url)?;
    if url.path.is_empty() { Ok(false) } else { Directory::is_vacant(Path::new(&url.path)) }
}

/// Opens the engine that the URL names, creating it if there is none.
pub(crate) fn open(url: &str) -> Result<Arc<dyn Engine>> {
    let url = Url::parse(url)?;
    match ENGINES.iter().find(|row| row.name == url.engine) {
        Some(row) => (row.open)(&PathBuf::from(&url.path), &url),
        None => Ok(Arc::new(Memory::default())),
    }
}
