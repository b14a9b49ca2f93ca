//! What is recorded of the calls that pass, and where. `src/docs/proxy.md` has what is stored, field by field.
//!
//! - `meaning`: what of a message is compared, and its digest. `turns`: a request's runs, each with the digest of all before
//!   it. `echo`: whether a run is the echo of a recorded answer. `scope`: what a client says of its session.
//! - `book`: an entry for each call, in the log itself. `erased`: what of it goes with a conversation. `recorded`: a call that
//!   was recorded, as it is now, and an answer that a later call gets.
//! - `place`: where a request belongs, `rewritten`: where one does whose past the client has rewritten; `again`: where one
//!   does that failed and comes in another way; `plan`: what of it is stored there.
//! - `around`: what surrounds the messages. `sent`: a request byte for byte, kept as a difference. `outcome`: what has become
//!   of a call.
//! - `call`: one call, its request and its answer to the end; `voice`: one choice of the answer.
//! - here: what passes is handed over, and one task for each call takes it.

mod again;
mod around;
mod book;
mod call;
mod echo;
mod erased;
mod meaning;
mod outcome;
mod passed_over;
mod place;
mod plan;
mod recorded;
mod rewritten;
mod scope;
mod sent;
mod turns;
mod voice;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

pub(crate) use self::book::owner_key;
use self::book::{Book, End, State};
pub(crate) use self::book::{book, is_end, whose_book};
use self::call::{Answer, Call};
pub use self::erased::erasing;
pub(crate) use self::outcome::{Exchange, exchange, request};
use super::exchange::{Asked, Captured, Ended, Passed};
use crate::server::app::App;
use crate::server::config::Record;
use crate::server::exchanges::{Exchanges, Kind, Registered};
use crate::server::ledger::Room;
use crate::server::refusal::Refusal;

/// How long a request waits for the answers before it to be stored.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the rest of a request is waited for whose answer is over.
const REST: Duration = Duration::from_secs(1);
/// How long an answer that is fetched waits for the end of its call: that is stored soon, if the call was cut.
const FETCHED: Duration = Duration::from_secs(1);
/// How long what has come waits to be stored, so that passing it on goes first.
const ASIDE: Duration = Duration::from_millis(5);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(20);
/// The most pieces that are stored at one time, and about how many bytes.
const AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 1024 * 1024;
/// What a piece takes while it waits, beside its bytes.
const PIECE: usize = 256;

/// A call that is being recorded.
#[derive(Debug)]
pub(crate) struct Recording {
    id: Uuid,
    exchanges: Arc<Exchanges>,
    passing: mpsc::UnboundedSender<Passed>,
    queue: Arc<Queue>,
    /// Whether its request is stored, or why it is not.
    kept: watch::Receiver<Option<Result<(), State>>>,
    stopped: watch::Receiver<bool>,
    /// Whether its answer is an error, and whether it is over.
    is_error: AtomicBool,
    over: watch::Sender<bool>,
}

/// The pieces of an answer that are not stored yet.
#[derive(Debug)]
struct Queue {
    room: Room,
    bytes: AtomicUsize,
    /// Whether a piece found no room: nothing after it is stored.
    is_behind: AtomicBool,
}

impl Queue {
    /// Takes no more, and holds nothing.
    fn close(&self) {
        self.is_behind.store(true, Ordering::Release);
        self.bytes.store(0, Ordering::Release);
        self.room.keep(0);
    }

    /// Gives back what a piece took.
    fn gives(&self, held: usize) {
        let waiting = self.bytes.fetch_sub(held, Ordering::AcqRel).saturating_sub(held);
        self.room.keep(waiting);
    }
}

/// What is kept of a request's body.
pub(crate) enum Coming {
    There(Captured),
    /// Its answer has begun before its end.
    Later(Pin<Box<dyn Future<Output = Captured> + Send>>),
}

/// Begins to record a call. It never waits: what is stored is stored beside the traffic.
pub(crate) fn record(app: &Arc<App>, asked: Asked, body: Coming) -> Recording {
    let (passing, passed) = mpsc::unbounded_channel();
    let (tell, kept) = watch::channel(None);
    let (over, is_over) = watch::channel(false);
    let id = asked.id;
    let room = app.ledger.room(&asked.caller.owner);
    let queue = Arc::new(Queue { room, bytes: AtomicUsize::new(0), is_behind: AtomicBool::new(false) });
    let kind = if asked.fetched.is_some() { Kind::Fetched } else { Kind::Exchange };
    let (registered, stopped) = app.exchanges.begin(asked.id, &asked.caller.owner, kind);
    if matches!(body, Coming::There(_)) {
        app.exchanges.asks(asked.id);
    }
    let following = Following { app: Arc::clone(app), queue: Arc::clone(&queue), registered };
    tokio::spawn(async move {
        let body = match body {
            Coming::There(body) => body,
            Coming::Later(body) => {
                let body = tokio::select! {
                    body = body => body,
                    () = rest_is_late(is_over) => Captured::Cut,
                };
                following.app.exchanges.asks(id);
                body
            }
        };
        following.follow(Asked { body, ..asked }, passed, tell).await;
    });
    let (exchanges, is_error) = (Arc::clone(&app.exchanges), AtomicBool::new(false));
    Recording { id, exchanges, passing, queue, kept, stopped, is_error, over }
}

/// Returns some time after the end of an answer: until then the rest of its request may come.
async fn rest_is_late(mut is_over: watch::Receiver<bool>) {
    // The side that passes on may end without a word.
    let _ = is_over.wait_for(|is_over| *is_over).await;
    sleep(REST).await;
}

impl Recording {
    /// Takes what passes. It never waits; what there is no room for is left out, and the recording says so.
    pub(crate) fn pass(&self, passed: Passed) {
        if let Passed::Piece(piece) = &passed {
            if self.queue.is_behind.load(Ordering::Acquire) {
                return;
            }
            let held = piece.len() + PIECE;
            let waiting = self.queue.bytes.fetch_add(held, Ordering::AcqRel) + held;
            if self.queue.room.reach(waiting).is_err() {
                self.queue.bytes.fetch_sub(held, Ordering::AcqRel);
                self.queue.is_behind.store(true, Ordering::Release);
                return;
            }
        }
        match &passed {
            Passed::Head { status, .. } => {
                self.is_error.store(!status.is_success(), Ordering::Release);
                self.exchanges.answers(self.id);
            }
            Passed::Failed(_) => {
                self.exchanges.answers(self.id);
                self.exchanges.fails(self.id);
            }
            Passed::End(ended) => {
                if *ended == Ended::UpstreamCut || self.is_error.load(Ordering::Acquire) {
                    self.exchanges.fails(self.id);
                }
                self.over.send_replace(true);
            }
            Passed::Left => self.exchanges.leaves(self.id),
            Passed::Piece(_) | Passed::Repaired(_) => {}
        }
        // The task has ended if the store failed: the traffic goes on.
        if self.passing.send(passed).is_err() {
            self.queue.close();
        }
    }

    /// Returns once the user's part is durable: with `record = "required"` nothing goes upstream before.
    pub(crate) async fn kept(&self) -> Result<(), Refusal> {
        let mut kept = self.kept.clone();
        match kept.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(Ok(()))) => Ok(()),
            Ok(Some(Err(State::Unreadable))) => {
                let message = "the request could not be read, and this upstream requires that it is recorded";
                Err(Refusal::new(415, "unreadable", message))
            }
            _ => Err(Refusal::busy("the request could not be recorded, which this upstream requires")),
        }
    }

    /// Returns once somebody stopped this answer by the API.
    pub(crate) async fn stopped(&self) {
        let mut stopped = self.stopped.clone();
        if stopped.wait_for(|is_stopped| *is_stopped).await.is_err() {
            std::future::pending().await
        }
    }
}

/// One call, as its task follows it.
struct Following {
    app: Arc<App>,
    queue: Arc<Queue>,
    /// Until its end is stored.
    registered: Registered,
}

impl Following {
    async fn follow(
        self,
        asked: Asked,
        mut passed: mpsc::UnboundedReceiver<Passed>,
        tell: watch::Sender<Option<Result<(), State>>>,
    ) {
        let exchange = asked.id;
        let failed =
            |refusal: &Refusal| tracing::error!(%exchange, error = %refusal.message, "a call was not recorded");
        let owner = asked.caller.owner.clone();
        let placed = placed(&self.app, asked).await;
        self.app.exchanges.settled(exchange);
        let mut answer = match placed {
            Ok(answer) => answer,
            Err(refusal) => {
                failed(&refusal);
                tell.send_replace(Some(Err(State::StoreFailed)));
                self.app.metrics.recorded(State::StoreFailed.as_str());
                drop(passed);
                self.queue.close();
                return self.note_failure(exchange, owner).await;
            }
        };
        tell.send_replace(Some(answer.kept()));
        // The side that passes on ends without a word if the server ends.
        let mut ended = Ended::Stopped;
        let mut after_pieces = None;
        loop {
            let next = match after_pieces.take() {
                Some(next) => Some(next),
                None => passed.recv().await,
            };
            match next {
                None => break,
                Some(Passed::End(how)) => {
                    ended = how;
                    break;
                }
                Some(Passed::Head { status, headers, waited }) => answer.head(status, &headers, waited),
                Some(Passed::Failed(error)) => answer.failed(error),
                Some(Passed::Left) => answer.left(),
                Some(Passed::Repaired(report)) => answer.repaired(report),
                Some(Passed::Piece(piece)) => {
                    if passed.is_empty() && !passed.is_closed() {
                        sleep(ASIDE).await;
                    }
                    let mut bytes = piece.len();
                    let mut pieces = vec![piece];
                    while pieces.len() < AT_ONCE && bytes < BYTES_AT_ONCE && after_pieces.is_none() {
                        match passed.try_recv() {
                            Ok(Passed::Piece(piece)) => {
                                bytes += piece.len();
                                pieces.push(piece);
                            }
                            Ok(other) => after_pieces = Some(other),
                            Err(_) => break,
                        }
                    }
                    match self.take(answer, pieces, &failed).await {
                        Ok(back) => answer = back,
                        Err(refusal) => {
                            self.app.metrics.recorded(State::StoreFailed.as_str());
                            drop(passed);
                            self.queue.close();
                            return failed(&refusal);
                        }
                    }
                }
            }
        }
        let (is_behind, is_stopped) = (self.queue.is_behind.load(Ordering::Acquire), self.registered.ends());
        match self.app.pool.run(move || answer.finish(ended, is_behind, is_stopped)).await {
            Ok(state) => _ = state.map(|state| self.app.metrics.recorded(state.as_str())),
            Err(refusal) => {
                self.app.metrics.recorded(State::StoreFailed.as_str());
                failed(&refusal);
            }
        }
    }

    /// Notes that the request was not stored, if the store takes that.
    async fn note_failure(&self, exchange: Uuid, owner: String) {
        let app = Arc::clone(&self.app);
        let noted = self.app.pool.run(move || {
            let book = Book::open(&app.store, &app.exchanges, &owner)?;
            Ok(book.end(exchange, &End::of(State::StoreFailed), &[])?)
        });
        if let Err(refusal) = noted.await {
            tracing::error!(%exchange, error = %refusal.message, "a call has no line in the book");
        }
    }

    async fn take(
        &self,
        mut answer: Box<Answer>,
        pieces: Vec<Bytes>,
        failed: &impl Fn(&Refusal),
    ) -> Result<Box<Answer>, Refusal> {
        let length: usize = pieces.iter().map(Bytes::len).sum();
        let held = length + pieces.len() * PIECE;
        let room = answer.room();
        if room.wait(answer.taking(length)).await.is_err() {
            answer.stop_taking();
        }
        let taken = self.app.pool.run(move || {
            let result = pieces.iter().try_for_each(|piece| answer.take(piece));
            Ok((answer, result))
        });
        let taken = taken.await;
        self.queue.gives(held);
        let (mut answer, result) = taken?;
        room.keep(answer.waiting());
        if answer.is_full() {
            self.queue.is_behind.store(true, Ordering::Release);
        }
        if let Err(refusal) = result {
            failed(&refusal);
            answer.store_failed();
        }
        Ok(answer)
    }
}

/// A call at its place, once all that it may echo is stored, or was waited for in vain; and its answer, which may come.
async fn placed(app: &Arc<App>, asked: Asked) -> Result<Box<Answer>, Refusal> {
    let end = Instant::now() + if asked.fetched.is_some() { FETCHED } else { PATIENCE };
    let mut call = Box::new(Call::new(app, asked));
    // Where the record is required, nothing passes before it is there.
    let upstream = app.upstreams.find(call.upstream());
    if upstream.is_none_or(|upstream| upstream.set.record != Record::Required) {
        sleep(ASIDE).await;
    }
    // Who waits holds nothing that another one waits for.
    let _ = timeout_at(end, app.exchanges.turn(call.exchange())).await;
    let room = Arc::clone(&call.room);
    if call.is_encoded() {
        let decoded = app.pool.run(move || {
            call.decode();
            Ok(call)
        });
        call = decoded.await?;
    }
    // What it takes is known before it is parsed.
    let _parsed = match call.parsing() {
        0 => None,
        wanted => {
            let parsed = app.ledger.room(call.owner());
            if parsed.wait(wanted).await.is_err() {
                call.leave_unread();
            }
            Some(parsed)
        }
    };
    loop {
        let may_wait = Instant::now() < end;
        let (back, placed) = app
            .pool
            .run(move || {
                let placed = call.place(may_wait);
                Ok((call, placed))
            })
            .await?;
        call = back;
        match (placed, room.take_wanted()) {
            (Ok(Some(destination)), _) => {
                room.keep(0);
                return Ok(Box::new(Answer::of(*call, destination)));
            }
            (Ok(None), _) => sleep(LOOK).await,
            // It is looked for again, once there is room for what that reads.
            (Err(_), Some(wanted)) if may_wait => {
                room.keep(0);
                let more = wanted.saturating_mul(2).min(app.ledger.share() / 2);
                let _ = room.wait(wanted.max(more)).await;
            }
            (Err(refusal), _) => return Err(refusal),
        }
    }
}
