//! What is recorded of the calls that pass, and where. `src/docs/proxy.md` has what is stored, field by field.
//!
//! - `meaning`: what of a message is compared, and its digest. `turns`: a request's runs, each with the digest of all before it.
//!   `echo`: whether a run is the echo of a recorded answer. `scope`: what a client says of its session.
//! - `book`: an entry for each call, in the log itself. `place`: where a request belongs, and what of it is stored.
//! - `around`: what surrounds the messages.
//! - `call`: one call, from its request to the end of its answer.
//! - here: what passes is handed over, and one task for each call takes it.

mod around;
mod book;
mod call;
mod echo;
mod meaning;
mod place;
mod scope;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use self::call::{Call, Placing};
use super::exchange::{Asked, Ended, Passed};
use crate::server::app::App;
use crate::server::ledger::Room;
use crate::server::refusal::Refusal;

/// How long a request waits for the answers before it to be stored.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(20);

/// A call that is being recorded.
#[derive(Debug)]
pub(crate) struct Recording {
    passing: mpsc::UnboundedSender<Passed>,
    queue: Arc<Queue>,
    kept: watch::Receiver<Option<bool>>,
}

/// The pieces of an answer that are not stored yet.
#[derive(Debug)]
struct Queue {
    room: Room,
    bytes: AtomicUsize,
    /// Whether a piece found no room: nothing after it is stored.
    is_behind: AtomicBool,
}

/// Begins to record a call. It never waits: what is stored is stored beside the traffic.
pub(crate) fn record(app: &Arc<App>, asked: Asked) -> Recording {
    let (passing, passed) = mpsc::unbounded_channel();
    let (tell, kept) = watch::channel(None);
    let room = app.ledger.room(&asked.caller.owner);
    let queue = Arc::new(Queue { room, bytes: AtomicUsize::new(0), is_behind: AtomicBool::new(false) });
    tokio::spawn(follow(Arc::clone(app), asked, passed, Arc::clone(&queue), tell));
    Recording { passing, queue, kept }
}

impl Recording {
    /// Takes what passes. It never waits; what there is no room for is left out, and the recording says so.
    pub(crate) fn pass(&self, passed: Passed) {
        if let Passed::Piece(piece) = &passed {
            if self.queue.is_behind.load(Ordering::Acquire) {
                return;
            }
            let waiting = self.queue.bytes.fetch_add(piece.len(), Ordering::AcqRel) + piece.len();
            if self.queue.room.reach(waiting).is_err() {
                self.queue.bytes.fetch_sub(piece.len(), Ordering::AcqRel);
                self.queue.is_behind.store(true, Ordering::Release);
                return;
            }
        }
        // The task has ended if the store failed: the traffic goes on.
        let _ = self.passing.send(passed);
    }

    /// Returns once the user's part is durable: with `record = "required"` nothing goes upstream before.
    pub(crate) async fn kept(&self) -> Result<(), Refusal> {
        let mut kept = self.kept.clone();
        match kept.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(true)) => Ok(()),
            _ => Err(Refusal::busy("the request could not be recorded, which this upstream requires")),
        }
    }

    /// Returns once somebody stopped this answer from elsewhere: by the API, perhaps of another server of the same store.
    pub(crate) async fn stopped(&self) {
        std::future::pending().await
    }
}

async fn follow(
    app: Arc<App>,
    asked: Asked,
    mut passed: mpsc::UnboundedReceiver<Passed>,
    queue: Arc<Queue>,
    tell: watch::Sender<Option<bool>>,
) {
    let exchange = asked.id;
    let failed = |refusal: &Refusal| tracing::error!(%exchange, error = %refusal.message, "a call was not recorded");
    let mut call = match placed(&app, asked).await {
        Ok(call) => call,
        Err(refusal) => {
            failed(&refusal);
            tell.send_replace(Some(false));
            return;
        }
    };
    tell.send_replace(Some(call.is_placed()));
    while let Some(next) = passed.recv().await {
        let end = match next {
            Passed::End(ended) => Some(ended),
            Passed::Head { status, headers, waited } => {
                call.head(status, &headers, waited);
                continue;
            }
            Passed::Left => {
                call.left();
                continue;
            }
            Passed::Piece(piece) => {
                let length = piece.len();
                let taken = app.pool.run(move || {
                    let result = call.take(&piece);
                    Ok((call, result))
                });
                let taken = taken.await;
                let waiting = queue.bytes.fetch_sub(length, Ordering::AcqRel).saturating_sub(length);
                queue.room.keep(waiting);
                match taken {
                    Ok((back, result)) => {
                        call = back;
                        if let Err(refusal) = result {
                            failed(&refusal);
                            call.store_failed();
                        }
                    }
                    Err(refusal) => return failed(&refusal),
                }
                None
            }
        };
        if let Some(ended) = end {
            let is_behind = queue.is_behind.load(Ordering::Acquire);
            return finish(&app, call, ended, is_behind).await.unwrap_or_else(|refusal| failed(&refusal));
        }
    }
    // The side that passes on has ended without a word: the server ends.
    let is_behind = queue.is_behind.load(Ordering::Acquire);
    finish(&app, call, Ended::Stopped, is_behind).await.unwrap_or_else(|refusal| failed(&refusal));
}

async fn finish(app: &Arc<App>, call: Call, ended: Ended, is_behind: bool) -> Result<(), Refusal> {
    app.pool.run(move || call.finish(ended, is_behind)).await
}

/// A call at its place, once all that it may echo is stored, or was waited for in vain.
async fn placed(app: &Arc<App>, asked: Asked) -> Result<Call, Refusal> {
    let end = Instant::now() + PATIENCE;
    let mut call = Call::new(app, asked);
    loop {
        let may_wait = Instant::now() < end;
        let (back, placing) = app
            .pool
            .run(move || {
                let placing = call.place(may_wait)?;
                Ok((call, placing))
            })
            .await?;
        call = back;
        match placing {
            Placing::Done => return Ok(call),
            Placing::Wait => sleep(LOOK).await,
        }
    }
}
