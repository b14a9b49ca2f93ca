//! What a client reads, and a request that is answered once there is something new, or after a while.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::body::Body;

use super::call::{answer, asked, is_admin, name, named, view as viewed};
use crate::error::{Error, Result};
use crate::log::{ListQuery, Order, Reading, reading};
use crate::model::{ConversationId, Name};
use crate::record::{Record, key};
use crate::remote::call::{
    Item, List, Listed, Look, Named, Read, Readings, Shown, Since, SinceThen, Viewed, Wait, Waited,
};
use crate::remote::failure::Failure;
use crate::server::app::{App, Call, Outcome, Streaming};
use crate::server::body;
use crate::server::refusal::Refusal;
use crate::store::number_follower;
use crate::{log, record};

/// The most bytes of records of one answer, but for those of its last one.
const BYTES: usize = 4 * 1024 * 1024;
/// The most conversations of a page of the list.
const PAGE: usize = 1_000;

pub(super) fn view(call: &Call, body: &[u8]) -> Outcome {
    let (Look { name }, _) = asked(body)?;
    let view = named(call, &name)?;
    let head = record::seal(&key::head(view.id), &*view.head)?;
    let (epoch, commit, through) = (view.epoch, view.commit, view.through);
    answer(&Viewed { id: view.id, live: view.live, epoch, commit, through }, &head)
}

/// The records of a range. A conversation that is not there any more has none.
pub(super) fn read(call: &Call, body: &[u8]) -> Outcome {
    let (Read { of, first, last, descending, bytes: wanted }, _) = asked(body)?;
    let (mut readings, mut bytes, mut has_more) = (Vec::new(), Vec::new(), false);
    let Some(view) = viewed(call, of)? else { return answer(&Readings { readings, has_more }, &bytes) };
    let wanted = wanted.min(BYTES);
    let order = if descending { Order::Descending } else { Order::Ascending };
    let mut failed = Ok(());
    call.store().log().read(&view, first..=last.min(view.last_seq()), order, &mut |reading| {
        let shown = match reading {
            Reading::Record { record, last, own } => match sealed(view.id, record) {
                Ok(sealed) => {
                    bytes.extend_from_slice(&sealed);
                    has_more = bytes.len() >= wanted;
                    Shown::Record { first_seq: record.first_seq, last, own, bytes: sealed.len() }
                }
                Err(error) => {
                    failed = Err(error);
                    return ControlFlow::Break(());
                }
            },
            Reading::Damaged(error) => Shown::Damaged(Failure::from(&error)),
            Reading::Stray(error) => Shown::Stray(Failure::from(&error)),
        };
        readings.push(shown);
        if has_more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    failed?;
    answer(&Readings { readings, has_more }, &bytes)
}

/// A record, for the conversation that is read: its checksum is made for that one, also if it is an ancestor's.
fn sealed(id: ConversationId, record: &Record<'_>) -> Result<Vec<u8>> {
    Ok(record::seal_record(id, record.first_seq, &record.header, record::Body::of(record)?)?.1)
}

pub(super) fn since(call: &Call, body: &[u8]) -> Outcome {
    let (Since { of, commit }, _) = asked(body)?;
    let view = viewed(call, of)?;
    let is_redacted = match &view {
        Some(view) => call.store().log().is_redacted_since(view, commit)?,
        None => true,
    };
    answer(&SinceThen { is_there: view.is_some(), is_redacted }, &[])
}

pub(super) fn item(call: &Call, body: &[u8]) -> Outcome {
    let (Item { of, item }, _) = asked(body)?;
    let log = call.store().log();
    let seqs = viewed(call, of)?.map_or(Ok(Vec::new()), |view| log.item_seqs(&view, &item, usize::MAX))?;
    answer(&seqs, &[])
}

pub(super) fn conversations(call: &Call, _: &[u8]) -> Outcome {
    answer(&own(call, call.store().log().conversations()?)?, &[])
}

pub(super) fn unfinished(call: &Call, _: &[u8]) -> Outcome {
    answer(&own(call, call.store().log().unfinished()?)?, &[])
}

/// Those that the caller sees. Cost: a read for each of them, unless the caller sees all.
fn own(call: &Call, ids: Vec<ConversationId>) -> Result<Vec<ConversationId>, Refusal> {
    if is_admin(call) {
        return Ok(ids);
    }
    let mut seen = Vec::new();
    for id in ids {
        // One that is damaged is nobody's: only an admin sees that it is there.
        if matches!(call.store().log().view(&call.own(Name::from(id))), Ok(Some(_))) {
            seen.push(id);
        }
    }
    Ok(seen)
}

pub(super) fn list(call: &Call, body: &[u8]) -> Outcome {
    let (list, _): (List, _) = asked(body)?;
    let mut query = ListQuery::try_from(list)?;
    let is_others = !query.owner.is_empty() && query.owner != call.caller.owner;
    if is_others && !is_admin(call) {
        // As of an owner whom nobody knows.
        let page = crate::log::ListPage { items: Vec::new(), unreadable: Vec::new(), next: None };
        return answer(&Listed { page, incarnations: Vec::new() }, &[]);
    }
    if query.owner.is_empty() {
        query.owner.clone_from(&call.caller.owner);
    }
    query.limit = query.limit.min(PAGE);
    let page = call.store().list(&query)?;
    let incarnations = page.items.iter().map(|item| item.incarnation).collect();
    answer(&Listed { page, incarnations }, &[])
}

pub(super) fn size(call: &Call, _: &[u8]) -> Outcome {
    answer(&call.store().log().size()?, &[])
}

/// The longest wait. A client asks again.
const LONGEST: Duration = Duration::from_secs(60);

/// A follower, as long as its request lasts.
struct Follower {
    app: Arc<App>,
    name: Name,
    number: u64,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.app.store.log().wake(&self.name, self.number);
    }
}

/// The conversation that is followed, if it is the caller's, and its last seq.
fn followed(call: &Call, of: &Named, incarnation: u64) -> Result<(Name, u64), Refusal> {
    let name = name(call, of)?;
    let view = reading::view(call.store().log(), &name)?;
    if view.head.incarnation != incarnation {
        return Err(Error::no_conversation(name).into());
    }
    Ok((name, view.last_seq()))
}

pub(super) fn wait(call: Call, body: Body) -> Streaming {
    Box::pin(async move {
        let held = body::read(&call.app, &call.caller.owner, body, None, body::Bounds::of(&call.app)).await?;
        let (Wait { name: of, incarnation, seq, milliseconds }, _) = asked(&held.bytes)?;
        drop(held);
        let app = Arc::clone(&call.app);
        let _room = app.streams.begin(&call.caller.key)?;
        // Who waits is not asked for an owner: it is this that finds out whose conversation it is.
        let (name, last_seq) = app.pool.run(move || followed(&call, &of, incarnation)).await?;
        if last_seq > seq {
            return answer(&Waited { last_seq: Some(last_seq) }, &[]);
        }
        let follower = Follower { app: Arc::clone(&app), name: name.clone(), number: number_follower() };
        let stopped = AtomicBool::new(false);
        let wait = log::Wait { name: &name, incarnation, seq, timeout: Duration::ZERO, stopped: &stopped };
        let mut closing = app.closing.subscribe();
        let news = tokio::select! {
            biased;
            news = poll_fn(|context| app.store.log().poll_for(&wait, follower.number, context.waker())) => Some(news),
            _ = closing.wait_for(|is_closing| *is_closing) => None,
            () = tokio::time::sleep(Duration::from_millis(milliseconds).min(LONGEST)) => None,
        };
        drop(follower);
        let last_seq = match news {
            None => None,
            Some(news) => {
                news?;
                let (app, name) = (Arc::clone(&app), name.clone());
                let view = app.clone().pool.run(move || Ok(reading::view(app.store.log(), &name)?)).await?;
                Some(view.last_seq())
            }
        };
        answer(&Waited { last_seq }, &[])
    })
}
