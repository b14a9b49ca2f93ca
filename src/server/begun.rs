//! Responses that have begun: those that are in memory alone, and which request began which.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::model::ConversationId;
use crate::store::Store;

/// How many requests are known, for those that repeat one without a key.
const RECENT: usize = 1_024;

/// The digest of a request, and its answer: a conversation, and the message's index.
type Recent = ([u8; 16], (ConversationId, u64));

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
        recent.iter().rev().find(|(known, _)| *known == digest).map(|(_, answer)| *answer)
    }

    pub(crate) fn remember(&self, digest: [u8; 16], answer: (ConversationId, u64)) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back((digest, answer));
    }
}
