//! Responses: created, read, followed, cancelled, deleted; their input.

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::about::{About, ResponseId};
use super::asked::Asked;
use super::encoder::Encoder;
use super::following::{Following, Next, Unkept, Waiting};

use super::models::At;
use super::parameters::{self, Rendered};
use super::place::{Begin, Found, KEYED, Placed, about_is_here, deleted, note_deleted};
use super::reach::{Home, Reach};
use super::run::Running;
use super::sealed::Seal;
use super::tools::HostedTools;
use crate::error::Error;
use crate::history::{Entry, MessageState, StoredMessage};
use crate::json::object::merged;
use crate::log::reading::PageSize;
use crate::model::{Name, Timestamp};
use crate::provider::{PromptOptions, Tool, provider_of, render, tokens_of};
use crate::record;
use crate::server::app::{Call, Outcome, Streaming, ok};
use crate::server::begun::Came;
use crate::server::body::{self, Bounds};
use crate::server::exchanges::Kind;
use crate::server::keys::hex;
use crate::server::openai::{Given, given};
use crate::server::proxy::Secrets;
use crate::server::refusal::Refusal;
use crate::server::stops;
use crate::store::Store;

/// Messages that are looked through at a time.
const PAGE: PageSize = PageSize { limit: 100, bytes: 4 * 1024 * 1024, shows_hidden: true };
/// Whether hosted tools that an upstream has not are left out, in place of a refusal: `drop`.
const HOSTED_TOOLS: &str = "x-convo-hosted-tools";
/// How many lines the report has of what was done to the history.
const REPORT: &str = "x-convo-report";
/// The conversation that has the response.
const CONVERSATION: &str = "x-convo-conversation";

/// Which conversations a call may read and write. What it does not keep is its own.
pub(super) fn reach(call: &Call) -> Reach {
    let connection = format!("{}\n{}", call.caller.owner, Uuid::now_v7());
    Reach { kept: call.store().clone(), passing: call.app.responses.passing.clone(), connection }
}

/// A request, ready to be sent.
struct Prepared {
    at: At,
    asked: Asked,
    placed: Placed,
    about: About,
    body: Vec<u8>,
    options: PromptOptions,
    /// Tools that go as they came.
    own_tools: Option<Tool>,
    seal: Option<Seal>,
}

/// Why a request cannot be put together.
pub(super) fn unwritten(error: serde_json::Error) -> Refusal {
    Refusal::internal(format!("the request of the model cannot be written: {error}"))
}

impl Prepared {
    fn of(call: &Call, reach: &Reach, body: &[u8]) -> Result<Self, Refusal> {
        let asked = Asked::read(call, body)?;
        let at = At::of(&call.app, &asked.model)?;
        let hosted = match call.header(HOSTED_TOOLS) {
            Some("drop") => HostedTools::Drop,
            None | Some("refuse") => HostedTools::Refuse,
            Some(_) => return Err(Refusal::value(HOSTED_TOOLS, "expected `refuse` or `drop`")),
        };
        let text = body::text(body)?;
        let rendered = parameters::rendered(&asked.fields, text, at.target, &at.model, hosted, at.context_tokens)?;
        let Rendered { options, fields, report, tools, own_tools } = rendered;
        let placed = Placed::find(call, reach, &asked, at.name())?;
        let conversation = tools.sent_in(placed.conversation(asked.instructions.as_deref()));
        let prompt = render(at.target, &conversation, &options)?;
        let body = merged(&prompt.request, fields).map_err(unwritten)?;
        let mut lines = placed.report.clone();
        lines.extend(report);
        lines.extend(prompt.report.iter().map(ToString::to_string));
        let gives_reasoning = asked.includes("reasoning.encrypted_content");
        let seal = gives_reasoning.then(|| Seal::open(&call.app, &call.caller.owner)).transpose()?;
        let mut fields = parameters::echo(&asked.fields);
        fields.insert("previous_response_id".to_owned(), asked.previous.clone().into());
        // By its id, whatever the request named it by.
        let id = || crate::server::openai::shown(placed.home.name.id());
        let conversation = asked.conversation.as_ref().map_or(Value::Null, |_| json!({ "id": id() }));
        fields.insert("conversation".to_owned(), conversation);
        let about = About {
            fields,
            same: std::collections::BTreeMap::new(),
            input_from: 0,
            upstream: at.name().to_owned(),
            target: at.target.to_string(),
            model: at.model.clone(),
            report: lines,
            request: None,
            gives_reasoning,
        };
        Ok(Self { at, asked, placed, about, body, options, own_tools, seal })
    }
}

/// A response that has begun.
pub(super) struct Started {
    pub(super) id: ResponseId,
    pub(super) following: Following,
    pub(super) unkept: Option<Arc<Unkept>>,
    pub(super) streams: bool,
    in_background: bool,
    report: usize,
}

/// By what a request is known that comes again.
fn digest_of(call: &Call, body: &body::Held) -> [u8; 16] {
    record::digest(&[call.caller.key.as_bytes(), b"\0", &body.bytes].concat())
}

/// Begins a response. What it does not keep goes with `unkept`.
pub(super) async fn start(call: &Call, reach: &Reach, bytes: Arc<body::Held>) -> Result<Started, Refusal> {
    let app = Arc::clone(&call.app);
    let request = digest_of(call, &bytes);
    let is_retry = call.header("x-stainless-retry-count").is_some_and(|count| count != "0");
    let key = call.idempotency_key()?.map(|key| format!("{}\0key {key}", call.caller.key));
    let digest = key.as_ref().map_or(request, |key| record::digest(key.as_bytes()));
    let asking = loop {
        match app.responses.came(digest, is_retry || key.is_some()) {
            Came::First(asking) => break asking,
            // It says nothing, and is gone once the other one has an answer or will have none.
            Came::Waits(mut changed) => drop(changed.changed().await),
            Came::Follows(conversation, message) => {
                return again(call, reach, ResponseId { conversation, message }, &bytes).await;
            }
        }
    };
    let stream = app.streams.begin(&call.caller.key)?.with(app.upstreams.begin()?);
    let (of_caller, reaching, held) = (call.clone(), reach.clone(), Arc::clone(&bytes));
    let prepared = app.pool.run(move || match begun_by_key(&of_caller, &reaching)? {
        Some(id) => Ok(Err(id)),
        None => Prepared::of(&of_caller, &reaching, &held.bytes).map(Box::new).map(Ok),
    });
    let prepared = match prepared.await? {
        Ok(prepared) => prepared,
        Err(id) => {
            asking.begun(id.conversation, id.message);
            return again(call, reach, id, &bytes).await;
        }
    };
    let Prepared { at, asked, placed, mut about, body, seal, .. } = *prepared;
    let asking = if placed.home.is_kept {
        Some(asking)
    } else {
        asking.forget();
        None
    };
    about.request = key.map(|_| hex(&request));
    let home = placed.home.clone();
    let room = Arc::new(app.ledger.room(&call.caller.owner));
    // Without a place on a disk its history is in memory, as the upstream is sent it.
    let held = if home.is_kept { 0 } else { body.len().saturating_mul(2) };
    room.wait(held).await?;
    let unkept = (!home.is_kept).then(|| Unkept::new(&app, &call.caller.owner, &home, &room));
    let waiting = unkept.clone().map(Waiting);
    let request = at.request(call, body)?;
    let exchange = Uuid::now_v7();
    let (registered, mut stopped) = app.exchanges.begin(exchange, &call.caller.owner, Kind::Response);
    app.exchanges.placed(exchange, home.name.id());
    let provider = provider_of(at.target);
    let (report, in_background) = (about.report.len(), asked.in_background);
    let running = Running {
        called: placed.called(),
        app: Arc::clone(&app),
        at,
        secrets: Arc::new(Secrets::of(request.headers(), None)),
        room,
        held,
        unkept: unkept.clone(),
        stopped: stopped.clone(),
        _stream: stream,
        registered,
    };
    // What is asked in the background is stored first; else nothing is stored of what the upstream refuses.
    let sent = match in_background {
        true => Sent::Not(request),
        false => tokio::select! {
            biased;
            answer = running.at.send(request) => Sent::Answered(answer?),
            _ = stopped.wait_for(|is| *is) => {
                return Err(Refusal::new(409, "cancelled", "the response was cancelled before it began"));
            }
        },
    };
    let (begun, beginning) = oneshot::channel();
    let (beginner, kept_about) = (call.clone(), about.clone());
    // From here on it ends, whether its client waits or not.
    tokio::spawn(async move {
        let begin = running.app.pool.run(move || placed.begin(&beginner, about, provider)).await;
        if let (Some(asking), Ok(Begin::Begun { id, .. } | Begin::Repeated(id))) = (asking, &begin) {
            asking.begun(id.conversation, id.message);
        }
        let (writer, id) = match begin {
            Ok(Begin::Begun { writer, id }) => (writer, id),
            Ok(Begin::Repeated(id)) => {
                let _ = begun.send(Ok((id, None)));
                return;
            }
            Err(refusal) => {
                let _ = begun.send(Err(refusal));
                return;
            }
        };
        running.app.exchanges.placed(exchange, id.conversation);
        running.app.exchanges.writes(exchange, id.message);
        let _ = begun.send(Ok((id, Some(writer.first_seq()))));
        match sent {
            Sent::Not(request) => running.ask(request, writer, id).await,
            Sent::Answered(answer) => running.store(answer, writer, id).await,
        }
    });
    let (id, first_seq) = beginning.await.unwrap_or_else(|_| Err(Refusal::internal("the response did not begin")))?;
    let Some(first_seq) = first_seq else { return again(call, reach, id, &bytes).await };
    // What somebody else has gone on from meanwhile was forked.
    let home = if home.is_kept { Home { name: call.own(id.conversation), ..home } } else { home };
    let (opening, owner) = (Arc::clone(&app), call.caller.owner.clone());
    let opened = app.pool.run(move || {
        let mut about = kept_about;
        about.fields.insert("id".to_owned(), id.to_string().into());
        let encoder = Encoder::new(id, about, seal, Timestamp::now());
        Following::open(&opening, &owner, &home, first_seq, encoder, None)
    });
    let following = opened.await?;
    Ok(Started { id, following: following.with(waiting), unkept, streams: asked.streams, in_background, report })
}

/// The response that was begun with the key of a request, in a conversation that the key has made.
fn begun_by_key(call: &Call, reach: &Reach) -> Result<Option<ResponseId>, Refusal> {
    let Some(key) = call.idempotency_key()? else { return Ok(None) };
    let name = call.own(format!("{KEYED}{key}"));
    let mut from = 0;
    loop {
        let (page, next) = match reach.kept.page(&name, from, PAGE) {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Others may have gone on from it: it is the first.
        let id = |stored: &StoredMessage| ResponseId { conversation: name.id(), message: stored.index };
        let is_own = |about: &About, id| about.request.is_some() && about_is_here(about, id);
        let mut own = page.iter().filter(|stored| About::of(stored).is_some_and(|about| is_own(&about, id(stored))));
        if let Some(first) = own.next() {
            return Ok(Some(id(first)));
        }
        let Some(next) = next else { return Ok(None) };
        from = next;
    }
}

enum Sent {
    Not(axum::extract::Request),
    Answered(axum::http::Response<hyper::body::Incoming>),
}

/// The response that a repeated request has begun already.
async fn again(call: &Call, reach: &Reach, id: ResponseId, body: &body::Held) -> Result<Started, Refusal> {
    let (asked, found) = (Asked::read(call, &body.bytes)?, found(call, reach, id).await?);
    if let Some(key) = call.idempotency_key()? {
        let request = digest_of(call, body);
        if found.about.request.as_ref().is_some_and(|known| *known != hex(&request)) {
            let conversation = found.home.name.clone();
            return Err(Error::KeyReused { conversation, key: key.to_owned() }.into());
        }
        call.app.metrics.repeated.inc();
    }
    let report = found.about.report.len();
    let following = follow(call, found, None).await?;
    let (streams, in_background) = (asked.streams, asked.in_background);
    Ok(Started { id, following, unkept: None, streams, in_background, report })
}

async fn found(call: &Call, reach: &Reach, id: ResponseId) -> Result<Found, Refusal> {
    let (asking, reaching) = (call.clone(), reach.clone());
    let find = move || reaching.find(&asking, id)?.ok_or_else(|| not_found(&id.to_string()));
    call.app.pool.run(find).await
}

fn not_found(id: &str) -> Refusal {
    Refusal::new(404, None, format!("Response with id '{id}' not found."))
}

async fn follow(call: &Call, found: Found, known: Option<u64>) -> Result<Following, Refusal> {
    let call = call.clone();
    let app = Arc::clone(&call.app);
    app.pool
        .run(move || {
            let (first_seq, home) = (found.stored.first_seq, found.home.clone());
            Following::open(&call.app, &call.caller.owner, &home, first_seq, encoder(&call, found)?, known)
        })
        .await
}

/// What encodes a stored response, from its beginning.
fn encoder(call: &Call, found: Found) -> Result<Encoder, Refusal> {
    let Found { id, stored, about, .. } = found;
    let seal = about.gives_reasoning.then(|| Seal::open(&call.app, &call.caller.owner)).transpose()?;
    let created_at = stored.message.metadata.created_at.unwrap_or_else(Timestamp::now);
    Ok(Encoder::new(id, about, seal, created_at))
}

pub(super) fn create(call: Call, body: Body) -> Streaming {
    Box::pin(async move {
        let promised = call.header("content-length").and_then(|length| length.parse().ok());
        let held = body::read(&call.app, &call.caller.owner, body, promised, Bounds::of(&call.app)).await?;
        let reach = reach(&call);
        let Started { id, following, streams, in_background, report, .. } =
            start(&call, &reach, Arc::new(held)).await?;
        let mut reply = match (streams, in_background) {
            (true, _) => following.stream(Arc::clone(&call.room)),
            (false, true) => {
                let mut following = following;
                // Its beginning is stored: that is there at once.
                let _: Next = following.next().await?;
                ok(&following.object())?
            }
            (false, false) => ok(&following.whole().await?)?,
        };
        let mut set = |name: &'static str, value: String| {
            if let Ok(value) = HeaderValue::try_from(value) {
                reply.headers_mut().insert(HeaderName::from_static(name), value);
            }
        };
        set(REPORT, report.to_string());
        set(CONVERSATION, crate::server::openai::shown(id.conversation));
        Ok(reply)
    })
}

fn named(call: &Call) -> Result<ResponseId, Refusal> {
    let text = call.part("response");
    ResponseId::named(text).ok_or_else(|| not_found(text))
}

pub(super) fn get(call: Call, _: Body) -> Streaming {
    Box::pin(async move {
        call.query.check(&["stream", "starting_after", "include", "include[]", "include_obfuscation"])?;
        let streams = match call.query.get("stream") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Refusal::value("stream", "expected `true` or `false`")),
        };
        let known = call.query.number("starting_after", 0, u64::MAX)?;
        if known.is_some() && !streams {
            return Err(Refusal::value("starting_after", "it is of a stream: `stream=true`"));
        }
        let reach = reach(&call);
        let found = found(&call, &reach, named(&call)?).await?;
        if streams {
            let stream = call.app.streams.begin(&call.caller.key)?;
            let following = follow(&call, found, known).await?;
            return Ok(following.holding(stream).stream(Arc::clone(&call.room)));
        }
        let app = Arc::clone(&call.app);
        app.pool.run(move || ok(&object(&call, found)?)).await
    })
}

/// A response as it is stored.
fn object(call: &Call, found: Found) -> Result<Value, Refusal> {
    const ENTRIES: usize = 1_000;
    let (home, mut next) = (found.home.clone(), found.stored.first_seq);
    let mut encoder = encoder(call, found)?;
    loop {
        let entries: Vec<Entry> = home.store.entries(&home.name, next.., ENTRIES)?;
        let Some(last) = entries.last().map(|entry| entry.seq) else { return Ok(encoder.object()) };
        for entry in entries {
            encoder.take(entry);
        }
        if encoder.status.is_end() {
            return Ok(encoder.object());
        }
        next = last + 1;
    }
}

pub(super) fn cancel(call: Call, _: Body) -> Streaming {
    Box::pin(async move {
        let reach = reach(&call);
        let found = found(&call, &reach, named(&call)?).await?;
        if found.stored.state == MessageState::Streaming {
            let (stopping, name) = (call.clone(), found.home.name.clone());
            let stop = move || Ok(stops::stop(&stopping.app, stopping.store(), &stopping.caller.owner, &name)?);
            call.app.pool.run(stop).await?;
        }
        let following = follow(&call, found, None).await?;
        ok(&following.whole().await?)
    })
}

/// A response that is no more.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeletedResponse")]
pub(super) struct Deleted {
    id: String,
    #[schemars(extend("const" = "response"))]
    object: &'static str,
    #[schemars(extend("const" = true))]
    deleted: bool,
}

/// Deletes a response. Its content is erased once nothing goes on from it.
pub(super) fn delete(call: &Call, _: &[u8]) -> Outcome {
    let id = named(call)?;
    let found = reach(call).find(call, id)?.ok_or_else(|| not_found(call.part("response")))?;
    let Home { store, name, .. } = &found.home;
    // What goes on from it may be coming: that is not stopped.
    if found.stored.state == MessageState::Streaming {
        stops::stop(&call.app, store, &call.caller.owner, name)?;
    }
    note_deleted(store, name, id.message)?;
    // A conversation that the client made is the client's to delete.
    if found.about.conversation().is_none() {
        erase_unused(store, name)?;
    }
    ok(&Deleted { id: id.to_string(), object: "response", deleted: true })
}

/// Deletes the conversation of responses that are all deleted, and then those that it was forked from.
fn erase_unused(store: &Store, name: &Name) -> Result<(), Refusal> {
    let mut name = name.clone();
    loop {
        let item = match store.describe(&name) {
            Ok(item) => item,
            Err(Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let deleted: HashSet<u64> = deleted(&item.tags).collect();
        let own = |stored: &StoredMessage| {
            let id = ResponseId { conversation: item.id, message: stored.index };
            About::of(stored).filter(|about| about_is_here(about, id))
        };
        let (mut from, mut is_of_responses) = (0, false);
        loop {
            // Those that are hidden are responses, too.
            let (page, next) = store.page(&name, from, PAGE)?;
            for (stored, about) in page.iter().filter_map(|stored| Some((stored, own(stored)?))) {
                is_of_responses = true;
                if !deleted.contains(&stored.index) || about.conversation().is_some() {
                    return Ok(());
                }
            }
            let Some(next) = next else { break };
            from = next;
        }
        if !is_of_responses {
            return Ok(());
        }
        match store.delete(&name) {
            Ok(()) => {}
            // Forks go on from it.
            Err(Error::SharedByForks { .. } | Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let Some(parent) = item.parent else { return Ok(()) };
        name = Name::from(parent.conversation).with_owner(&*item.owner);
    }
}

pub(super) fn input_items(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["limit", "order", "after", "include", "include[]"])?;
    let id = named(call)?;
    let found = reach(call).find(call, id)?.ok_or_else(|| not_found(call.part("response")))?;
    let limit = usize::try_from(call.query.number("limit", 1, 100)?.unwrap_or(20)).unwrap_or(20);
    let is_ascending = match call.query.get("order") {
        None | Some("desc") => false,
        Some("asc") => true,
        Some(_) => return Err(Refusal::value("order", "expected `asc` or `desc`")),
    };
    let count = usize::try_from(id.message.saturating_sub(found.about.input_from)).unwrap_or(usize::MAX);
    let messages = found.home.store.messages(&found.home.name, found.about.input_from, count)?;
    let mut items: Vec<Given> = messages.iter().filter(|stored| stored.index < id.message).flat_map(given).collect();
    if !is_ascending {
        items.reverse();
    }
    if let Some(after) = call.query.get("after").filter(|after| !after.is_empty()) {
        let at = items.iter().position(|item| item.id == after);
        let at = at.ok_or_else(|| Refusal::value("after", "it is no item of this input"))?;
        items.drain(..=at);
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    let (first_id, last_id) = (items.first().map(|item| item.id.clone()), items.last().map(|item| item.id.clone()));
    let data: Vec<Value> = items.iter().filter_map(|item| serde_json::from_str(&item.json).ok()).collect();
    ok(&json!({ "object": "list", "data": data, "first_id": first_id, "last_id": last_id, "has_more": has_more }))
}

/// How many tokens an input has.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "InputTokens")]
pub(super) struct Counted {
    #[schemars(extend("const" = "response.input_tokens"))]
    object: &'static str,
    input_tokens: u64,
}

pub(super) fn input_tokens(call: &Call, body: &[u8]) -> Outcome {
    let reach = reach(call);
    let prepared = Prepared::of(call, &reach, body)?;
    let conversation = prepared.placed.conversation(prepared.asked.instructions.as_deref());
    let mut options = prepared.options;
    options.tools.extend(prepared.own_tools);
    ok(&Counted {
        object: "response.input_tokens",
        input_tokens: tokens_of(prepared.at.target, &conversation, &options),
    })
}
