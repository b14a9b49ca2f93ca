//! The store as a whole: what its clusters say, put together.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;

use super::Sharded;
use crate::error::Result;
use crate::log::{BackupSummary, Health, Log, Size, TableSize, Verification};
use crate::postgres::{Moment, Postgres};

impl Sharded {
    pub(super) fn health(&self) -> Health {
        let mut health = Health::default();
        for (at, cluster) in self.clusters.iter().enumerate() {
            let Health { closed, warnings, .. } = Log::health(cluster);
            health.closed |= closed;
            let named = warnings.iter().map(|warning| format!("cluster {at}, {}: {warning}", cluster.shown()));
            health.warnings.extend(named);
        }
        health
    }

    /// The sums of all clusters.
    pub(super) fn size(&self) -> Result<Size> {
        let mut sum = Size::default();
        let mut tables: BTreeMap<String, TableSize> = BTreeMap::new();
        for size in self.each(Log::size)? {
            sum.conversations += size.conversations;
            sum.bytes = Some(sum.bytes.unwrap_or_default() + size.bytes.unwrap_or_default());
            for table in size.tables {
                let name = table.name.clone();
                let known = tables.entry(name).or_insert(TableSize { rows: 0, bytes: 0, ..table.clone() });
                (known.rows, known.bytes) = (known.rows + table.rows, known.bytes + table.bytes);
            }
        }
        sum.tables = tables.into_values().collect();
        Ok(sum)
    }

    /// Checks one cluster after the other.
    pub(super) fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
        let mut found = Verification::default();
        let all = self.each(|cluster| Ok(cluster.conversations()?.len() as u64))?.iter().sum::<u64>();
        for cluster in &self.clusters {
            let before = found.conversations;
            let of_one = cluster.verify(&mut |done, of| progress(before + done, all.max(before + of)))?;
            found.conversations += of_one.conversations;
            found.entries += of_one.entries;
            found.problems.extend(of_one.problems);
        }
        Ok(found)
    }

    /// Writes what all clusters have into one file. Each cluster gives one moment of its own.
    pub(super) fn backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
        let clusters: Vec<&Postgres> = self.clusters.iter().collect();
        let mut patience = self.patience();
        loop {
            let before = self.settled.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let moment = Moment::begin(&clusters)?;
            if self.settle()? && *self.settled.lock().unwrap_or_else(PoisonError::into_inner) == before {
                return moment.write(path, progress);
            }
            patience.again(0)?;
        }
    }

    /// Does something with each cluster, whatever becomes of the others: gives the first error.
    pub(super) fn all(&self, work: impl Fn(&Postgres) -> Result<()>) -> Result<()> {
        self.clusters.iter().map(work).fold(Ok(()), Result::and)
    }
}
