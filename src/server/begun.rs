//! Responses that have begun: those that are in memory alone, and which request began which.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::model::ConversationId;
use crate::store::Store;

/// How many requests are known, for those that repeat one without a key.
const RECENT: usize = 1_024;

/// For how long a request may be repeated without a key: SDKs give up after 10 minutes.
const REPEATED: Duration = Duration::from_secs(600);

/// A request that came.
#[derive(Debug)]
struct Recent {
    digest: [u8; 16],
    came: Instant,
    /// A conversation, and the message's index, once its answer has begun.
    answer: Option<(ConversationId, u64)>,
}

/// What all responses of a server share.
#[derive(Debug)]
pub(crate) struct BegunResponses {
    /// Those that are not stored, for as long as somebody follows them.
    pub(crate) passing: Store,
    recent: Mutex<VecDeque<Recent>>,
}

impl BegunResponses {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { passing: Store::open("memory:")?, recent: Mutex::default() })
    }

    /// The answer that a request of this digest has begun. If one of them began none, this is its repetition, and begins one.
    pub(crate) fn recent(&self, digest: [u8; 16]) -> Option<(ConversationId, u64)> {
        let mut recent = self.lock();
        let is_it = |known: &Recent| known.digest == digest && known.came.elapsed() < REPEATED;
        if let Some(at) = recent.iter().position(|known| is_it(known) && known.answer.is_none()) {
            recent.remove(at);
            return None;
        }
        recent.iter().rev().find(|known| is_it(known))?.answer
    }

    /// Notes a request whose answer has not begun.
    pub(crate) fn came(&self, digest: [u8; 16]) {
        self.note(digest, None);
    }

    /// Notes that the answer of a request has begun. `None` if it is not to be found again.
    pub(crate) fn begun(&self, digest: [u8; 16], answer: Option<(ConversationId, u64)>) {
        let mut recent = self.lock();
        if let Some(at) = recent.iter().position(|known| known.digest == digest && known.answer.is_none()) {
            recent.remove(at);
        }
        drop(recent);
        if answer.is_some() {
            self.note(digest, answer);
        }
    }

    fn note(&self, digest: [u8; 16], answer: Option<(ConversationId, u64)>) {
        let mut recent = self.lock();
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(Recent { digest, came: Instant::now(), answer });
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Recent>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
