//! Bodies: held in memory within bounds, and read as JSON.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};

use super::app::{App, Call};
use super::ledger::Room;
use super::refusal::Refusal;
use crate::json;
use crate::json::text::outside_strings;
use crate::model::Json;

/// What somebody without a key may send: a form with a key.
const STRANGERS_BYTES: usize = 16 * 1024;
const STRANGERS_PATIENCE: Duration = Duration::from_secs(10);

/// How long bodies may still come when the server ends.
const CLOSING: Duration = Duration::from_secs(3);

/// What a byte of an arriving body counts: its buffer grows by doubling.
const ARRIVING: usize = 2;
/// What a byte of a used body counts: what is made of it, and what is written from that, are in memory beside it.
const USED: usize = 4;

/// A value in JSON, as it is parsed: many are written with fewer bytes than they take.
const VALUE: usize = 128;

/// A whole body, and the room that it takes, with what is made of it.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) bytes: Vec<u8>,
    _room: Room,
}

impl Held {
    /// Bytes that are there already, and the room that they take.
    pub(crate) async fn of(app: &Arc<App>, owner: &str, bytes: Vec<u8>) -> Result<Self, Refusal> {
        let room = app.ledger.room(owner);
        room.wait((bytes.len() * USED + values(&bytes) * VALUE).min(app.ledger.share())).await?;
        Ok(Self { bytes, _room: room })
    }
}

/// How much of a body is read, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    bytes: usize,
    patience: Duration,
}

impl Bounds {
    /// Of a caller with a key.
    pub(crate) fn of(app: &App) -> Self {
        Self { bytes: app.config.limits.body_bytes, patience: app.config.limits.body() }
    }

    /// Of a caller who has no key yet.
    pub(crate) fn of_strangers(app: &App) -> Self {
        let Self { bytes, patience } = Self::of(app);
        Self { bytes: bytes.min(STRANGERS_BYTES), patience: patience.min(STRANGERS_PATIENCE) }
    }
}

/// Reads a body of an owner to its end, within its bounds.
pub(crate) async fn read(
    app: &Arc<App>,
    owner: &str,
    body: Body,
    promised: Option<u64>,
    bounds: Bounds,
) -> Result<Held, Refusal> {
    let patience = bounds.patience;
    let mut closing = app.closing.subscribe();
    let ends = async {
        let _ = closing.wait_for(|is_closing| *is_closing).await;
        sleep(CLOSING).await;
    };
    tokio::select! {
        biased;
        read = timeout(patience, read_all(app, owner, body, promised, bounds.bytes)) => read.unwrap_or_else(|_| {
            let message = format!("the body did not arrive within {} seconds", patience.as_secs());
            Err(slow(app, message))
        }),
        () = ends => Err(Refusal::busy("the server ends")),
    }
}

fn slow(app: &App, message: String) -> Refusal {
    app.metrics.refused.get_or_create(&super::metrics::Reason { reason: "slow_body" }).inc();
    Refusal { retry_after: Some(1), ..Refusal::new(408, "slow_body", message) }
}

/// The room grows with what has arrived: a header that promises a lot reserves nothing.
async fn read_all(
    app: &Arc<App>,
    owner: &str,
    mut body: Body,
    promised: Option<u64>,
    limit: usize,
) -> Result<Held, Refusal> {
    let over = || {
        let message = format!("the body is over the limit of {limit} bytes (limits.body_bytes)");
        let actual = promised.map_or_else(|| "more bytes".to_owned(), |promised| format!("{promised} bytes"));
        Refusal::new(413, "body_too_large", message)
            .detail("what", "the body of a request")
            .detail("actual", actual)
            .detail("limit", format!("{limit} bytes"))
    };
    if promised.is_some_and(|promised| promised > limit as u64) {
        return Err(over());
    }
    let (mut bytes, room) = (Vec::new(), app.ledger.room(owner));
    // A body that is larger than an owner's share when it is used is used alone.
    let taken = |bytes: usize, weight: usize| room.wait(bytes.saturating_mul(weight).min(app.ledger.share()));
    while let Some(piece) = next(app, &mut body, app.config.limits.idle()).await? {
        if bytes.len() + piece.len() > limit {
            return Err(over());
        }
        taken(bytes.len() + piece.len(), ARRIVING).await?;
        bytes.extend_from_slice(&piece);
    }
    room.wait((bytes.len() * USED + values(&bytes) * VALUE).min(app.ledger.share())).await?;
    app.metrics.body_bytes.inc_by(bytes.len() as u64);
    Ok(Held { bytes, _room: room })
}

/// How many values there are in JSON, at most: by what begins one, or comes between two.
pub(crate) fn values(json: &[u8]) -> usize {
    outside_strings(json).filter(|(_, byte)| matches!(byte, b'{' | b'[' | b',')).count()
}

/// What is done with a request of a provider.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Judged {
    Checked,
    /// It is read, rendered, compared with what was given, and reported.
    Repaired,
    /// So is it, and each line of both becomes a line of a page.
    Shown,
}

/// Takes what a request takes that is judged, before it is parsed: by the values in it, which are written with few bytes.
pub(crate) fn judged(call: &Call, request: &[u8], judged: Judged) -> Result<(), Refusal> {
    Ok(call.room.reach(judged.weight(request))?)
}

impl Judged {
    /// Bytes that are held while a request is judged.
    pub(crate) fn weight(self, request: &[u8]) -> usize {
        // Measured, of messages that are empty objects, arrays or numbers: 373, 2,517 and 2,519 bytes.
        let each = match self {
            Self::Checked => 512,
            Self::Repaired => 3_072,
            Self::Shown => 4_096,
        };
        values(request).saturating_mul(each)
    }
}

/// The next piece of a body; `None` at its end.
pub(crate) async fn next(app: &App, body: &mut Body, patience: Duration) -> Result<Option<Bytes>, Refusal> {
    loop {
        let frame = timeout(patience, body.frame()).await;
        match frame {
            Err(_) => {
                return Err(slow(app, format!("no part of the body arrived for {} seconds", patience.as_secs())));
            }
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(Refusal::new(400, "broken_body", "the body ended early")),
            Ok(Some(Ok(frame))) => {
                // Trailers have no meaning here.
                if let Ok(piece) = frame.into_data() {
                    return Ok(Some(piece));
                }
            }
        }
    }
}

/// The text of a body: UTF-8, without a byte order mark.
pub(crate) fn text(body: &[u8]) -> Result<&str, Refusal> {
    let text = std::str::from_utf8(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body));
    text.map_err(|error| {
        Refusal::new(400, "invalid_json", format!("the body is not UTF-8 at byte {}", error.valid_up_to()))
    })
}

/// A body that is a JSON object. No body counts as `{}`.
pub(crate) fn json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refusal> {
    object(checked("", text(body)?)?)
}

/// As [`json`], of a text that is not checked: its raw values may be nested deeper, and have half characters.
pub(crate) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Refusal> {
    let text = if text.is_empty() { "{}" } else { text };
    // What is read field by field could also be a list of the values.
    if !text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        return Err(Refusal::new(400, "invalid_type", "the body must be a JSON object"));
    }
    let refused = |error: serde_json::Error| {
        let code = if error.is_data() { "invalid_value" } else { "invalid_json" };
        Refusal::new(400, code, format!("the body cannot be read: {error}"))
    };
    serde_json::from_str(text).map_err(refused)
}

/// As [`json`], for values that own their content, where an absent body is an error.
pub(crate) fn required<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    if text(body)?.trim().is_empty() {
        return Err(Refusal::new(400, "missing_body", "the body is missing"));
    }
    json(body)
}

/// Whether a text has a lone surrogate escape; and where the first one is, if the text is JSON.
fn lone_surrogate(text: &str) -> Option<Option<String>> {
    let (marked, mark) = json::mark_lone_surrogates(text);
    let mark = mark?;
    let mut first = None;
    // The parser bounds how deep values are nested.
    if let Ok(value) = json::value(&marked) {
        json::find_marked(&value, mark, "", &mut |place| first = first.take().or(Some(place)));
    }
    Some(first)
}

/// A text that is not nested too deep, and has no half characters: no Rust string can hold one, and a replaced one would not be
/// returned as it was.
///
/// `name`: that of the field whose value it is; empty for a body.
fn checked<'a>(name: &str, text: &'a str) -> Result<&'a str, Refusal> {
    let what = if name.is_empty() { "the body" } else { name };
    if json::is_deeper(text, Json::MAX_DEPTH) {
        let depth = json::depth(text);
        let message = format!("{what} is nested {depth} deep; at most {} are accepted", Json::MAX_DEPTH);
        return Err(Refusal::new(400, "invalid_json", message));
    }
    let Some(within) = lone_surrogate(text) else { return Ok(text) };
    let within = within.unwrap_or_default();
    let dot = if name.is_empty() || within.is_empty() || within.starts_with('[') { "" } else { "." };
    let place = format!("{name}{dot}{within}");
    let what = if place.is_empty() { what } else { &place };
    let message =
        format!("{what}: a lone surrogate escape (\\ud800 to \\udfff) is half a character; put U+FFFD in its place");
    Err(Refusal { param: Some(place).filter(|place| !place.is_empty()), ..Refusal::new(400, "invalid_json", message) })
}

/// A part of a body, if it is there: not nested too deep, and without half characters.
pub(crate) fn part<T: DeserializeOwned>(name: &str, raw: Option<&RawValue>) -> Result<Option<T>, Refusal> {
    let Some(raw) = raw else { return Ok(None) };
    serde_json::from_str(checked(name, raw.get())?).map(Some).map_err(|error| Refusal::value(name, &error.to_string()))
}
