//! Requests that last: of all keys together, and of one key, no more than so many at one time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::refusal::Refusal;

/// The streams that are open.
#[derive(Debug)]
pub(crate) struct Streams {
    /// Those that may still begin.
    room: Arc<Semaphore>,
    per_key: usize,
    of: Mutex<HashMap<String, usize>>,
}

/// One stream of a key. Dropping it makes room for another.
#[derive(Debug)]
pub(crate) struct Stream {
    streams: Arc<Streams>,
    key: String,
    _room: OwnedSemaphorePermit,
}

impl Streams {
    pub(crate) fn new(all: usize, per_key: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS))), per_key, of: Mutex::default() }
    }

    /// Begins a stream of a key.
    pub(crate) fn begin(self: &Arc<Self>, key: &str) -> Result<Stream, Refusal> {
        let full = || {
            let message = "too many streams are open; close some, or try again later";
            Refusal { retry_after: Some(5), ..Refusal::new(429, "too_many_streams", message) }
        };
        let room = Arc::clone(&self.room).try_acquire_owned().map_err(|_| full())?;
        let mut streams = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let open = streams.entry(key.to_owned()).or_default();
        if *open >= self.per_key {
            return Err(full());
        }
        *open += 1;
        Ok(Stream { streams: Arc::clone(self), key: key.to_owned(), _room: room })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut streams = self.streams.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = streams.get_mut(&self.key) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                streams.remove(&self.key);
            }
        }
    }
}
