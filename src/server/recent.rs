//! The newest requests of calls that are recorded, in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

/// The most bytes of them.
const RECENT: usize = 32 * 1024 * 1024;

/// A request, and a secret that only who has all that it was compared with can know.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) secret: [u8; 16],
}

/// The newest requests, by their exchanges: the next one is compared with one of them. What is not there is read from the store.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<VecDeque<(Uuid, Known)>>);

impl Recent {
    pub(crate) fn find(&self, exchange: Uuid) -> Option<Known> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.iter().rev().find(|(known, _)| *known == exchange).map(|(_, known)| known.clone())
    }

    pub(crate) fn keep(&self, exchange: Uuid, known: Known) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_back((exchange, known));
        let mut bytes: usize = recent.iter().map(|(_, known)| known.bytes.len()).sum();
        while bytes > RECENT {
            bytes -= recent.pop_front().map_or(bytes, |(_, known)| known.bytes.len());
        }
    }
}
