//! A log around the log, for one request: what is read of the store counts as what the request holds, before anything is made of it.

use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::ledger::Room;
use crate::error::Result;
use crate::history::Cursor;
use crate::log::{
    AppendOptions, BackupSummary, Control, Controlled, Health, ListPage, ListQuery, Log, NewConversation, OpenMessage,
    Order, Reading, Receipt, Redaction, Size, Verification, View, Visit, Wait,
};
use crate::model::{ConversationId, Message, Metadata, Name, Role};
use crate::store::Store;

/// A byte of a record is held as the record, as a message, and in the answer, which grows by doubling.
const HELD: usize = 4;
/// What a byte takes in addition that JSON or HTML writes as an escape: one of a control character is six bytes long.
const ESCAPED: usize = 4;
const CONTROL: usize = 12;
/// Bytes that are counted at one time; fewer are not.
const STEP: usize = 64 * 1024;

struct Metered {
    log: Arc<dyn Log>,
    room: Arc<Room>,
}

impl fmt::Debug for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.log.fmt(f)
    }
}

/// The store, for a request that holds what it reads.
pub(crate) fn metered(store: &Store, room: &Arc<Room>) -> Store {
    store.clone().around(|log| Metered { log, room: Arc::clone(room) })
}

/// What is held for the content of a record.
fn weight(content: &[u8]) -> usize {
    let of = |byte: &u8| match byte {
        b'\n' | b'\t' | b'\r' | b'"' | b'\\' | b'<' | b'>' | b'&' | b'\'' => HELD + ESCAPED,
        0..0x20 => HELD + CONTROL,
        _ => HELD,
    };
    content.iter().map(of).sum()
}

impl Log for Metered {
    fn owner(&self) -> &str {
        self.log.owner()
    }

    fn append(&self, name: &Name, messages: &[Message], options: &AppendOptions) -> Result<Receipt> {
        self.log.append(name, messages, options)
    }

    fn begin(
        &self,
        name: &Name,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Box<dyn OpenMessage>>, Receipt)> {
        self.log.begin(name, role, metadata, options)
    }

    fn create(&self, name: &Name, conversation: &NewConversation) -> Result<Receipt> {
        self.log.create(name, conversation)
    }

    fn control(&self, name: &Name, control: &Control<'_>) -> Result<Controlled> {
        self.log.control(name, control)
    }

    fn fork(&self, parent: &Name, at_seq: Option<u64>, child: &Name) -> Result<()> {
        self.log.fork(parent, at_seq, child)
    }

    fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()> {
        self.log.delete(name, at)
    }

    fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction> {
        self.log.redact(name, message, chunk)
    }

    fn view(&self, name: &Name) -> Result<Option<View>> {
        self.log.view(name)
    }

    /// A request reads several times, and drops most of what it read before: the largest of its reads counts.
    fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()> {
        let (mut held, mut counted, mut fits) = (0_usize, 0, Ok(()));
        self.log.read(view, seqs, order, &mut |reading| {
            if let Reading::Record { record, .. } = &reading {
                held = held.saturating_add(weight(record.content()));
                if held - counted >= STEP {
                    counted = held;
                    fits = self.room.reach(held);
                }
            }
            if fits.is_ok() { visit(reading) } else { ControlFlow::Break(()) }
        })?;
        fits
    }

    fn is_there(&self, view: &View) -> Result<bool> {
        self.log.is_there(view)
    }

    fn is_redacted_since(&self, view: &View, commit: u64) -> Result<bool> {
        self.log.is_redacted_since(view, commit)
    }

    fn item_seqs(&self, view: &View, item: &str) -> Result<Vec<u64>> {
        self.log.item_seqs(view, item)
    }

    fn conversations(&self) -> Result<Vec<ConversationId>> {
        self.log.conversations()
    }

    fn list(&self, query: &ListQuery) -> Result<ListPage> {
        self.log.list(query)
    }

    fn unfinished(&self) -> Result<Vec<ConversationId>> {
        self.log.unfinished()
    }

    fn wait_for(&self, wait: &Wait<'_>) -> Result<bool> {
        self.log.wait_for(wait)
    }

    fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        self.log.poll_for(wait, follower, waker)
    }

    fn wake(&self, name: &Name, follower: u64) {
        self.log.wake(name, follower);
    }

    fn sync(&self) -> Result<()> {
        self.log.sync()
    }

    fn close(&self) -> Result<()> {
        self.log.close()
    }

    fn health(&self) -> Health {
        self.log.health()
    }

    fn size(&self) -> Result<Size> {
        self.log.size()
    }

    fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
        self.log.verify(progress)
    }

    fn backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
        self.log.backup(path, progress)
    }
}
