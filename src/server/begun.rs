//! Responses that have begun: those that are in memory alone, and which request began which.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::model::ConversationId;
use crate::store::Store;

/// How many requests are known, for those that repeat one without a key.
const RECENT: usize = 1_024;

/// For how long a request may be repeated without a key: SDKs give up after 10 minutes.
const REPEATED: Duration = Duration::from_secs(600);

/// A request that has begun an answer.
#[derive(Debug)]
struct Recent {
    digest: [u8; 16],
    begun: Instant,
    /// A conversation, and the message's index.
    answer: (ConversationId, u64),
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

    /// The answer that a request of this digest has begun.
    pub(crate) fn recent(&self, digest: [u8; 16]) -> Option<(ConversationId, u64)> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = recent.iter().rev().find(|known| known.digest == digest);
        newest.filter(|known| known.begun.elapsed() < REPEATED).map(|known| known.answer)
    }

    pub(crate) fn remember(&self, digest: [u8; 16], answer: (ConversationId, u64)) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(Recent { digest, begun: Instant::now(), answer });
    }
}
