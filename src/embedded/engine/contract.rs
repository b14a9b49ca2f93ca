//! What every engine does.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::directory::Directory;
use crate::error::{Error, Result};
use crate::log::Order;

/// Sorted keys and values. All calls block. All may be made from several threads at once, except that only one thread
/// writes.
pub(crate) trait Engine: Send + Sync + fmt::Debug {
    /// The value under a key. `Corrupt` if a part of it is missing.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Visits the keys of a range with their values, until the visitor breaks. A write during the scan may be seen or
    /// not, but each value is seen whole, as one batch wrote it. The visitor may call the engine. A value with a
    /// missing part is shown as it is: its own checksum reveals that.
    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()>;

    /// As [`Engine::scan`], with the length of each value in its place: large values are not read.
    fn keys(&self, range: Range<&[u8]>, order: Order, visit: VisitKeys<'_>) -> Result<()> {
        self.scan(range, order, &mut |key, value| visit(key, value.len()))
    }

    /// Writes all of a batch or nothing. Readers see it at once; a power cut may take it until [`Engine::sync`]
    /// returns. No key begins with [`RESERVED`], and no existing value under one of the keys is larger than
    /// [`LARGE_BYTES`].
    fn write(&self, batch: Batch) -> Result<()>;

    /// As [`Engine::write`], for a batch that may replace or remove large values. An engine that keeps these in pieces
    /// reads the old value of each key, to remove its pieces too.
    fn rewrite(&self, batch: Batch) -> Result<()> {
        self.write(batch)
    }

    /// Everything written before survives a power cut once this returns.
    fn sync(&self) -> Result<()>;

    /// Writes operations in order, then `last`, a pair of the engine's own; all of it survives a power cut once this
    /// returns. It need not be one batch: a power cut or an error may leave a part of it, of a single large value too,
    /// until all of it is given again. Readers see each value whole.
    fn give(&self, operations: &mut dyn Iterator<Item = Operation<'_>>, last: (Vec<u8>, Vec<u8>)) -> Result<()> {
        let owned = |operation: Operation<'_>| (operation.key.to_vec(), operation.value.map(<[u8]>::to_vec));
        let mut batch = Batch { ops: operations.map(owned).collect() };
        batch.put(last.0, last.1);
        self.rewrite(batch)?;
        self.sync()
    }

    /// Whether it accepts no writes at all.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Damage that the opening found, after which acknowledged data may be missing.
    fn damage(&self) -> Option<&str> {
        None
    }

    /// Why it takes no more writes, if one of its own in the background failed.
    fn failure(&self) -> Option<String> {
        None
    }

    /// The engine's directory, if it has one.
    fn directory(&self) -> Option<&Directory>;
}

/// Called by a scan with each key and value.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// Called by a scan of keys with each key and the length of its value.
pub(crate) type VisitKeys<'a> = &'a mut dyn FnMut(&[u8], usize) -> ControlFlow<()>;

/// Keys that begin with this byte are the engine's own: the log uses none, and no scan shows them.
pub(super) const RESERVED: u8 = 0xff;

/// Where an engine keeps what the journal before it notes.
pub(super) const JOURNAL_KEY: &[u8] = &[RESERVED, RESERVED];

/// A value of more bytes is large: [`Engine::rewrite`] replaces and removes it.
pub(crate) const LARGE_BYTES: usize = 16 * 1024;

/// An operation of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation<'a> {
    pub(crate) key: &'a [u8],
    /// Absent: the key is removed.
    pub(crate) value: Option<&'a [u8]>,
    /// Whether the value before it may be large.
    pub(crate) rewrites: bool,
}

/// Puts (`Some`) and removals (`None`), applied in order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) ops: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// Fails if a key is the engine's own.
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    if key.first() == Some(&RESERVED) {
        return Err(Error::InvalidInput(format!("a key that begins with the byte {RESERVED} is the engine's own")));
    }
    Ok(())
}

/// The length of a value, as an engine can state it.
pub(crate) fn length_of(value: &[u8]) -> Result<u32> {
    u32::try_from(value.len()).map_err(|_| Error::LimitExceeded {
        what: "a value of the engine",
        actual: format!("{} bytes", value.len()),
        limit: format!("{} bytes", u32::MAX),
    })
}

impl Batch {
    /// Fails if one of its keys is the engine's own, or a value is too long.
    pub(crate) fn check(&self) -> Result<()> {
        self.ops.iter().try_for_each(|(key, value)| {
            check_key(key)?;
            value.as_deref().map_or(Ok(()), |value| length_of(value).map(|_| ()))
        })
    }

    pub(crate) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.ops.push((key, Some(value)));
    }

    pub(crate) fn remove(&mut self, key: Vec<u8>) {
        self.ops.push((key, None));
    }
}

/// Calls an engine. `action` names what it does.
pub(super) fn guarded<T>(path: &Path, action: &str, call: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| damaged(path, &format!("{action}: the engine panicked")))
}

/// The error of a store whose data does not fit together.
pub(super) fn damaged(path: &Path, detail: &str) -> Error {
    let detail = format!("{}: {detail}", path.display());
    Error::Corrupt { conversation: None, seq: None, detail }
}
