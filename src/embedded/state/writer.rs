//! An open message: what it is, what was collected of it, why it takes no more content.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError};

use crate::embedded::sync::{Mutex, MutexGuard};
use crate::error::Error;
use crate::log::writer::{Closed, Closing, Collected};
use crate::model::{Name, Role};

/// An open message.
pub(crate) struct Writer {
    name: Name,
    message_index: u64,
    role: Role,
    closing: Closing,
    /// Locked before the log's state, never after.
    buffer: Mutex<Buffer>,
}

#[derive(Default)]
pub(crate) struct Buffer {
    pub(crate) collected: Collected,
    /// Its place among the writers that collect, from the first delta until what it collected is queued.
    pub(crate) place: Option<u64>,
}

/// Writers with deltas that are not queued yet.
#[derive(Debug, Default)]
pub(crate) struct Collecting {
    /// In the order in which they began to collect.
    writers: BTreeMap<u64, Arc<Writer>>,
    /// How often a writer began to collect.
    begun: u64,
}

impl Collecting {
    /// Adds a writer. Returns its place.
    pub(crate) fn add(&mut self, writer: &Arc<Writer>) -> u64 {
        self.begun += 1;
        self.writers.insert(self.begun, Arc::clone(writer));
        self.begun
    }

    /// Removes a writer, if it has a place.
    pub(crate) fn remove(&mut self, place: Option<u64>) {
        if let Some(place) = place {
            self.writers.remove(&place);
        }
    }

    pub(crate) fn writers(&self) -> Vec<Arc<Writer>> {
        self.writers.values().cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writers.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.writers.clear();
    }
}

/// Without what was collected.
impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, message_index, role, .. } = self;
        f.debug_struct("Writer")
            .field("name", name)
            .field("message_index", message_index)
            .field("role", role)
            .finish_non_exhaustive()
    }
}

impl Writer {
    pub(crate) fn new(name: Name, message_index: u64, role: Role) -> Self {
        Self { name, message_index, role, closing: Closing::default(), buffer: Mutex::default() }
    }

    pub(crate) const fn name(&self) -> &Name {
        &self.name
    }

    pub(crate) const fn message_index(&self) -> u64 {
        self.message_index
    }

    pub(crate) const fn role(&self) -> Role {
        self.role
    }

    /// Whether it was dropped: what it collected must still be queued.
    pub(crate) fn is_dropped(&self) -> bool {
        self.closing.is_dropped()
    }

    /// The first reason counts.
    pub(crate) fn close(&self, closed: Closed) {
        self.closing.close(closed);
    }

    /// Why the message takes no more content.
    pub(crate) fn error(&self) -> Error {
        self.closing.error(&self.name, self.message_index)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    /// What was collected is queued: returns its place among the writers that collect.
    pub(crate) fn clear(&mut self) -> Option<u64> {
        self.collected.clear();
        self.place.take()
    }
}
