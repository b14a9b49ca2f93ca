//! A backup of any log, put into the clusters of a new store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{connect, list_file, map};
use crate::error::Result;
use crate::log::{BackupSummary, Clock, Opening};
use crate::model::Timestamp;
use crate::postgres::{Postgres, restore_members};

/// Fills the clusters of a list. `progress` is called with bytes read, and of the file.
pub(crate) fn restore(file: &Path, url: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
    let clock: Clock = Arc::new(Timestamp::now);
    let clusters = connect(&list_file::read(url)?, &clock, Duration::ZERO, Opening::default(), true)?;
    if map::members(&clusters)?.iter().all(Option::is_none) {
        map::make(&clusters)?;
    }
    let patience = clusters.iter().map(Postgres::patience).max().unwrap_or_default();
    let map = map::read(&clusters, url, patience)?;
    map::check_still(&clusters, url)?;
    restore_members(file, &clusters, &map, progress)
}
