//! Open messages of this process: what was collected of each, and why nothing more can be written to one.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{Mutex as Turn, Notify};

use super::statement::Statement;
use crate::error::Result;
use crate::log::locked;
use crate::log::writer::{Closed, Closing, Collected};
use crate::model::{ConversationId, Name, Role};

/// An open message.
pub(super) struct Writer {
    pub(super) name: Name,
    pub(super) incarnation: u64,
    pub(super) index: u64,
    pub(super) role: Role,
    pub(super) holder: [u8; 16],
    closing: Closing,
    buffer: Mutex<Buffer>,
    /// Held while a part is sent: parts arrive in order.
    pub(super) turn: Turn<Parts>,
}

/// What was collected, and whether it waits to be written.
#[derive(Default)]
pub(super) struct Buffer {
    pub(super) collected: Collected,
    is_listed: bool,
}

/// The parts of a message that were sent.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The number of the last one.
    pub(super) sent: u64,
    /// One of which nobody knows whether it arrived: it is sent again before all others.
    pub(super) unanswered: Option<Part>,
}

/// A part of a message.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) statement: Statement,
    /// Nothing comes after it.
    pub(super) is_last: bool,
    /// It may have been written already.
    pub(super) is_repeated: bool,
}

/// Without what was collected.
impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, index, role, .. } = self;
        f.debug_struct("Writer").field("name", name).field("index", index).field("role", role).finish_non_exhaustive()
    }
}

impl Writer {
    pub(super) fn new(name: Name, incarnation: u64, index: u64, role: Role, holder: [u8; 16]) -> Self {
        let (buffer, turn) = (Mutex::default(), Turn::default());
        Self { name, incarnation, index, role, holder, closing: Closing::default(), buffer, turn }
    }

    pub(super) fn buffer(&self) -> MutexGuard<'_, Buffer> {
        locked(&self.buffer)
    }

    /// Nothing more can be written to it. The first reason counts.
    pub(super) fn close(&self, closed: Closed) {
        self.closing.close(closed);
    }

    /// Whether it was dropped: what it collected is still to be written.
    pub(super) fn is_dropped(&self) -> bool {
        self.closing.is_dropped()
    }

    /// Fails if nothing more can be written to it.
    pub(super) fn check_open(&self) -> Result<()> {
        self.closing.check(&self.name, self.index)
    }
}

/// The open messages of this process.
#[derive(Default)]
pub(super) struct Writers {
    all: Mutex<All>,
    /// Something is collected.
    pub(super) collects: Notify,
}

#[derive(Default)]
struct All {
    open: HashMap<ConversationId, HashMap<u64, Arc<Writer>>>,
    /// Those with something to be written.
    collecting: Vec<Arc<Writer>>,
    /// Messages whose writers are gone, and whose end is not written yet.
    ending: HashMap<ConversationId, HashSet<u64>>,
}

impl Writers {
    pub(super) fn add(&self, writer: &Arc<Writer>) {
        locked(&self.all).open.entry(writer.name.id()).or_default().insert(writer.index, Arc::clone(writer));
    }

    /// Forgets a writer that has ended.
    pub(super) fn remove(&self, writer: &Writer) {
        let id = writer.name.id();
        let mut all = locked(&self.all);
        if let Some(ending) = all.ending.get_mut(&id) {
            ending.remove(&writer.index);
            if ending.is_empty() {
                all.ending.remove(&id);
            }
        }
        if let Some(open) = all.open.get_mut(&id) {
            if open.get(&writer.index).is_some_and(|known| std::ptr::eq(&**known, writer)) {
                open.remove(&writer.index);
            }
            if open.is_empty() {
                all.open.remove(&id);
            }
        }
    }

    /// The writer is gone: its message is read as interrupted from now on.
    pub(super) fn end(&self, writer: &Arc<Writer>) {
        locked(&self.all).ending.entry(writer.name.id()).or_default().insert(writer.index);
        self.collect(writer, &mut writer.buffer());
    }

    /// Lists a writer among those with something to be written.
    pub(super) fn collect(&self, writer: &Arc<Writer>, buffer: &mut Buffer) {
        if !std::mem::replace(&mut buffer.is_listed, true) {
            locked(&self.all).collecting.push(Arc::clone(writer));
            self.collects.notify_one();
        }
    }

    /// The writers with something to be written; they are listed no more.
    pub(super) fn take_collecting(&self) -> Vec<Arc<Writer>> {
        let collecting = std::mem::take(&mut locked(&self.all).collecting);
        for writer in &collecting {
            writer.buffer().is_listed = false;
        }
        collecting
    }

    /// All open messages, first those with something to be written, in their order; they are listed no more. Others may be
    /// sent by somebody else.
    pub(super) fn take_all(&self) -> Vec<Arc<Writer>> {
        let mut writers = self.take_collecting();
        let listed: HashSet<_> = writers.iter().map(Arc::as_ptr).collect();
        let all = locked(&self.all);
        let open = all.open.values().flat_map(HashMap::values);
        let others: Vec<_> = open.filter(|writer| !listed.contains(&Arc::as_ptr(writer))).cloned().collect();
        writers.extend(others);
        writers
    }

    /// The writers of these conversations that are gone, and whose messages are not ended yet.
    pub(super) fn dropped(&self, ids: &[ConversationId]) -> Vec<Arc<Writer>> {
        let all = locked(&self.all);
        let writers = ids.iter().filter_map(|id| all.open.get(id)).flat_map(HashMap::values);
        writers.filter(|writer| writer.is_dropped()).cloned().collect()
    }

    /// Whether some writer's message is held under a lease.
    pub(super) fn is_held(&self, holder: [u8; 16]) -> bool {
        locked(&self.all).open.values().flat_map(HashMap::values).any(|writer| writer.holder == holder)
    }

    /// Ends the writers of a conversation's messages from `first` on.
    pub(super) fn close(&self, id: ConversationId, first: u64, why: Closed) {
        let all = locked(&self.all);
        for writer in all.open.get(&id).into_iter().flat_map(HashMap::values).filter(|writer| writer.index >= first) {
            writer.close(why);
        }
    }

    /// The messages of a conversation whose writers are gone, and whose end is not written yet.
    pub(super) fn ending(&self, id: ConversationId) -> HashSet<u64> {
        locked(&self.all).ending.get(&id).cloned().unwrap_or_default()
    }
}
