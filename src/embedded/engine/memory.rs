//! Engines in memory: an empty one, and a backup that is read as if it were a store.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, ControlFlow, Range};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use super::contract::{Batch, Engine, Visit};
use super::directory::Directory;
use super::url::Url;
use crate::error::{Error, Result};
use crate::log::Order;

type Pair = (Vec<u8>, Vec<u8>);

#[derive(Default)]
pub(crate) struct Memory {
    map: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
}

/// Without the stored data.
impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

/// How many pairs a scan copies at a time: the lock is not held while the visitor runs.
const PAGE: usize = 64;

impl Memory {
    fn page(&self, start: Bound<&[u8]>, end: Bound<&[u8]>, order: Order) -> Vec<Pair> {
        let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
        let range = map.range::<[u8], _>((start, end)).map(|(key, value)| (key.clone(), value.clone()));
        match order {
            Order::Ascending => range.take(PAGE).collect(),
            Order::Descending => range.rev().take(PAGE).collect(),
        }
    }
}

impl Engine for Memory {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.map.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        let mut last: Option<Vec<u8>> = None;
        loop {
            let edge = last.as_deref();
            let (start, end) = match order {
                Order::Ascending => {
                    (edge.map_or(Bound::Included(range.start), Bound::Excluded), Bound::Excluded(range.end))
                }
                Order::Descending => (Bound::Included(range.start), Bound::Excluded(edge.unwrap_or(range.end))),
            };
            // BTreeMap panics on a range that ends before it starts, or excludes one key from both sides.
            if range.start >= range.end || matches!((start, end), (Bound::Excluded(a), Bound::Excluded(b)) if a >= b) {
                return Ok(());
            }
            let page = self.page(start, end, order);
            for (key, value) in &page {
                if visit(key, value) == ControlFlow::Break(()) {
                    return Ok(());
                }
            }
            match page.into_iter().last() {
                Some((key, _)) => last = Some(key),
                None => return Ok(()),
            }
        }
    }

    fn write(&self, batch: Batch) -> Result<()> {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in batch.ops {
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn directory(&self) -> Option<&Directory> {
        None
    }
}

#[derive(Debug)]
struct Backup(Memory);

/// Reads a backup: held in memory, read-only.
pub(super) fn open_backup(path: &Path, url: &Url) -> Result<Arc<dyn Engine>> {
    url.check_options(&[])?;
    let backup = crate::backup::open(path)?;
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

#[cfg(test)]
mod tests {

    #[test]
    fn conforms() {
        super::super::conformance::run(&super::Memory::default());
    }
}
