//! A request whose history breaks a rule of its wire, repaired.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use bytes::Bytes;

use crate::history::ReportLine;
use crate::provider::{PromptOptions, Target, check, repair};
use crate::server::app::App;
use crate::server::body::Judged;
use crate::server::ledger::Room;

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
