//! Items as OpenAI accepts them: those of a prompt, in its order, with its pairs.
//!
//! An item that is stored keeps its id, unless OpenAI refuses it with that: then its id names its place, and means the same stored
//! item. What is made up has an id that says so.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use serde_json::value::RawValue;

use super::item::{Given, Taken, given, place_id, prefix};
use super::known::found;
use super::listing;
use crate::error::Error;
use crate::history::{MessageState, ReportLine, StoredMessage};
use crate::model::{Body, Extra, Name};
use crate::provider::{PromptOptions, Source, responses_items, takes_id};
use crate::server::app::Call;
use crate::server::refusal::Refusal;

/// The parameter, and the header, by which a call wants items repaired, or as they are stored.
pub(super) const PARAMETER: &str = "repaired";
pub(super) const HEADER: &str = "x-convo-repaired";

/// What the id of an item that is made up has after its prefix.
const MADE_UP: &str = "madeup";

/// The items of a conversation, and what was done to those that are stored.
#[derive(Debug, Default)]
pub(super) struct Repaired {
    pub(super) items: Vec<Item>,
    pub(super) report: Vec<ReportLine>,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) json: String,
    /// Message and chunk, of what is stored.
    place: Option<(u64, u32)>,
}

/// Whether a call wants items repaired: by its parameter, else by its header, by its key, by the settings.
pub(super) fn is_wanted(call: &Call) -> Result<bool, Refusal> {
    let asked = |param: &'static str, given: Option<&str>| match given {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(Refusal::value(param, "expected true or false")),
    };
    let (query, header) = (asked(PARAMETER, call.query.get(PARAMETER))?, asked(HEADER, call.header(HEADER))?);
    Ok(query.or(header).unwrap_or(call.caller.repaired || call.app.config.openai.repaired_items))
}

/// Whether an id is one of what is made up.
pub(super) fn is_made_up(id: &str) -> bool {
    id.split('_').nth(1) == Some(MADE_UP)
}

impl Repaired {
    /// The whole conversation is read.
    pub(super) fn of(call: &Call, name: &Name) -> Result<Self, Refusal> {
        let conversation = found(call, call.store().load(name))?;
        let options = PromptOptions::new().with_continue_last(false);
        let (sent, report) = match responses_items(&conversation, &options) {
            Err(Error::NothingToSend(_)) => return Ok(Self::default()),
            sent => sent?,
        };
        let messages = conversation.messages();
        let mut ids = Ids::of(messages);
        let mut items = Vec::with_capacity(sent.len());
        let mut was_loose = false;
        for (at, (json, source)) in sent.iter().enumerate() {
            let is_loose = is_loose(json, sent.get(at + 1).map(|(next, _)| &**next));
            items.push(ids.item(json, *source, is_loose || was_loose)?);
            was_loose = is_loose;
        }
        call.app.metrics.count_report(&report);
        Ok(Self { items, report })
    }

    /// The position of the first item after the one of an id, in this order. What is not there any more has its place.
    pub(super) fn after(&self, call: &Call, name: &Name, id: &str, ascending: bool) -> Result<Option<usize>, Refusal> {
        if let Some(at) = self.items.iter().position(|item| item.id == id) {
            return Ok(Some(if ascending { at + 1 } else { self.items.len() - at }));
        }
        let place = match made_up_place(id) {
            Some(place) => Some(place),
            None => found(call, listing::place(call.store(), name, id))?,
        };
        let Some(place) = place else { return Ok(None) };
        let follows =
            |item: &Item| item.place.is_some_and(|other| if ascending { other > place } else { other < place });
        let at = match ascending {
            true => self.items.iter().position(follows),
            false => self.items.iter().rev().position(follows),
        };
        Ok(Some(at.unwrap_or(self.items.len())))
    }
}

/// The place of the call that something was made up for.
fn made_up_place(id: &str) -> Option<(u64, u32)> {
    let mut fields = id.split('_').skip(1);
    let is_made_up = fields.next()? == MADE_UP;
    let place = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    is_made_up.then_some(place)
}

/// The ids of stored items, by their places.
struct Ids {
    stored: HashMap<(u64, u32), Stored>,
    used: HashSet<String>,
}

#[derive(Clone)]
struct Stored {
    id: String,
    place: (u64, u32),
    /// Whether it is the model's, and may belong to reasoning that is not sent with it.
    is_tied: bool,
}

impl Ids {
    fn of(messages: &[StoredMessage]) -> Self {
        let mut stored = HashMap::new();
        for message in messages.iter().filter(|message| message.state != MessageState::Synthetic) {
            let is_tied = is_tied(message);
            for Given { id, place, chunks, .. } in given(message) {
                let item = Stored { id, place, is_tied };
                let chunks = if chunks.is_empty() { message.chunk_indexes.clone() } else { chunks };
                stored.extend(chunks.into_iter().map(|chunk| ((message.index, chunk), item.clone())));
            }
        }
        Self { stored, used: HashSet::new() }
    }

    /// An item of a prompt, with an id and with what an answer of the API has. `is_loose`: the id that it is stored with may not
    /// go along.
    fn item(&mut self, json: &RawValue, source: Source, is_loose: bool) -> Result<Item, Refusal> {
        let taken = Taken::new(&with_annotations(json), "item", false)?;
        let (chunk, made_for) = match source {
            Source::Chunk { message, chunk } => (Some((message, chunk)), None),
            Source::MadeFor { message, chunk } => (None, Some((message, chunk))),
            Source::Nobody => (None, None),
        };
        let stored = chunk.and_then(|chunk| self.stored.get(&chunk)).cloned();
        let mut ids = Vec::new();
        if let Some(Stored { id, place: (message, first), is_tied }) = &stored {
            // The prompt left out an id that may not go without its reasoning.
            if !is_loose && (!is_tied || taken.id.as_ref() == Some(id)) {
                ids.push(id.clone());
            }
            ids.push(place_id(taken.kind(), *message, *first));
        }
        let (message, at) = made_for.or(chunk).unwrap_or_default();
        let made_up = format!("{}_{MADE_UP}_{message}_{at}", prefix(taken.kind()));
        ids.push(made_up.clone());
        let free = ids.into_iter().find(|id| takes_id(taken.kind(), id) && !self.used.contains(id));
        // Several are made up for one place: they are numbered.
        let id = free.unwrap_or_else(|| format!("{made_up}_{}", self.used.len()));
        self.used.insert(id.clone());
        let place = stored.map(|stored| stored.place).or(made_for);
        let mut json = taken.complete(&id).to_json();
        if taken.kind() == "reasoning" && (is_loose || taken.id.is_none()) {
            // OpenAI would look for reasoning of this id, and for what follows it.
            json = json.replacen(&format!("\"id\":{},", Value::from(&*id)), "", 1);
        }
        Ok(Item { json, id, place })
    }
}

/// Whether a message of the model has, or had, reasoning: an id of OpenAI's that belongs to reasoning is refused without it.
fn is_tied(stored: &StoredMessage) -> bool {
    let thinks = stored.message.chunks.iter().any(|chunk| matches!(chunk.body, Body::Thinking { .. }));
    let is_whole = (0..).zip(&stored.chunk_indexes).all(|(at, index)| at == *index);
    stored.message.role == crate::model::Role::Assistant && (thinks || !is_whole)
}

/// Whether this is reasoning that goes without its id, since a message comes next: clients take the ids from the model's messages,
/// and OpenAI wants both or none.
fn is_loose(json: &RawValue, next: Option<&RawValue>) -> bool {
    let says = |json: &RawValue, name: &str, word: &str| {
        Extra::from_object(json.get()).is_ok_and(|fields| fields.get(name).is_some_and(|value| value.as_str() == word))
    };
    says(json, "type", "\"reasoning\"")
        && Extra::from_object(json.get()).is_ok_and(|fields| fields.get("encrypted_content").is_some())
        && next.is_some_and(|next| says(next, "type", "\"message\"") && says(next, "role", "\"assistant\""))
}

/// What the model said, with the lists of annotations that OpenAI's clients expect.
fn with_annotations(json: &RawValue) -> Box<RawValue> {
    let mended = || {
        let fields = Extra::from_object(json.get()).ok()?;
        let content = fields
            .get("content")
            .filter(|_| fields.get("role").is_some_and(|role| role.as_str() == "\"assistant\""))?;
        let parts: Vec<&RawValue> = serde_json::from_str(content.as_str()).ok()?;
        let part = |part: &RawValue| {
            let text = part.get();
            let lacks = Extra::from_object(text).is_ok_and(|fields| {
                fields.get("type").is_some_and(|kind| kind.as_str() == "\"output_text\"")
                    && fields.get("annotations").is_none()
            });
            match text.strip_suffix('}') {
                Some(open) if lacks => format!("{open},\"annotations\":[]}}"),
                _ => text.to_owned(),
            }
        };
        let parts: Vec<String> = parts.into_iter().map(part).collect();
        let fields = fields.iter().map(|(name, value)| match name {
            "content" => format!("{}:[{}]", Value::from(name), parts.join(",")),
            _ => format!("{}:{value}", Value::from(name)),
        });
        RawValue::from_string(format!("{{{}}}", fields.collect::<Vec<_>>().join(","))).ok()
    };
    mended().unwrap_or_else(|| json.to_owned())
}
