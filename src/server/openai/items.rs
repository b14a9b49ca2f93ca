//! Items: appended, listed, read, removed.

use std::collections::HashSet;

use axum::http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::item::{Given, Normal, Taken, messages, normal};
use super::known::{self, found, name, reused};
use super::listing;
use super::repaired::{self, Repaired};
use crate::error::Error;
use crate::history::ReportLine;
use crate::log::{AppendOptions, Changes, ExpectedHead, Receipt};
use crate::model::{Json, Name};
use crate::server::app::{Call, Outcome, ok};
use crate::server::body;
use crate::server::refusal::Refusal;
use crate::server::schemas::Item;

/// More bytes than an id has that the server gives.
const ID_BYTES: usize = 100;

/// The key under which a conversation's first items are stored: its name comes from the client's key. No client sends this one.
const CREATED: &str = "\0created";

/// A list of items, as the API writes it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ItemList")]
pub(super) struct List {
    #[schemars(extend("const" = "list"))]
    object: &'static str,
    #[schemars(with = "Vec<Item>")]
    data: Vec<Box<RawValue>>,
    first_id: Option<String>,
    last_id: Option<String>,
    has_more: bool,
    /// What was repaired, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<Vec<ReportLine>>,
}

/// What an answer includes if it is asked for.
const REPORT: &str = "convo.report";
/// How many lines a report has.
const LINES: HeaderName = HeaderName::from_static("x-convo-report");

fn raw(json: String) -> Result<Box<RawValue>, Refusal> {
    RawValue::from_string(json).map_err(|error| Refusal::internal(format!("an item is not JSON: {error}")))
}

/// The items of a request, checked.
pub(super) fn read(call: &Call, raw: &RawValue) -> Result<Vec<Taken>, Refusal> {
    let limits = &call.app.config.openai;
    if raw.get() == "null" {
        return Ok(Vec::new());
    }
    let items: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| {
        let message = "Invalid type for 'items': expected an array.";
        Refusal::invalid("items", "invalid_type", message)
    })?;
    let (most, actual) = (limits.items_per_request, items.len());
    if actual > most {
        let message = format!(
            "Invalid 'items': array too long. Expected an array with maximum length {most}, but got an array with length {actual} instead."
        );
        return Err(Refusal::invalid("items", "array_above_max_length", message));
    }
    let take = |(at, item): (usize, &&RawValue)| Taken::new(item, &format!("items[{at}]"), limits.strict_item_types);
    let items: Vec<Taken> = items.iter().enumerate().map(take).collect::<Result<_, _>>()?;
    let mut seen = HashSet::new();
    match items.iter().filter_map(|item| item.id.as_deref()).find(|id| !seen.insert(*id)) {
        Some(id) => Err(duplicate(id)),
        None => Ok(items),
    }
}

fn duplicate(id: &str) -> Refusal {
    let message = format!("Duplicate item found with id {id}. Remove duplicate items from your input and try again.");
    Refusal::invalid("items", "item_already_in_conversation", message)
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NewItems")]
pub(super) struct New<'a> {
    #[serde(borrow)]
    #[schemars(with = "Vec<Item>", length(max = 20))]
    items: Option<&'a RawValue>,
}

pub(super) fn create(call: &Call, body: &[u8]) -> Outcome {
    let name = name(call);
    found(call, call.store().describe(&name))?;
    let New { items } = body::json(body)?;
    let items = read(call, items.ok_or_else(|| Refusal::missing("items"))?)?;
    let data = append(call, &name, &items)?;
    let (first_id, last_id) = (data.first().map(|(id, _)| id.clone()), data.last().map(|(id, _)| id.clone()));
    let data = data.into_iter().map(|(_, json)| raw(json)).collect::<Result<_, _>>()?;
    ok(&List { object: "list", data, first_id, last_id, has_more: false, report: None })
}

/// Appends items, all or none, and returns them with their ids as they are stored.
fn append(call: &Call, name: &Name, items: &[Taken]) -> Result<Vec<(String, String)>, Refusal> {
    let (store, key) = (call.store(), call.idempotency_key()?);
    if items.is_empty() {
        return Ok(Vec::new());
    }
    let is_retry = call.header("x-stainless-retry-count").is_some_and(|count| count != "0");
    let given_ids: Vec<&str> = items.iter().filter_map(|item| item.id.as_deref()).collect();
    let locks = &call.app.appending;
    // An append that looks at what is stored must see the append that it repeats, and nobody else's between.
    let (_shared, _alone);
    if is_retry || !given_ids.is_empty() {
        _alone = locks.alone(name.id());
    } else {
        _shared = locks.shared(name.id());
    }
    if is_retry
        && key.is_none()
        && let Some(stored) = repeated(call, name, items)?
    {
        call.app.metrics.repeated.inc();
        return Ok(stored);
    }
    let mut options = AppendOptions::new();
    options.idempotency_key = key.map(str::to_owned);
    let mut twice = None;
    for id in given_ids {
        if found(call, store.find_item(name, id))?.is_some() {
            // A repetition is answered all the same: its key is checked first, and nothing else can be appended.
            twice = Some(id);
            options = options.with_expected(ExpectedHead::At(u64::MAX));
        }
    }
    if let (Some(id), None) = (twice, key) {
        return Err(duplicate(id));
    }
    let items = normal(items, name.id(), key)?;
    match (store_all(call, name, &items, &Changes::new(), &options), twice) {
        (Err(Error::StaleHead { .. }), Some(id)) => return Err(duplicate(id)),
        (receipt, _) => found(call, receipt)?,
    };
    // A key represents the content, and ids come from the key: what is stored is what a repetition returns.
    Ok(items.into_iter().map(|item| (item.id.clone(), item.to_json())).collect())
}

/// Makes a conversation by its first items and its metadata. With a key: by these, and no others.
pub(super) fn begin(call: &Call, name: &Name, items: &[Taken], metadata: Option<Json>) -> Result<Receipt, Refusal> {
    let key = call.idempotency_key()?;
    let mut options = AppendOptions::new().with_expected(ExpectedHead::NewConversation);
    options.idempotency_key = key.map(|_| CREATED.to_owned());
    let changes = metadata.map_or_else(Changes::new, |metadata| Changes::new().with_metadata(metadata));
    store_all(call, name, &normal(items, name.id(), key)?, &changes, &options).map_err(|error| reused(call, error))
}

fn store_all(
    call: &Call,
    name: &Name,
    items: &[Normal],
    changes: &Changes,
    options: &AppendOptions,
) -> Result<Receipt, Error> {
    let appended = messages(items);
    let receipt = call.store().append_changing(name, &appended, changes, options)?;
    if receipt.duplicate {
        call.app.metrics.repeated.inc();
    } else {
        call.app.metrics.items.inc_by(appended.len() as u64);
    }
    Ok(receipt)
}

/// The newest items, if they are those of a request that arrives a second time. SDKs repeat a request whose answer was
/// lost without any key. An equal request that the SDK marks as a repetition counts as one while nothing follows the
/// first.
fn repeated(call: &Call, name: &Name, items: &[Taken]) -> Result<Option<Vec<(String, String)>>, Refusal> {
    // What is stored of more bytes is something else.
    let size = |item: &Taken| item.complete(item.id.as_deref().unwrap_or_default()).to_json().len() + ID_BYTES;
    let bytes = items.iter().map(size).sum();
    let mut newest = found(call, listing::descending(call.store(), name, None, items.len(), bytes))?.items;
    newest.reverse();
    let is_same = |(stored, item): (&Given, &Taken)| {
        item.id.as_ref().is_none_or(|id| *id == stored.id) && item.complete(&stored.id).to_json() == stored.json
    };
    let is_repeated = newest.len() == items.len() && newest.iter().zip(items).all(is_same);
    Ok(is_repeated.then(|| newest.into_iter().map(|item| (item.id, item.json)).collect()))
}

pub(super) fn list(call: &Call, _: &[u8]) -> Outcome {
    let (store, name) = (call.store(), name(call));
    let limit = call.query.number("limit", 1, 100)?.unwrap_or(20);
    let limit = usize::try_from(limit).unwrap_or(20);
    let order = call.query.get("order").unwrap_or("desc");
    if !["asc", "desc"].contains(&order) {
        return Err(Refusal::value("order", "expected `asc` or `desc`"));
    }
    let after = call.query.get("after").filter(|after| !after.is_empty());
    if repaired::is_wanted(call)? {
        return list_repaired(call, &name, limit, order == "asc", after);
    }
    let after = match after {
        None => None,
        Some(after) => {
            let place = found(call, listing::place(store, &name, after))?;
            Some(place.ok_or_else(|| item_not_found(after).at("after"))?)
        }
    };
    let page = match order {
        "asc" => listing::ascending(store, &name, after, limit),
        _ => listing::descending(store, &name, after, limit, listing::BYTES),
    };
    let page = found(call, page)?;
    let first_id = page.items.first().map(|item| item.id.clone());
    // An id may repeat among messages that did not arrive as items: the next page would begin after the first one with
    // it.
    let last_id = match page.items.last() {
        Some(last) if found(call, listing::place(store, &name, &last.id))? != Some(last.place) => Some(last.place_id()),
        last => last.map(|last| last.id.clone()),
    };
    let data = page.items.into_iter().map(|item| raw(item.json)).collect::<Result<_, _>>()?;
    ok(&List { object: "list", data, first_id, last_id, has_more: page.has_more, report: None })
}

/// A page of the items that a provider accepts.
fn list_repaired(call: &Call, name: &Name, limit: usize, ascending: bool, after: Option<&str>) -> Outcome {
    let repaired = Repaired::of(call, name)?;
    let begins = match after {
        None => 0,
        Some(id) => repaired.after(call, name, id, ascending)?.ok_or_else(|| item_not_found(id).at("after"))?,
    };
    let Repaired { mut items, report } = repaired;
    if !ascending {
        items.reverse();
    }
    let mut room = Some(listing::BYTES);
    let rest = items.drain(..).skip(begins);
    let mut page: Vec<_> = rest.take(limit.saturating_add(1)).collect();
    let fits = page.iter().take(limit).take_while(|item| {
        let is_there = room.is_some();
        room = room.and_then(|room| room.checked_sub(item.json.len()));
        is_there
    });
    let fits = fits.count();
    let has_more = page.len() > fits;
    page.truncate(fits);
    let (first_id, last_id) = (page.first().map(|item| item.id.clone()), page.last().map(|item| item.id.clone()));
    let data = page.into_iter().map(|item| raw(item.json)).collect::<Result<_, _>>()?;
    let lines = HeaderValue::from(report.len());
    let included = [call.query.all("include[]"), call.query.all("include")].concat();
    let is_included = included.iter().flat_map(|names| names.split(',')).any(|name| name == REPORT);
    let report = is_included.then_some(report);
    let mut answer = ok(&List { object: "list", data, first_id, last_id, has_more, report })?;
    answer.headers_mut().insert(LINES, lines);
    Ok(answer)
}

fn item_not_found(id: &str) -> Refusal {
    Refusal::new(404, None, format!("Item with id '{id}' not found."))
}

/// The item that the path names.
fn item(call: &Call, name: &Name) -> Result<Given, Refusal> {
    let id = call.part("item");
    found(call, listing::find(call.store(), name, id))?.ok_or_else(|| item_not_found(id))
}

pub(super) fn get(call: &Call, _: &[u8]) -> Outcome {
    let id = call.part("item");
    if repaired::is_made_up(id) || repaired::is_wanted(call)? {
        let items = Repaired::of(call, &name(call))?.items;
        if let Some(item) = items.into_iter().find(|item| item.id == id) {
            return ok(&raw(item.json)?);
        }
    }
    ok(&raw(item(call, &name(call))?.json)?)
}

pub(super) fn delete(call: &Call, _: &[u8]) -> Outcome {
    let name = name(call);
    if repaired::is_made_up(call.part("item")) {
        let message = "This item is not stored: it was made up, so that a provider accepts the others. Delete the call that it \
                       answers, or add the tool's output: then it is gone.";
        return Err(Refusal::invalid("item_id", "item_made_up", message));
    }
    let Given { id, place: (message, _), chunks, .. } = item(call, &name)?;
    let remove = |chunk| match call.store().remove(&name, message, chunk) {
        Err(Error::NotFound { .. }) => Err(item_not_found(&id)),
        removed => Ok(removed.map(|_| ())?),
    };
    if chunks.is_empty() {
        remove(None)?;
    }
    chunks.into_iter().try_for_each(|chunk| remove(Some(chunk)))?;
    known::get(call, &[])
}
