//! Who has to wait, or to go: threads for calls of the store, streams at one time, requests per second, appends that exclude each
//! other.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::available_parallelism;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use super::metrics::Metrics;
use super::refusal::Refusal;
use crate::log::locked;
use crate::model::ConversationId;

/// Followers that read at one time, for each processor. Each holds a record before it is known how large it is, and one of the
/// connections to a database.
const FOLLOWERS_PER_PROCESSOR: usize = 2;

/// Threads for calls of the store.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    room: Arc<Semaphore>,
    /// How many of them may be followers'.
    followers: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

impl Pool {
    pub(crate) fn new(threads: usize, metrics: Arc<Metrics>) -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        let followers = (FOLLOWERS_PER_PROCESSOR * processors).min(threads / 4).max(1);
        Self { room: Arc::new(Semaphore::new(threads)), followers: Arc::new(Semaphore::new(followers)), metrics }
    }

    /// As [`Pool::run`], on few of the threads: one entry may wake thousands of followers, and requests do not wait for all of
    /// them.
    pub(crate) async fn run_for_follower<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let _share = self.followers.acquire().await.map_err(|_| ending())?;
        self.run(call).await
    }

    /// Runs a call once there is a thread for it. The call runs to its end even if nobody waits for it any more: a
    /// client that goes away does not leave a write half done.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let room = Arc::clone(&self.room).acquire_owned().await;
        let room = room.map_err(|_| ending())?;
        let metrics = Arc::clone(&self.metrics);
        let done = spawn_blocking(move || {
            let begun = Instant::now();
            metrics.store_calls.inc();
            let result = call();
            metrics.store_calls.dec();
            metrics.store_seconds.observe(begun.elapsed().as_secs_f64());
            drop(room);
            result
        });
        done.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a call of the store ended early");
            Err(Refusal::internal("the server failed at this request; its log has more"))
        })
    }
}

fn ending() -> Refusal {
    Refusal::busy("the server ends")
}

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
    /// What it takes of what there is.
    held: Vec<OwnedSemaphorePermit>,
}

impl Stream {
    /// With what its connection to an upstream takes.
    pub(crate) fn with(mut self, connection: OwnedSemaphorePermit) -> Self {
        self.held.push(connection);
        self
    }
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
        let mut streams = locked(&self.of);
        let open = streams.entry(key.to_owned()).or_default();
        if *open >= self.per_key {
            return Err(full());
        }
        *open += 1;
        Ok(Stream { streams: Arc::clone(self), key: key.to_owned(), held: vec![room] })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut streams = locked(&self.streams.of);
        if let Some(open) = streams.get_mut(&self.key) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                streams.remove(&self.key);
            }
        }
    }
}

/// A bucket of tokens for each key: filled at a rate, and never fuller than one second's worth.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<HashMap<String, (f64, Instant)>>);

impl Rates {
    /// Takes a token; without one, returns the whole seconds until there is one.
    pub(crate) fn take(&self, key: &str, per_second: u32, now: Instant) -> Result<(), u64> {
        if per_second == 0 {
            return Ok(());
        }
        let rate = f64::from(per_second);
        let mut buckets = locked(&self.0);
        let (tokens, filled) = buckets.entry(key.to_owned()).or_insert((rate, now));
        *tokens = rate.min(*tokens + now.saturating_duration_since(*filled).as_secs_f64() * rate);
        *filled = now;
        if *tokens < 1.0 {
            return Err(1);
        }
        *tokens -= 1.0;
        Ok(())
    }
}

/// Two conversations rarely share a lock, and then only wait for each other.
const STRIPES: usize = 256;

/// The locks.
#[derive(Debug)]
pub(crate) struct Stripes(Vec<RwLock<()>>, RwLock<()>);

impl Default for Stripes {
    fn default() -> Self {
        Self((0..STRIPES).map(|_| RwLock::default()).collect(), RwLock::default())
    }
}

impl Stripes {
    /// For an append that adds regardless of what is stored: others may do so at the same time.
    pub(crate) fn shared(&self, id: ConversationId) -> RwLockReadGuard<'_, ()> {
        self.of(id).read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For an append that looks first: nobody else adds meanwhile.
    pub(crate) fn alone(&self, id: ConversationId) -> RwLockWriteGuard<'_, ()> {
        self.of(id).write().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, id: ConversationId) -> &RwLock<()> {
        // The last bytes of every id are random, or a hash.
        let [.., last] = id.as_bytes();
        self.0.get(usize::from(*last)).unwrap_or(&self.1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn as_many_as_the_rate_and_then_as_time_goes() {
        let (rates, start) = (Rates::default(), Instant::now());
        let taken = |key: &str, millis: u64| {
            (0..10).filter(|_| rates.take(key, 4, start + Duration::from_millis(millis)).is_ok()).count()
        };
        assert_eq!((taken("a", 0), taken("a", 500), taken("a", 9_000), taken("b", 9_000)), (4, 2, 4, 4));
        assert!((0..100).all(|_| rates.take("c", 0, start).is_ok()));
    }
}
