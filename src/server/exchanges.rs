//! The calls of models that this server records now.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::error::Result;
use crate::model::ConversationId;

/// The calls that are recorded now.
pub(crate) struct Exchanges {
    running: Mutex<HashMap<Uuid, Running>>,
    ended: Notify,
    /// The keys of owners' digests, as far as they were read or made.
    keys: Mutex<HashMap<String, [u8; 32]>>,
    /// The first id of this server: those before it are of earlier ones, or of others of the same store.
    first: Uuid,
}

impl fmt::Debug for Exchanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchanges").field("running", &self.running).finish_non_exhaustive()
    }
}

impl Default for Exchanges {
    fn default() -> Self {
        Self { running: Mutex::default(), ended: Notify::new(), keys: Mutex::default(), first: Uuid::now_v7() }
    }
}

#[derive(Debug)]
struct Running {
    owner: String,
    /// Known once the request is stored.
    conversation: Option<ConversationId>,
    stop: watch::Sender<bool>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Registered {
    exchanges: Arc<Exchanges>,
    id: Uuid,
}

impl Exchanges {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call: also whether it is to stop.
    pub(crate) fn begin(self: &Arc<Self>, id: Uuid, owner: &str) -> (Registered, watch::Receiver<bool>) {
        let (stop, stopped) = watch::channel(false);
        self.lock().insert(id, Running { owner: owner.to_owned(), conversation: None, stop });
        (Registered { exchanges: Arc::clone(self), id }, stopped)
    }

    /// Notes where a call's request is stored.
    pub(crate) fn placed(&self, id: Uuid, conversation: ConversationId) {
        if let Some(running) = self.lock().get_mut(&id) {
            running.conversation = Some(conversation);
        }
    }

    /// Stops the answers that are being written to a conversation: the exchanges.
    pub(crate) fn stop(&self, owner: &str, conversation: ConversationId) -> Vec<Uuid> {
        let running = self.lock();
        let is_meant = |running: &Running| running.owner == owner && running.conversation == Some(conversation);
        let mut stopped = Vec::new();
        for (id, one) in running.iter().filter(|(_, running)| is_meant(running)) {
            one.stop.send_replace(true);
            stopped.push(*id);
        }
        stopped
    }

    /// Whether an answer is being written to a conversation.
    pub(crate) fn is_writing(&self, owner: &str, conversation: ConversationId) -> bool {
        let is_it = |running: &Running| running.owner == owner && running.conversation == Some(conversation);
        self.lock().values().any(is_it)
    }

    /// Returns once none is recorded any more.
    pub(crate) async fn none(&self) {
        loop {
            // Asked for before the look, so that nothing is missed between.
            let ended = self.ended.notified();
            if self.lock().is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// The key of an owner's digests. Only one call makes it, and others wait for that.
    pub(crate) fn key_of(&self, owner: &str, make: impl FnOnce() -> Result<[u8; 32]>) -> Result<[u8; 32]> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.get(owner) {
            return Ok(*key);
        }
        let key = make()?;
        keys.insert(owner.to_owned(), key);
        Ok(key)
    }

    /// Whether the end of a call, of which the book knows none, was lost with the server that passed it on.
    pub(crate) fn is_lost(&self, id: Uuid) -> bool {
        // Ids are in the order of time.
        id < self.first
    }

    pub(crate) fn is_running(&self, owner: &str, id: Uuid) -> bool {
        self.lock().get(&id).is_some_and(|running| running.owner == owner)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.exchanges.lock().remove(&self.id);
        self.exchanges.ended.notify_waiters();
    }
}
