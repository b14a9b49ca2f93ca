//! Where a store is, as a text.

use crate::error::{Error, Result};

/// The location of a store: `memory:`, `sled:PATH`, each with options after a `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    engine: String,
    path: String,
    options: Vec<(String, String)>,
    /// Whether it is opened to be filled from a backup.
    restores: bool,
}

/// The most of sled's cache that an option may ask for: 64 GiB, in MiB.
const MAX_CACHE_MB: u64 = 64 * 1024;

impl Url {
    /// Reads a URL of one of these engines, which have a path, or of `memory:`.
    pub(super) fn parse(text: &str, engines: &[&str]) -> Result<Self> {
        let problem = |problem: &str| {
            let names = engines.iter().map(|name| format!("{name}:PATH, ")).collect::<String>();
            Error::InvalidInput(format!("store URL {text:?}: {problem}; expected {names}or memory:"))
        };
        let (engine, rest) = text.split_once(':').ok_or_else(|| problem("no engine is named"))?;
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
        let mut pairs = Vec::new();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or_else(|| problem("an option is NAME=VALUE"))?;
            pairs.push((name.to_owned(), value.to_owned()));
        }
        let url = Self { engine: engine.to_owned(), path: path.to_owned(), options: pairs, restores: false };
        match url.engine.as_str() {
            "memory" if url.path.is_empty() && url.options.is_empty() => Ok(url),
            "memory" => Err(problem("memory: takes no path and no options")),
            name if !engines.contains(&name) => Err(problem("this engine is not known")),
            _ if url.path.is_empty() => Err(problem("the path is missing")),
            _ => Ok(url),
        }
    }

    pub(super) fn engine(&self) -> &str {
        &self.engine
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The same, to be filled from a backup.
    pub(super) fn for_restore(self) -> Self {
        Self { restores: true, ..self }
    }

    pub(super) const fn restores(&self) -> bool {
        self.restores
    }

    /// Fails on an option that is not among `known`.
    pub(super) fn check_options(&self, known: &[&str]) -> Result<()> {
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
pub(super) fn cache_bytes(value: &str) -> Result<u64> {
    match value.parse::<u64>() {
        Ok(mb @ 1..=MAX_CACHE_MB) => Ok(mb * 1024 * 1024),
        _ => Err(Error::InvalidInput(format!("cache_mb={value}: expected a number from 1 to {MAX_CACHE_MB}"))),
    }
}
