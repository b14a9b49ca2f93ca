//! What has become of a call, now or earlier.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::around::{About, END_FIELD};
use super::book::{Book, End, How, State};
use super::sent::Requests;
use crate::error::{Error, Result};
use crate::history::MessageState;
use crate::log::items;
use crate::model::ConversationId;
use crate::server::app::App;
use crate::server::ledger::Room;
use crate::server::refusal::Refusal;
use crate::store::Store;

/// A call of a model that passed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Exchange {
    /// Its id, as `x-convo-exchange` had it.
    exchange: String,
    state: State,
    /// What the request was to what was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    how: Option<How>,
    /// Where the request is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<ConversationId>,
    /// The answer, by its index.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<u64>,
    /// Of the upstream's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// The upstream's words for an error in place of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What has become of an owner's call; `None` if there is no such call.
pub(crate) fn exchange(app: &App, store: &Store, owner: &str, id: Uuid) -> Result<Option<Exchange>> {
    // Asked before the book: what ends meanwhile is in it.
    let is_running = app.exchanges.is_running(owner, id);
    let book = Book::known(store, owner)?;
    // The end first: what it ends is in the book before it.
    let (end, entry) = match &book {
        Some(book) => (book.ended(id)?, book.exchange(id)?),
        None => (None, None),
    };
    if entry.is_none() && end.is_none() && !is_running {
        return Ok(None);
    }
    let mut end = end.unwrap_or_else(|| End::of(State::Started));
    if let (Some(book), Some(entry)) = (&book, &entry)
        && end.state == State::Started
        && !is_running
    {
        let name = book.own(entry.conversation);
        let item = match store.log().view(&name)? {
            Some(view) => items::find_hidden(store.log(), &view, &id.to_string())?,
            None => None,
        };
        let stored = item.map(|item| book.message(&name, item.message_index)).transpose()?.flatten();
        end.message = stored.as_ref().map(|stored| stored.index);
        let is_cut = match stored {
            Some(stored) => stored.state == MessageState::Interrupted,
            None => app.exchanges.is_lost(id),
        };
        // The server that wrote it ended without a word.
        if is_cut {
            end.state = State::Cut;
        }
    }
    let End { state, status, error, message } = end;
    let words = book.as_ref().map(|book| book.words(id)).transpose()?.flatten();
    let error = error.or(words);
    let (how, conversation) = entry.map(|entry| (entry.how, entry.conversation)).unzip();
    Ok(Some(Exchange { exchange: id.to_string(), state, how, conversation, message, status, error }))
}

/// The request of an answer, byte for byte.
#[derive(Debug)]
pub(crate) struct AsSent {
    pub(crate) bytes: Vec<u8>,
    pub(crate) conversation: ConversationId,
    /// The answer, by its index.
    pub(crate) message: u64,
    /// The upstream, and the path there.
    pub(crate) upstream: String,
    pub(crate) path: String,
    /// The fields in which keys and personal ids are replaced.
    pub(crate) replaced: Vec<String>,
    /// What a repair changed before it was sent.
    pub(crate) repaired: Vec<String>,
}

/// The request of an owner's call.
pub(crate) fn request(store: &Store, room: &Room, owner: &str, id: Uuid) -> std::result::Result<AsSent, Refusal> {
    let none = || Error::NotFound { what: format!("exchange {id}") };
    let book = Book::known(store, owner)?.ok_or_else(none)?;
    let entry = book.exchange(id)?.ok_or_else(none)?;
    let name = book.own(entry.conversation);
    let view = store.log().view(&name)?.ok_or_else(none)?;
    let not_kept =
        |why: &str| Refusal::new(404, "not_kept", format!("the request of exchange {id} is not there: {why}"));
    let item = items::find_hidden(store.log(), &view, &id.to_string())?;
    let stored = item.map(|item| book.message(&name, item.message_index)).transpose()?.flatten();
    let (stored, about) = stored
        .and_then(|stored| About::of(&stored).map(|about| (stored, about)))
        .ok_or_else(|| not_kept("it has no answer"))?;
    let Some(sent) = &about.sent else { return Err(not_kept("it could not be kept when it passed")) };
    let requests = Requests { book: &book, name, room, recent: None };
    let known = requests.read(&about)?;
    let known = known.ok_or_else(|| not_kept("something that it holds was redacted since"))?;
    let end = stored.message.metadata.extra.get(END_FIELD);
    let end = end.and_then(|end| serde_json::from_str::<Repaired>(end.as_str()).ok());
    Ok(AsSent {
        bytes: std::sync::Arc::unwrap_or_clone(known.bytes),
        conversation: entry.conversation,
        message: stored.index,
        replaced: sent.replaced_fields().to_vec(),
        repaired: end.map(|end| end.repaired).unwrap_or_default(),
        upstream: about.upstream,
        path: about.path,
    })
}

/// Of an answer's end.
#[derive(Deserialize)]
struct Repaired {
    #[serde(default)]
    repaired: Vec<String>,
}
