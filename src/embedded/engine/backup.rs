//! A backup, read as if it were a store: held in memory, read-only.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::contract::{Batch, Engine, Visit};
use super::directory::Directory;
use super::memory::Memory;
use super::url::Url;
use crate::backup;
use crate::error::{Error, Result};
use crate::log::Order;

#[derive(Debug)]
struct Backup(Memory);

pub(super) fn open(path: &Path, url: &Url) -> Result<Arc<dyn Engine>> {
    url.check_options(&[])?;
    let backup = backup::open(path)?;
    let memory = Memory::default();
    backup.read(&mut |key, value, _| {
        let mut batch = Batch::default();
        batch.put(key.to_vec(), value.to_vec());
        memory.write(batch)
    })?;
    Ok(Arc::new(Backup(memory)))
}

impl Engine for Backup {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.0.get(key)
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.0.scan(range, order, visit)
    }

    fn write(&self, _: Batch) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn directory(&self) -> Option<&Directory> {
        None
    }
}
