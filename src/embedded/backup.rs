//! A store as a file, and back: consistent while the store is used.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::core::{COMMIT, Core, EPOCH, RESTORING, STORE};
use super::place::index_keys;
use crate::embedded::archive;
use crate::embedded::engine::{Batch, Engine, Order};
use crate::error::{Error, Result};
use crate::log::BackupSummary;
use crate::model::ConversationId;
use crate::record::{self, Commit, Head, key};

/// Bytes of pairs that a restore writes in one batch.
const RESTORE_BYTES: usize = 128 * 1024;

impl Core {
    /// Writes everything that is durable to a new file. Forks, deletions and redactions wait for it; appends do not.
    pub(crate) fn backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
        let _structure = self.lock_structure();
        if self.lock().blocked.is_none() {
            self.sync()?;
        }
        if path.exists() {
            return Err(Error::InvalidInput(format!("{} exists already: name a new file", path.display())));
        }
        let partial = PathBuf::from(format!("{}.partial", path.display()));
        let result = self.write_backup(&partial, progress).and_then(|conversations| {
            let failed = format!("rename {} to {}", partial.display(), path.display());
            fs::rename(&partial, path).map_err(Error::io(failed))?;
            let bytes = fs::metadata(path).map_err(Error::io(format!("read {}", path.display())))?.len();
            sync_parent(path)?;
            Ok(BackupSummary { conversations, bytes })
        });
        if result.is_err() {
            let _ = fs::remove_file(&partial);
        }
        result
    }

    fn write_backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        let io = |error| Error::io(format!("write the backup {}", path.display()))(error);
        let file = File::create(path).map_err(io)?;
        let mut out = archive::Writer::new(BufWriter::new(file)).map_err(io)?;
        for name in [STORE, EPOCH] {
            let key = key::meta(name);
            if let Some(value) = self.engine.get(&key)? {
                out.pair(&key, &value).map_err(io)?;
            }
        }
        let last = self.lock().commit;
        let mut written = Commit { number: last.number, ..Commit::default() };
        let deleted = self.ids(key::TOMBSTONE)?;
        let mut ids = self.ids(key::HEAD)?;
        // A head that damage took is derived.
        ids.extend(self.ids(key::RECORD)?.difference(&deleted));
        let (all, mut done) = (ids.len() as u64, 0);
        for id in ids {
            // A head that readers do not see belongs to an append that is not durable yet.
            let Some(head) = self.published_head(id)? else { continue };
            self.write_conversation(&mut out, id, Some(&head))?;
            written.count(None, Some(&head));
            done += 1;
            progress(done, all);
        }
        // Where nothing was written meanwhile, what is missing here without a trace is missed in the backup too.
        let commit = if self.lock().commit == last { last } else { written };
        let key = key::meta(COMMIT);
        out.pair(&key, &record::seal(&key, &commit)?).map_err(io)?;
        for id in deleted {
            self.write_conversation(&mut out, id, None)?;
        }
        let file = out.finish().map_err(io)?.into_inner().map_err(|error| io(error.into_error()))?;
        file.sync_all().map_err(io)?;
        Ok(done)
    }

    /// Everything of one conversation up to its head; of a deleted one, all that is left.
    fn write_conversation(
        &self,
        out: &mut archive::Writer<impl Write>,
        id: ConversationId,
        head: Option<&Head>,
    ) -> Result<()> {
        let next_seq = head.map_or(u64::MAX, |head| head.next_seq);
        let io = |error| Error::io("write the backup")(error);
        if let Some(head) = head {
            let key = key::head(id);
            out.pair(&key, &record::seal(&key, head)?).map_err(io)?;
            for key in index_keys(id, head) {
                out.pair(&key, &[]).map_err(io)?;
            }
        }
        // An origin without entries stands at the next seq itself.
        let records = (key::prefix(key::RECORD, id), key::record(id, next_seq.saturating_add(1)));
        let prefixed = |kind| (key::prefix(kind, id), key::after(&key::prefix(kind, id)));
        let others = [key::FORK, key::RECEIPT, key::TOMBSTONE, key::ITEM].map(prefixed);
        for (start, end) in [records].into_iter().chain(others) {
            let mut result = Ok(());
            self.engine.scan(&start..&end, Order::Ascending, &mut |key, value| {
                if !is_durable(key, value, next_seq, id) {
                    return ControlFlow::Continue(());
                }
                result = out.pair(key, value).map_err(io);
                if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            result?;
        }
        Ok(())
    }
}

/// Whether a pair belongs to what lies before the head.
fn is_durable(key: &[u8], value: &[u8], next_seq: u64, id: ConversationId) -> bool {
    match key.first() {
        Some(&key::RECEIPT) => record::open::<record::Receipt>("an idempotency record", key, value)
            .map_or(true, |receipt| receipt.last_seq < next_seq),
        Some(&key::ITEM) => key::parse_item(key).is_none_or(|seq| seq < next_seq),
        Some(&key::RECORD) => match key::parse_record(key) {
            Some((_, first_seq)) if first_seq == next_seq => {
                record::Record::open(id, first_seq, value).is_ok_and(|record| record.len() == 0)
            }
            _ => true,
        },
        _ => true,
    }
}

fn sync_parent(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let sync = File::open(parent).and_then(|parent| parent.sync_all());
    sync.map_err(Error::io(format!("sync {}", parent.display())))
}

/// Reads a backup from end to end, so that a damaged one is told before anything is made of it. `progress` is called with
/// bytes read, and of the file.
pub(crate) fn check(path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    let (input, size) = open(path)?;
    archive::read(input, &mut |_, _, bytes| {
        progress(bytes, size);
        Ok(())
    })
}

fn open(path: &Path) -> Result<(BufReader<File>, u64)> {
    let shown = path.display();
    let file = File::open(path).map_err(Error::io(format!("open the backup {shown}")))?;
    let size = file.metadata().map_err(Error::io(format!("read {shown}")))?.len();
    Ok((BufReader::new(file), size))
}

/// Fills an engine that holds nothing from a backup. `progress` is called with bytes read, and of the file.
pub(crate) fn restore(
    path: &Path,
    engine: &Arc<dyn Engine>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BackupSummary> {
    let (input, size) = open(path)?;
    let mut is_empty = true;
    engine.keys(&[]..&[u8::MAX; 32], Order::Ascending, &mut |_, _| {
        is_empty = false;
        ControlFlow::Break(())
    })?;
    if !is_empty || engine.directory().is_some_and(crate::embedded::engine::Directory::established) {
        return Err(Error::InvalidInput(
            "a backup is restored into a new store only: name one that is not there yet".to_owned(),
        ));
    }
    let mut target = Target { engine, batch: Batch::default(), bytes: 0 };
    let restoring = key::meta(RESTORING);
    target.put(&restoring, &record::seal(&restoring, &1_u64)?);
    target.write()?;
    // The marker comes last: a restore that was cut off leaves no store.
    let mut marker = None;
    let mut conversations = 0;
    archive::read(input, &mut |key, value, bytes| {
        if key == key::meta(STORE).as_slice() {
            marker = Some((key.to_vec(), value.to_vec()));
            return Ok(());
        }
        conversations += u64::from(key.first() == Some(&key::HEAD));
        target.put(key, value);
        progress(bytes, size);
        if target.bytes >= RESTORE_BYTES { target.write() } else { Ok(()) }
    })?;
    let Some((key, value)) = marker else {
        return Err(Error::Corrupt { conversation: None, seq: None, detail: "the backup has no marker".to_owned() });
    };
    target.write()?;
    target.put(&key, &value);
    target.batch.remove(restoring);
    target.write()?;
    Ok(BackupSummary { conversations, bytes: size })
}

struct Target<'a> {
    engine: &'a Arc<dyn Engine>,
    batch: Batch,
    bytes: usize,
}

impl Target<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.bytes += key.len() + value.len();
        self.batch.put(key.to_vec(), value.to_vec());
    }

    fn write(&mut self) -> Result<()> {
        self.bytes = 0;
        self.engine.write(std::mem::take(&mut self.batch))?;
        self.engine.sync()
    }
}
