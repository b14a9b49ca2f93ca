//! Where a response belongs: after which history, and in which conversation it is stored.
//!
//! A response is a checkpoint of a conversation. One that goes on from the last is appended to it; one that goes on from an earlier
//! one begins a fork there. What is not to be stored is written to a store in memory alone, in the same way.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::about::{About, ResponseId};
use super::asked::{Asked, Input};
use super::item::picture;
use super::parameters;
use super::reach::{Home, Reach};
use super::referenced::Referenced;
use super::sealed::{self, Seal, Sealed};
use crate::error::Error;
use crate::history::{Conversation, MessageState, StoredMessage, Summary};
use crate::log::reading::PageSize;
use crate::log::{AppendOptions, ExpectedHead, Limits, Receipt};
use crate::model::{Body, Chunk, ConversationId, Message, Metadata, Name, Role};
use crate::server::app::Call;
use crate::server::openai::{self, Normal, Taken, messages, normal};
use crate::server::refusal::Refusal;
use crate::store::{Begun, MessageWriter, Store};

/// The tag of a conversation in which responses were deleted that others go on from: their answers' indexes follow.
const DELETED: &str = "deleted-response:";
/// What an index takes in a tag.
const INDEX_BYTES: usize = 21;

/// What the name of a conversation begins with that an idempotency key has made.
pub(super) const KEYED: &str = "response:";

impl Reach {
    /// The answer of a response, hidden or not, and what was asked for it.
    pub(super) fn find(&self, call: &Call, id: ResponseId) -> Result<Option<Found>, Refusal> {
        for is_kept in [false, true] {
            let home = self.home(call, id.conversation, is_kept);
            let size = PageSize { limit: 1, bytes: 0, shows_hidden: true };
            let page = match home.store.page(&home.name, id.message, size) {
                Ok((page, _)) => page,
                Err(Error::NotFound { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let Some(stored) = page.into_iter().find(|stored| stored.index == id.message) else { continue };
            let Some(mut about) = About::of(&stored) else { continue };
            let item = home.store.describe(&home.name)?;
            // A fork has the answers of its parent; they are responses of the parent alone.
            let is_own = item.id == id.conversation && about_is_here(&about, id);
            if is_own && deleted(&item.tags).all(|deleted| deleted != id.message) {
                complete(&home, &mut about)?;
                let (next_message, last_seq) = (item.messages, item.last_seq);
                return Ok(Some(Found { id, home, stored, about, next_message, last_seq }));
            }
        }
        Ok(None)
    }
}

/// Reads the fields that an earlier answer has. What was erased there is as if it had not been said.
fn complete(home: &Home, about: &mut About) -> Result<(), Refusal> {
    for (name, index) in &about.same {
        let size = PageSize { limit: 1, bytes: 0, shows_hidden: true };
        let (page, _) = home.store.page(&home.name, *index, size)?;
        let first = page.iter().find(|stored| stored.index == *index).and_then(About::of);
        let value = first.and_then(|mut first| first.fields.remove(name));
        let value = value.or_else(|| parameters::echo(&Map::new()).remove(name));
        about.fields.insert(name.clone(), value.unwrap_or_default());
    }
    Ok(())
}

/// Whether what an answer says of its response is of this conversation, and not of one that was forked.
pub(super) fn about_is_here(about: &About, id: ResponseId) -> bool {
    about.fields.get("id").and_then(Value::as_str).is_none_or(|known| known == id.to_string())
}

/// The answers whose responses were deleted, by the tags of their conversation.
pub(super) fn deleted(tags: &[String]) -> impl Iterator<Item = u64> {
    let lists = tags.iter().filter_map(|tag| tag.strip_prefix(DELETED));
    lists.flat_map(|list| list.split(',').filter_map(|index| index.parse().ok()))
}

/// Notes that the response of an answer was deleted. A tag has many of them: a conversation has few tags.
pub(super) fn note_deleted(store: &Store, name: &Name, index: u64) -> Result<(), Error> {
    let tags = store.describe(name)?.tags;
    let has_room = |tag: &&String| tag.starts_with(DELETED) && tag.len() + INDEX_BYTES <= Limits::NAME_BYTES;
    let Some(known) = tags.iter().find(has_room) else {
        return store.tag(name, &[&format!("{DELETED}{index}")]).map(drop);
    };
    store.tag(name, &[&format!("{known},{index}")])?;
    store.untag(name, &[known]).map(drop)
}

/// A response that is stored.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) id: ResponseId,
    pub(super) home: Home,
    pub(super) stored: StoredMessage,
    pub(super) about: About,
    /// The index of the message that comes next in its conversation, and the last seq that there was then.
    pub(super) next_message: u64,
    last_seq: u64,
}

/// Where a response goes.
#[derive(Clone, Debug)]
enum Way {
    New,
    /// After the last entry, if it is still this one.
    Append(ExpectedHead),
    /// The same. If somebody else has gone on from there meanwhile, to a fork at that seq.
    Continue {
        head: ExpectedHead,
        at: u64,
        fork: Home,
    },
    /// To a fork of this conversation at a seq.
    Fork {
        parent: Home,
        at: u64,
    },
    /// Copied to a store in memory, with its history.
    Copy,
}

/// The place of a response, and the history before it.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) home: Home,
    way: Way,
    history: Vec<StoredMessage>,
    summary: Option<Summary>,
    /// The input, as it is stored.
    input: Vec<Message>,
    /// What was done to what was loaded, and what of the input was not taken.
    pub(super) report: Vec<String>,
    key: Option<String>,
}

/// What became of the request in the log.
pub(super) enum Begin {
    Begun {
        writer: MessageWriter,
        id: ResponseId,
    },
    /// It was begun before, by a request that this one repeats.
    Repeated(ResponseId),
}

impl Placed {
    pub(super) fn find(call: &Call, reach: &Reach, asked: &Asked, upstream: &str) -> Result<Self, Refusal> {
        let key = call.idempotency_key()?.map(str::to_owned);
        let fresh = || match &key {
            // The key makes the same conversation again.
            Some(key) if asked.is_stored => {
                Home { store: reach.kept.clone(), name: call.own(format!("{KEYED}{key}")), is_kept: true }
            }
            _ => reach.home(call, ConversationId::new(), asked.is_stored),
        };
        let (home, way, loaded) = match (&asked.previous, &asked.conversation) {
            (Some(previous), _) => {
                let found = previous_response(call, reach, previous)?;
                let at = found.stored.last_seq;
                let loaded = found.home.store.load_at(&found.home.name, at)?;
                let is_last = found.next_message == found.id.message + 1;
                let may_append = is_last && found.about.conversation().is_none();
                if found.home.is_kept && !asked.is_stored {
                    (fresh(), Way::Copy, Some(loaded))
                } else if !found.home.is_kept && asked.is_stored {
                    // Its history goes to the disk with it.
                    (fresh(), Way::Copy, Some(loaded))
                } else if may_append && key.is_none() {
                    // As it was when this was the last one: who has gone on from it meanwhile is not overlooked.
                    let head = ExpectedHead::At(found.last_seq);
                    let way = match found.home.is_kept {
                        true => Way::Continue { head, at, fork: fresh() },
                        false => Way::Append(head),
                    };
                    (found.home, way, Some(loaded))
                } else {
                    (fresh(), Way::Fork { parent: found.home, at }, Some(loaded))
                }
            }
            (None, Some(conversation)) => {
                let home = Home { store: reach.kept.clone(), name: openai::own(call, conversation), is_kept: true };
                let loaded = home.store.load(&home.name).map_err(|error| match error {
                    Error::NotFound { .. } => openai::not_found(conversation),
                    error => error.into(),
                })?;
                if call.app.exchanges.is_writing(&call.caller.owner, home.name.id()) {
                    return Err(locked(conversation));
                }
                let head = loaded.cursor().map_or(ExpectedHead::Any, ExpectedHead::AtCursor);
                (home, Way::Append(head), Some(loaded))
            }
            (None, None) => (fresh(), Way::New, None),
        };
        let mut placed =
            Self { home, way, history: Vec::new(), summary: None, input: Vec::new(), report: Vec::new(), key };
        if let Some(loaded) = loaded {
            placed.report.extend(loaded.report().iter().map(ToString::to_string));
            placed.summary = loaded.summary().cloned();
            placed.history = loaded.into_messages();
            // A call that has no output yet may get one now.
            placed.history.retain(|stored| stored.state != MessageState::Synthetic);
        }
        placed.take_input(call, reach, asked, upstream)?;
        placed.check_outputs(asked)?;
        Ok(placed)
    }

    fn take_input(&mut self, call: &Call, reach: &Reach, asked: &Asked, upstream: &str) -> Result<(), Refusal> {
        let mut run: Vec<Taken> = Vec::new();
        let mut seal = None;
        let mut answers = Referenced::default();
        // What the history and the input have already.
        let mut known: HashSet<String> = self.history.iter().flat_map(|stored| ids(&stored.message)).collect();
        for (at, input) in asked.input.iter().enumerate() {
            let stored = match input {
                Input::Item(Taken { id: Some(id), .. }) if known.contains(id) => None,
                Input::Item(item) => answers.find_same(call, reach, item)?,
                Input::Reference(id) if known.contains(id) => continue,
                Input::Reference(id) => match answers.find(call, reach, id)? {
                    Some(stored) => Some(stored),
                    None => {
                        let message = format!(
                            "Item with id '{id}' not found. An item of an earlier response can be named, and one of this \
                             request's own history, unless `store` was false."
                        );
                        let param = Some(format!("input[{at}].id"));
                        return Err(Refusal { param, ..Refusal::new(404, None, message) });
                    }
                },
            };
            match (stored, input) {
                (Some(stored), _) => {
                    self.take_run(call, &mut run, &mut seal, upstream)?;
                    known.extend(ids(&stored));
                    match self.input.last_mut() {
                        // Items of one answer are one message again.
                        Some(last) if last.role == Role::Assistant && same_answer(last, &stored) => {
                            last.chunks.extend(stored.chunks);
                        }
                        _ => self.input.push(stored),
                    }
                }
                (None, Input::Item(item)) => {
                    known.extend(item.id.clone());
                    run.push(item.clone());
                }
                (None, Input::Reference(_)) => {}
            }
        }
        self.take_run(call, &mut run, &mut seal, upstream)
    }

    fn take_run(
        &mut self,
        call: &Call,
        run: &mut Vec<Taken>,
        seal: &mut Option<Seal>,
        upstream: &str,
    ) -> Result<(), Refusal> {
        if run.is_empty() {
            return Ok(());
        }
        let items: Vec<Normal> = normal(run, self.home.name.id(), self.key.as_deref())?;
        run.clear();
        for mut message in messages(&items) {
            for chunk in &mut message.chunks {
                if let Some(picture) = picture(chunk) {
                    *chunk = picture;
                    continue;
                }
                let Some(text) = sealed_text(chunk) else { continue };
                if seal.is_none() {
                    *seal = Some(Seal::open(&call.app, &call.caller.owner)?);
                }
                let opened = seal.as_ref().and_then(|seal| seal.unseal(&text));
                match opened {
                    Some(Sealed::Thought { line, upstream: of, model }) if of == upstream => {
                        if let Some(thought) = sealed::thought(&line) {
                            *chunk = Chunk { id: chunk.id.take(), ..thought };
                            message.metadata.model = Some(model);
                        }
                    }
                    Some(Sealed::Summary { text }) => {
                        *chunk = Chunk { id: chunk.id.take(), ..Chunk::text(text) };
                        message.role = Role::User;
                    }
                    // A provider takes the reasoning of its own models alone.
                    Some(Sealed::Thought { .. }) => {
                        self.report.push("reasoning of another upstream was left out".to_owned());
                        *chunk = without_seal(chunk);
                    }
                    // It may be the provider's own.
                    None => {}
                }
            }
            self.input.push(message);
        }
        Ok(())
    }

    /// The ids of the calls of the history and of the input.
    pub(super) fn called(&self) -> HashSet<String> {
        self.history.iter().map(|stored| &stored.message).chain(&self.input).flat_map(calls).collect()
    }

    /// Refuses an output of no call, and a call that the history ends with and that has no output.
    fn check_outputs(&self, asked: &Asked) -> Result<(), Refusal> {
        let called = self.called();
        let outputs = || {
            self.input.iter().flat_map(|message| &message.chunks).filter_map(|chunk| match &chunk.body {
                Body::ToolResult { tool_call_id, .. } => Some(tool_call_id.as_str()),
                _ => None,
            })
        };
        if let Some(orphan) = outputs().find(|id| !called.contains(*id)) {
            let message = format!("No tool call found for function call output with call_id {orphan}.");
            return Err(Refusal { param: Some("input".to_owned()), ..Refusal::new(400, None, message) });
        }
        // Without a state of the server, what is missing is repaired.
        if asked.previous.is_none() && asked.conversation.is_none() {
            return Ok(());
        }
        let answered: HashSet<&str> = outputs().collect();
        let last = self.history.iter().rev().find(|stored| stored.message.role != Role::System);
        let open =
            last.filter(|stored| stored.message.role == Role::Assistant && stored.state == MessageState::Complete);
        let open = open.map(|stored| calls(&stored.message)).unwrap_or_default();
        let own = |id: &String| {
            // A provider that ran the tool itself has its result in the same message.
            let results = last.into_iter().flat_map(|stored| &stored.message.chunks);
            results
                .into_iter()
                .any(|chunk| matches!(&chunk.body, Body::ToolResult { tool_call_id, .. } if tool_call_id == id))
        };
        match open.iter().find(|id| !answered.contains(id.as_str()) && !own(id)) {
            Some(id) => {
                let message = format!("No tool output found for function call {id}.");
                Err(Refusal { param: Some("input".to_owned()), ..Refusal::new(400, None, message) })
            }
            None => Ok(()),
        }
    }

    /// The history with the input after it, as it is to be rendered; what is done to it is in the conversation's report.
    pub(super) fn conversation(&self, instructions: Option<&str>) -> Conversation {
        let shift = u64::from(instructions.is_some());
        let mut all: Vec<StoredMessage> = Vec::with_capacity(self.history.len() + self.input.len() + 1);
        let instructions =
            instructions.map(|text| StoredMessage::new(0, MessageState::Complete, Message::system(text)));
        all.extend(instructions);
        all.extend(self.history.iter().cloned().map(|stored| StoredMessage { index: stored.index + shift, ..stored }));
        let next = all.last().map_or(0, |last| last.index + 1);
        let input = self.input.iter().cloned();
        all.extend((next..).zip(input).map(|(at, message)| StoredMessage::new(at, MessageState::Complete, message)));
        let summary = self.summary.clone().map(|summary| Summary { through: summary.through + shift, ..summary });
        Conversation::new(all).with_summary(summary)
    }

    /// Stores the input, and begins the answer.
    pub(super) fn begin(self, call: &Call, mut about: About, provider: &str) -> Result<Begin, Refusal> {
        let Self { mut home, way, history, input, key, .. } = self;
        if matches!(way, Way::Append(_) | Way::Continue { .. } | Way::Fork { .. }) {
            about.share(&history);
        }
        let (mut input, mut expected) = (input, ExpectedHead::NewConversation);
        match &way {
            Way::New => {}
            Way::Append(head) | Way::Continue { head, .. } => expected = *head,
            Way::Fork { parent, at } => {
                expected = ExpectedHead::Any;
                match home.store.fork_to(&parent.name, Some(*at), &home.name) {
                    // A repetition finds its fork.
                    Ok(()) | Err(Error::NameTaken { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Way::Copy => input.splice(0..0, history.into_iter().map(|stored| stored.message)).for_each(drop),
        }
        let mut options = AppendOptions::new().with_expected(expected);
        options.idempotency_key = key.clone();
        let mut receipt: Option<Receipt> = None;
        if !input.is_empty() {
            let stored = match (home.store.append_with(&home.name, &input, &options), &way) {
                (Err(error), Way::Continue { at, fork, .. }) if is_taken(&error) => {
                    options.expected = ExpectedHead::Any;
                    home = forked(&home, *at, fork)?;
                    home.store.append_with(&home.name, &input, &options)
                }
                (stored, _) => stored,
            };
            let stored = stored.map_err(|error| taken(call, error))?;
            options.expected = ExpectedHead::At(stored.last_seq);
            receipt = Some(stored);
        }
        let is_repeated = receipt.as_ref().is_some_and(|receipt| receipt.duplicate);
        if is_repeated {
            call.app.metrics.repeated.inc();
            options.expected = ExpectedHead::Any;
        }
        // An idempotency key is of the content: what is repeated has another time in it.
        options.idempotency_key = key.map(|key| format!("answer of {key}"));
        let mut answer = Answer { about, receipt, options, provider };
        let begun = match (answer.begin(&home, is_repeated), &way) {
            (Err(error), Way::Continue { at, fork, .. }) if answer.receipt.is_none() && is_taken(&error) => {
                answer.options.expected = ExpectedHead::Any;
                home = forked(&home, *at, fork)?;
                answer.begin(&home, is_repeated)
            }
            (begun, _) => begun,
        };
        begun.map_err(|error| taken(call, error))
    }
}

/// An answer that is to be begun, after its input if it has any.
struct Answer<'a> {
    about: About,
    receipt: Option<Receipt>,
    options: AppendOptions,
    provider: &'a str,
}

impl Answer<'_> {
    fn begin(&mut self, home: &Home, is_repeated: bool) -> Result<Begin, Error> {
        let Self { about, receipt, options, provider } = self;
        let indexes = receipt.as_ref().map(|receipt| receipt.message_indexes.as_slice()).unwrap_or_default();
        let next = match indexes.last() {
            Some(last) => last + 1,
            None => home.store.describe(&home.name).map_or(0, |item| item.messages),
        };
        about.input_from = indexes.first().copied().unwrap_or(next);
        let conversation = home.name.id();
        let id = ResponseId { conversation, message: next };
        about.fields.insert("id".to_owned(), id.to_string().into());
        if is_repeated && let Some(found) = repeated(home, next)? {
            return Ok(Begin::Repeated(ResponseId { conversation, message: found }));
        }
        let metadata = Metadata {
            model: Some(about.model.clone()),
            provider: Some((*provider).to_owned()),
            native: about.to_native(),
            ..Metadata::default()
        };
        Ok(match home.store.begin_with(&home.name, Role::Assistant, metadata, options)? {
            Begun::Writer(writer) => Begin::Begun { writer, id },
            Begun::Duplicate(_) => Begin::Repeated(id),
        })
    }
}

/// Forks a conversation that somebody else has gone on from meanwhile.
fn forked(home: &Home, at: u64, fork: &Home) -> Result<Home, Error> {
    home.store.fork_to(&home.name, Some(at), &fork.name)?;
    Ok(fork.clone())
}

/// The ids of the calls of a message.
fn calls(message: &Message) -> Vec<String> {
    let call = |chunk: &Chunk| match &chunk.body {
        Body::ToolCall { id, .. } => Some(id.clone()),
        _ => None,
    };
    message.chunks.iter().filter_map(call).collect()
}

/// The answer that is where one would be begun.
fn repeated(home: &Home, index: u64) -> Result<Option<u64>, Error> {
    let (page, _) = home.store.page(&home.name, index, PageSize { limit: 1, bytes: 0, shows_hidden: true })?;
    Ok(page.iter().find(|stored| stored.index == index && About::of(stored).is_some()).map(|stored| stored.index))
}

/// Whether somebody has written to the conversation since it was read.
const fn is_taken(error: &Error) -> bool {
    matches!(error, Error::StaleHead { .. } | Error::BeingWritten { .. })
}

fn taken(call: &Call, error: Error) -> Refusal {
    if is_taken(&error) { locked(call.part("conversation")) } else { error.into() }
}

fn locked(conversation: &str) -> Refusal {
    let message = format!(
        "Another process is currently operating on this conversation. Please retry in a few seconds. {conversation}"
    );
    Refusal { retry_after: Some(1), ..Refusal::new(409, "conversation_locked", message.trim_end()) }
}

fn previous_not_found(id: &str) -> Refusal {
    let message = format!("Previous response with id '{id}' not found.");
    Refusal::invalid("previous_response_id", "previous_response_not_found", message)
}

fn previous_response(call: &Call, reach: &Reach, text: &str) -> Result<Found, Refusal> {
    let none = || previous_not_found(text);
    let id = ResponseId::named(text).ok_or_else(none)?;
    let found = reach.find(call, id)?.ok_or_else(none)?;
    if found.stored.state == MessageState::Streaming {
        let message = format!("Previous response with id '{text}' is still in progress.");
        return Err(Refusal { retry_after: Some(1), ..Refusal::new(409, "response_in_progress", message) });
    }
    Ok(found)
}

/// The ids of a message, and of its items.
fn ids(message: &Message) -> impl Iterator<Item = String> {
    message.metadata.id.iter().chain(message.chunks.iter().filter_map(|chunk| chunk.id.as_ref())).cloned()
}

fn same_answer(last: &Message, next: &Message) -> bool {
    let answer = |message: &Message| message.chunks.first()?.id.as_deref().and_then(ResponseId::of_answer);
    next.role == Role::Assistant && answer(last).is_some() && answer(last) == answer(next)
}

/// What may be a sealed text in a chunk of the input.
fn sealed_text(chunk: &Chunk) -> Option<String> {
    match &chunk.body {
        Body::Thinking { signature: Some(text), .. } => Some(text.clone()),
        Body::Opaque { kind, json, .. } if kind == "compaction" => {
            let fields: Value = serde_json::from_str(json.as_str()).ok()?;
            Some(fields.get("encrypted_content")?.as_str()?.to_owned())
        }
        _ => None,
    }
}

/// A thought without what only its own provider reads.
fn without_seal(chunk: &Chunk) -> Chunk {
    let text = chunk.growing().to_owned();
    Chunk { id: chunk.id.clone(), ..Chunk::thinking(text) }
}
