//! Which log a store uses. To add one: a row here.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "client")]
use crate::client::{Client, is_http};
use crate::embedded::{self, Embedded, engine};
use crate::error::{Error, Result};
use crate::log::{BackupSummary, Clock, Log, Opening};
#[cfg(feature = "postgres")]
use crate::log::{Migration, Shards};
#[cfg(feature = "postgres")]
use crate::postgres::{self, Postgres};
#[cfg(feature = "postgres")]
use crate::sharded::{self, Sharded};

pub(super) use crate::log::backup_file::check as check_backup;

/// Opens the log that a URL names.
pub(super) fn open(url: &str, clock: Clock, window: Duration, opening: Opening, create: bool) -> Result<Arc<dyn Log>> {
    #[cfg(feature = "postgres")]
    if postgres::is_postgres(url) {
        return Ok(Arc::new(Postgres::open(url, clock, window, opening, create)?));
    }
    #[cfg(feature = "postgres")]
    if sharded::is_sharded(url) {
        return Ok(Arc::new(Sharded::open(url, clock, window, opening, create)?));
    }
    #[cfg(feature = "client")]
    if is_http(url) {
        return Ok(Arc::new(Client::open(url, opening)?));
    }
    if (!create || opening.read_only) && engine::is_vacant(url)? {
        return Err(Error::NotFound { what: format!("a store at {url}") });
    }
    Ok(Arc::new(Embedded::open(engine::open(url)?, clock, window, opening)?))
}

/// Makes the tables of a log in a database, or makes older ones those of this version.
#[cfg(feature = "postgres")]
pub(super) fn migrate(url: &str) -> Result<Migration> {
    if postgres::is_postgres(url) {
        return postgres::migrate(url);
    }
    if sharded::is_sharded(url) {
        return sharded::migrate(url);
    }
    Err(Error::InvalidInput("only a store in PostgreSQL has tables to migrate: name one".to_owned()))
}

/// Where the buckets of a log over several databases are.
#[cfg(feature = "postgres")]
pub(super) fn shards(url: &str) -> Result<Shards> {
    check_sharded(url)?;
    sharded::status(url)
}

/// Moves a bucket of a log over several databases.
#[cfg(feature = "postgres")]
pub(super) fn move_bucket(url: &str, bucket: u64, to: u64, wait: Duration) -> Result<()> {
    check_sharded(url)?;
    sharded::move_bucket(url, bucket, to, wait)
}

#[cfg(feature = "postgres")]
fn check_sharded(url: &str) -> Result<()> {
    if sharded::is_sharded(url) {
        return Ok(());
    }
    Err(Error::InvalidInput("only a store over several databases has buckets: name its list, `shards:FILE`".to_owned()))
}

/// Fills a new log with a backup. `progress` is called with bytes read, and of the file.
pub(super) fn restore(file: &Path, url: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
    #[cfg(feature = "postgres")]
    if postgres::is_postgres(url) {
        return postgres::restore(file, url, progress);
    }
    #[cfg(feature = "postgres")]
    if sharded::is_sharded(url) {
        return sharded::restore(file, url, progress);
    }
    #[cfg(feature = "client")]
    if is_http(url) {
        let message = "a backup is made a store where the store is, not through a server: name the store itself";
        return Err(Error::InvalidInput(message.to_owned()));
    }
    embedded::restore(file, &engine::open(url)?, progress)
}
