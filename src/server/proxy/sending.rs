//! A call from its request to the head of its answer, as steps over one state.
//!
//! While the upstream is waited for, three things may happen: the body of the request is there, and the recording begins; the
//! client leaves; somebody stops the call. Each request that is sent is waited for in the same way, also the repaired one.
//!
//! A request whose history breaks a rule of its wire is repaired.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, header};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant, sleep_until, timeout};
use uuid::Uuid;

use super::answer::{Answer, Passing};
use super::exchange::{Asked, Captured, Ended, Passed};
use super::headers;
use super::record::{Coming, record};
use super::tee::{Keeping, Read, Rest, Tee};
use crate::history::ReportLine;
use crate::provider::{PromptOptions, Target, check, repair};
use crate::server::app::{App, Outcome, Reply};
use crate::server::body::Judged;
use crate::server::config::{OnDisconnect, Record, Repair};
use crate::server::exchanges::Exchanges;
use crate::server::ledger::Room;
use crate::server::refusal::Refusal;

/// How long a connection that has failed may keep what it was to send.
const LET_GO: Duration = Duration::from_secs(1);

/// A call whose answer has not begun.
pub(super) struct Sending {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    /// What is sent next.
    body: Body,
    /// What became of the client's body, once that is known; and what of it was not wanted.
    read: Option<oneshot::Receiver<Read>>,
    rest: Option<Rest>,
    /// Whether it ended early on its way, or the client sent no more of it.
    is_broken: Arc<AtomicBool>,
    /// What is known of the request, until the recording begins. Absent if nothing is recorded.
    asked: Option<Asked>,
    /// The wire, if the history may be repaired.
    repaired: Option<Target>,
    /// The client's body, if it may be repaired.
    said: Option<Bytes>,
    /// What a repair changed.
    report: Option<Vec<ReportLine>>,
    passing: Passing,
    client: Waiting,
}

/// The client, as long as it waits for the head of the answer.
struct Waiting {
    answered: oneshot::Sender<Outcome>,
    /// How long the call goes on without it, and since when it has gone.
    patience: Duration,
    gone: Option<Instant>,
    /// Where it is noted that it has gone, if the call is recorded.
    noted: Option<(Arc<Exchanges>, Uuid)>,
}

impl Waiting {
    /// Returns once nobody waits for the answer any more.
    async fn gone(&mut self) {
        self.answered.closed().await;
        if let Some((exchanges, id)) = &self.noted {
            exchanges.leaves(*id);
        }
        let since = *self.gone.get_or_insert_with(Instant::now);
        sleep_until(since + self.patience).await;
    }
}

/// Why there is no answer.
struct Failed {
    ended: Ended,
    refusal: Refusal,
}

impl Failed {
    const fn of_request(refusal: Refusal) -> Self {
        Self { ended: Ended::ClientGone, refusal }
    }

    fn broken_body() -> Self {
        Self::of_request(Refusal::new(400, "broken_body", "the body ended early, or no more of it came"))
    }

    fn early(ended: Ended) -> Self {
        Self { ended, refusal: Refusal::new(502, "stopped", "the call was stopped before its answer began") }
    }
}

impl Sending {
    /// A call, and where the head of its answer comes.
    ///
    /// `asked`: if it is recorded. `repaired`: the wire, if its history may be repaired.
    pub(super) fn new(
        request: Request,
        asked: Option<Asked>,
        repaired: Option<Target>,
        passing: Passing,
    ) -> (Self, oneshot::Receiver<Outcome>) {
        let (parts, body) = request.into_parts();
        let (limits, set) = (&passing.app.config.limits, &passing.upstream.set);
        let (keeping, read) = if asked.is_some() || repaired.is_some() {
            let (keeping, read) = Keeping::new(Arc::new(passing.app.ledger.room(&passing.owner)), limits.body_bytes);
            (Some(keeping), Some(read))
        } else {
            (None, None)
        };
        let drains = asked.is_some() && set.on_disconnect == OnDisconnect::Drain;
        let patience = if drains { set.drain() } else { Duration::ZERO };
        let (answered, head) = oneshot::channel();
        let is_broken = Arc::new(AtomicBool::new(false));
        let noted = asked.as_ref().map(|asked| (Arc::clone(&passing.app.exchanges), asked.id));
        let sending = Self {
            method: parts.method,
            uri: parts.uri,
            headers: parts.headers,
            body: Tee::of(body, keeping, limits.idle(), Arc::clone(&is_broken)),
            read,
            rest: None,
            is_broken,
            asked,
            repaired,
            said: None,
            report: None,
            passing,
            client: Waiting { answered, patience, gone: None, noted },
        };
        (sending, head)
    }

    /// Sends the request, and hands the head of its answer over.
    pub(super) async fn run(mut self) {
        let answer = self.answer().await;
        let Self { passing, report, client, .. } = self;
        let outcome = match answer {
            Ok(answer) => Ok(head(answer, report, passing)),
            Err(Failed { ended, refusal }) => {
                passing.end(ended);
                Err(refusal)
            }
        };
        // Nobody takes it if the client has gone: what is dropped then is read to its end.
        let _ = client.answered.send(outcome);
    }

    async fn answer(&mut self) -> Result<Response<Incoming>, Failed> {
        if self.is_required() || self.is_repaired_ahead() {
            self.take_body().await?;
            self.until_durable().await?;
            self.repair_ahead().await;
        }
        let answer = self.send().await?;
        if answer.status() != StatusCode::BAD_REQUEST || !self.repair_refused().await {
            return Ok(answer);
        }
        drop(answer);
        self.send().await
    }

    /// Whether nothing is sent before the request is durable.
    fn is_required(&self) -> bool {
        let is_recorded = self.asked.as_ref().is_some_and(|asked| asked.fetched.is_none());
        let is_recorded = is_recorded || self.passing.recording.is_some();
        is_recorded && self.passing.upstream.set.record == Record::Required
    }

    /// Whether a history is repaired before it is sent. What is larger than a body that is held passes as it is.
    fn is_repaired_ahead(&self) -> bool {
        let most = self.passing.app.config.limits.body_bytes as u64;
        let fits = || http_body::Body::size_hint(&self.body).upper().is_some_and(|length| length <= most);
        self.repaired.is_some() && self.passing.upstream.set.repair == Repair::Always && fits()
    }

    /// Takes the whole body before anything is sent.
    async fn take_body(&mut self) -> Result<(), Failed> {
        let mut body = std::mem::take(&mut self.body);
        while let Some(frame) = body.frame().await {
            frame.map_err(|_| Failed::broken_body())?;
        }
        let bytes = match read(&mut self.read).await {
            Read::Captured(Captured::Whole(bytes)) => bytes,
            Read::Captured(Captured::Cut) | Read::Left(_) => return Err(Failed::broken_body()),
            Read::Captured(Captured::TooLarge) if !self.is_required() => {
                let message = "there is no room for the request that is to be repaired";
                return Err(Failed::of_request(Refusal::busy(message)));
            }
            Read::Captured(Captured::TooLarge) => {
                let message = "the body is too large to be recorded, which this upstream requires (limits.body_bytes)";
                return Err(Failed::of_request(Refusal::new(413, "body_too_large", message)));
            }
        };
        self.body = bytes.clone().into();
        self.begin_recording(Captured::Whole(bytes));
        Ok(())
    }

    /// Returns once the request is durable, if nothing may be sent before.
    fn until_durable(&self) -> impl Future<Output = Result<(), Failed>> + use<> {
        let recording = self.passing.recording.clone().filter(|_| self.is_required());
        async move {
            let Some(recording) = recording else { return Ok(()) };
            tokio::select! {
                biased;
                kept = recording.kept() => kept.map_err(Failed::of_request),
                () = recording.stopped() => Err(Failed::early(Ended::Stopped)),
            }
        }
    }

    async fn repair_ahead(&mut self) {
        if self.passing.upstream.set.repair == Repair::Always {
            self.repair().await;
        }
    }

    /// Whether the upstream refused a history that is repaired now: to be sent again.
    async fn repair_refused(&mut self) -> bool {
        self.report.is_none() && self.passing.upstream.set.repair == Repair::Refused && self.repair().await
    }

    async fn repair(&mut self) -> bool {
        let (Some(target), Some(said)) = (self.repaired, self.said.take()) else { return false };
        let Some(Repaired { body, report }) =
            Repaired::of(&self.passing.app, self.passing.app.ledger.room(&self.passing.owner), target, said).await
        else {
            return false;
        };
        self.headers = Repaired::headers(&self.headers);
        self.body = body.into();
        self.report = Some(report);
        true
    }

    /// Begins to record the call, unless that has begun.
    fn begin_recording(&mut self, body: Captured) {
        if let (Captured::Whole(bytes), Some(_)) = (&body, self.repaired) {
            self.said = Some(bytes.clone());
        }
        self.record(Coming::There(body));
    }

    fn record(&mut self, body: Coming) {
        if let Some(asked) = self.asked.take() {
            self.passing.recording = Some(Arc::new(record(&self.passing.app, asked, body)));
        }
    }

    /// Records that there is no answer, and why: also of a request that the upstream has not read.
    async fn fail(&mut self, error: String) {
        if self.asked.is_some() {
            // Who has failed to send it lets go of it.
            let body = match self.rest.take() {
                Some(rest) => Some(Read::Left(rest)),
                None => timeout(LET_GO, read(&mut self.read)).await.ok(),
            };
            match body {
                Some(Read::Left(rest)) => self.begin_recording(rest.read().await),
                Some(Read::Captured(body)) => self.begin_recording(body),
                None => {}
            }
        }
        if let Some(recording) = &self.passing.recording {
            recording.pass(Passed::Failed(error));
        }
    }

    /// Sends what is to be sent next: the head of the answer.
    async fn send(&mut self) -> Result<Response<Incoming>, Failed> {
        let mut request = Request::new(std::mem::take(&mut self.body));
        (*request.method_mut(), *request.uri_mut()) = (self.method.clone(), self.uri.clone());
        request.headers_mut().clone_from(&self.headers);
        let upstream = Arc::clone(&self.passing.upstream);
        let mut sent = std::pin::pin!(upstream.send(request));
        let mut answer = loop {
            let stopped = self.passing.stopped();
            tokio::select! {
                biased;
                body = read(&mut self.read) => match body {
                    Read::Captured(body) => self.begin_recording(body),
                    Read::Left(rest) => self.rest = Some(rest),
                },
                head = &mut sent => break head.map_err(|refusal| Failed { ended: Ended::UpstreamCut, refusal }),
                () = stopped => break Err(Failed::early(Ended::Stopped)),
                () = self.client.gone() => break Err(Failed::early(Ended::ClientGone)),
            }
        };
        if let Err(Failed { ended: Ended::UpstreamCut, refusal }) = &answer {
            self.fail(refusal.message.clone()).await;
            if self.is_broken.load(Ordering::Acquire) {
                answer = Err(Failed::broken_body());
            }
        }
        // Else it came before the end of the request, which goes on.
        match (self.read.take(), self.rest.take()) {
            (Some(mut coming), _) => match coming.try_recv() {
                Ok(Read::Captured(body)) => self.begin_recording(body),
                Ok(Read::Left(rest)) => self.record(Coming::Later(Box::pin(rest.read()))),
                Err(_) => self.record(Coming::Later(Box::pin(async { captured(coming.await.ok()).await }))),
            },
            (None, Some(rest)) => self.record(Coming::Later(Box::pin(rest.read()))),
            (None, None) => self.record(Coming::There(Captured::Cut)),
        }
        answer
    }
}

/// What is kept of a body whose end nobody waits for.
async fn captured(read: Option<Read>) -> Captured {
    match read {
        Some(Read::Captured(body)) => body,
        Some(Read::Left(rest)) => rest.read().await,
        None => Captured::Cut,
    }
}

/// What became of a body, once that is known.
async fn read(body: &mut Option<oneshot::Receiver<Read>>) -> Read {
    match body {
        Some(receiver) => {
            let read = receiver.await.unwrap_or(Read::Captured(Captured::Cut));
            *body = None;
            read
        }
        None => std::future::pending().await,
    }
}

/// The answer as the client gets it.
fn head(answer: Response<Incoming>, report: Option<Vec<ReportLine>>, mut passing: Passing) -> Reply {
    let (parts, from) = answer.into_parts();
    let waited = passing.line.begun.elapsed();
    passing.line.status = Some(parts.status.as_u16());
    passing.line.first = Some(waited);
    if let Some(recording) = &passing.recording {
        if let Some(report) = &report {
            recording.pass(Passed::Repaired(report.iter().map(ToString::to_string).collect()));
        }
        let headers = headers::harmless(&parts.headers);
        recording.pass(Passed::Head { status: parts.status, headers, waited });
    }
    let mut reply = Reply::new(Answer::of(from, passing));
    *reply.status_mut() = parts.status;
    *reply.headers_mut() = parts.headers;
    headers::back(reply.headers_mut());
    if let Some(report) = report {
        Repaired::state(reply.headers_mut(), report.len());
    }
    reply
}

/// How many lines a report has.
const REPORT: HeaderName = HeaderName::from_static("x-convo-report");

/// A byte of a request that is repaired: it is read, said again, and compared.
const REPAIRED: usize = 4;

/// A request that was repaired.
#[derive(Debug)]
pub(super) struct Repaired {
    pub(super) body: Bytes,
    pub(super) report: Vec<ReportLine>,
}

impl Repaired {
    /// Repairs a request. `None`: it breaks no rule for which it would be refused, or cannot be read or repaired, or there is no
    /// room for what that takes.
    pub(super) async fn of(app: &App, room: Room, target: Target, body: Bytes) -> Option<Self> {
        room.wait(Judged::Repaired.weight(&body).saturating_add(body.len().saturating_mul(REPAIRED))).await.ok()?;
        let repaired = app.pool.run(move || {
            let _held = room;
            let Ok(text) = std::str::from_utf8(&body) else { return Ok(None) };
            let is_refused = check(target, text).is_ok_and(|found| found.iter().any(|line| line.level.is_refused()));
            if !is_refused {
                return Ok(None);
            }
            let Ok(prompt) = repair(target, target, text, &PromptOptions::new()) else { return Ok(None) };
            let body = Bytes::from(prompt.request.get().to_owned());
            Ok((body != text).then_some(Self { body, report: prompt.report }))
        });
        repaired.await.ok().flatten()
    }

    /// The head of its request: HTTP states the length of the body.
    pub(super) fn headers(headers: &HeaderMap) -> HeaderMap {
        let mut headers = headers.clone();
        headers.remove(header::CONTENT_LENGTH);
        headers.remove(header::TRANSFER_ENCODING);
        headers
    }

    /// States in an answer that its request was repaired.
    pub(super) fn state(headers: &mut HeaderMap, lines: usize) {
        headers.insert(REPORT, HeaderValue::from(lines));
    }
}
