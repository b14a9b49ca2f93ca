//! Calls of the store: they block, so each has a thread, and no more calls run than there are threads.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::metrics::Metrics;
use super::refusal::Refusal;

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
        let followers = Arc::new(Semaphore::new((threads / 4).max(1)));
        Self { room: Arc::new(Semaphore::new(threads)), followers, metrics }
    }

    /// As [`Pool::run`], on a quarter of the threads: one entry may wake thousands of followers, and requests do not wait
    /// for all of them.
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
