//! A conversation: its messages, live while they are written.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use askama::Template;

use super::change::{Change, Link};
use super::frame::{Frame, address_for, for_its_owner, other_owner, page, see_other};
use super::message::{Showing, Shown};
use super::words::{Moment, Note, count, titled};
use crate::error::Error;
use crate::history::{Calls, EntryKind, MessageState, Site, StoredMessage};
use crate::log::reading::PageSize;
use crate::log::{ListItem, ListQuery};
use crate::model::{Body, ConversationId, Name, Role, StartedBy};
use crate::server::app::{Call, Outcome};
use crate::server::native::parameters;
use crate::server::refusal::Refusal;
use crate::server::stops;

/// Messages of a page.
const PAGE: usize = 50;
/// A page ends with the message that exceeds this; the newest are fewer, down to one.
const BYTES: usize = 4 * 1024 * 1024;
/// The newest sub-agents and forks that are named.
const STARTED: usize = 20;
/// Bytes of one text.
const TEXT: usize = 64 * 1024;

/// What all pages of a conversation show of it.
#[derive(Debug)]
pub(super) struct Heading {
    pub(super) id: String,
    pub(super) title: String,
    /// Whose it is, if it is not the reader's own.
    pub(super) owner: Option<String>,
    pub(super) key: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) messages: String,
    pub(super) hidden: u64,
    pub(super) last_seq: u64,
    pub(super) created: Moment,
    pub(super) active: Moment,
    /// The conversation that it was forked from, and up to which seq; no link if it is gone.
    pub(super) parent: Option<Parent>,
    /// The newest that were forked from it.
    pub(super) forks: Vec<Branch>,
    /// What started it, and what it started.
    pub(super) starter: Option<Started>,
    pub(super) started: Vec<Started>,
    /// The others of its session, newest first, and the list of all of them.
    pub(super) session: Option<Session>,
    pub(super) metadata: Option<String>,
}

/// What belongs to one session of a client.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) address: String,
    pub(super) others: Vec<Other>,
}

/// A conversation of a session: what it is there.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) address: String,
    pub(super) title: String,
    pub(super) what: String,
}

impl Session {
    fn of(call: &Call, item: &ListItem) -> Result<Option<Self>, Refusal> {
        let Some(tag) = item.tags.iter().find(|tag| tag.starts_with("session:")) else { return Ok(None) };
        let query = ListQuery::new().with_owner(&*call.caller.owner).with_tag(tag.as_str());
        let items = call.store().list(&query.with_limit(STARTED))?.items;
        let other = |other: &ListItem| {
            let named = |prefix: &str| other.tags.iter().find_map(|tag| tag.strip_prefix(prefix));
            let what = [named("kind:"), named("branch:"), other.parent.is_some().then_some("fork")];
            Other {
                address: format!("/pages/conversations/{}", other.id),
                title: titled(other),
                what: what.into_iter().flatten().collect::<Vec<_>>().join(", "),
            }
        };
        let others = items.iter().filter(|other| other.id != item.id).map(other).collect();
        Ok(Some(Self { address: address_for("/pages", [("tag", &**tag)], other_owner(call)), others }))
    }
}

/// A fork, and the last seq that it shares.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) address: String,
    pub(super) title: String,
    pub(super) at_seq: u64,
}

impl Branch {
    fn all(call: &Call, parent: ConversationId) -> Result<Vec<Self>, Refusal> {
        let query = ListQuery::new().with_owner(&*call.caller.owner).with_forked_from(parent).with_limit(STARTED);
        let fork = |item: ListItem| Self {
            address: format!("/pages/conversations/{}", item.id),
            title: titled(&item),
            at_seq: item.parent.map_or(0, |parent| parent.at_seq),
        };
        Ok(call.store().list(&query)?.items.into_iter().map(fork).collect())
    }
}

#[derive(Debug)]
pub(super) struct Parent {
    pub(super) id: Option<String>,
    pub(super) title: String,
    pub(super) at_seq: u64,
}

/// A conversation at the other end of a link.
#[derive(Debug)]
pub(super) struct Started {
    /// None if it is gone.
    pub(super) address: Option<String>,
    pub(super) title: String,
    /// The message with the call.
    pub(super) message: Option<u64>,
}

impl Started {
    fn by(call: &Call, link: &StartedBy) -> Result<Self, Refusal> {
        let message = link.message;
        match call.store().describe(call.own(link.conversation)) {
            Ok(item) => {
                let from = message.map_or_else(String::new, |message| format!("?from={message}#m{message}"));
                let address = Some(format!("/pages/conversations/{}{from}", item.id));
                Ok(Self { address, title: titled(&item), message })
            }
            Err(Error::NotFound { .. }) => {
                Ok(Self { address: None, title: "a conversation that is gone".to_owned(), message })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn all(call: &Call, starter: ConversationId) -> Result<Vec<Self>, Refusal> {
        let query = ListQuery::new().with_owner(&*call.caller.owner).with_tag(StartedBy::from(starter).to_string());
        let items = call.store().list(&query.with_limit(STARTED))?.items;
        let shown = items.iter().map(|item| Self {
            address: Some(format!("/pages/conversations/{}", item.id)),
            title: titled(item),
            message: item.started_by().and_then(|link| link.message),
        });
        Ok(shown.collect())
    }
}

impl Heading {
    pub(super) fn of(call: &Call, name: &Name, item: ListItem) -> Result<Self, Refusal> {
        let id = item.id.to_string();
        let parent = match item.parent {
            None => None,
            Some(fork) => Some(match call.store().describe(call.own(fork.conversation)) {
                Ok(parent) => {
                    let id = parent.id.to_string();
                    Parent { title: titled(&parent), id: Some(id), at_seq: fork.at_seq }
                }
                Err(Error::NotFound { .. }) => {
                    Parent { id: None, title: "a conversation that is gone".to_owned(), at_seq: fork.at_seq }
                }
                Err(error) => return Err(error.into()),
            }),
        };
        let starter = item.started_by().map(|link| Started::by(call, &link)).transpose()?;
        Ok(Self {
            session: Session::of(call, &item)?,
            starter,
            forks: Branch::all(call, item.id)?,
            started: Started::all(call, item.id)?,
            title: titled(&item),
            owner: other_owner(call).map(str::to_owned),
            key: item.key,
            tags: item.tags,
            messages: count(item.messages, "message"),
            hidden: item.hidden,
            last_seq: item.last_seq,
            created: item.created_at.into(),
            active: item.last_activity.into(),
            parent,
            metadata: call.store().metadata(name)?.map(|metadata| metadata.as_str().to_owned()),
            id,
        })
    }
}

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "conversation.html")]
struct Conversation {
    frame: Frame,
    heading: Heading,
    messages: Vec<Shown>,
    /// What could not be read.
    damage: Vec<Note>,
    shows_hidden: bool,
    as_written: bool,
    /// What may be changed of it.
    changes: Vec<Link>,
    /// Where the pages before and after this one begin.
    earlier: Option<u64>,
    later: Option<u64>,
    /// Where the live view goes on; absent if this is not the end of the conversation.
    cursor: Option<String>,
    /// The first message that what comes next may change.
    settled: u64,
}

pub(super) fn conversation(call: &Call, _: &[u8]) -> Outcome {
    let call = &for_its_owner(call)?;
    call.query.check(&["from", "hidden", "whole", "written"])?;
    let (store, name) = (call.store(), parameters::name(call));
    let from = call.query.number("from", 0, u64::MAX)?;
    let shows_hidden = call.query.get("hidden").is_some();
    // The cursor is read first: what is written meanwhile comes again, and nothing is missed.
    let item = store.describe(&name)?;
    let cursor = store.tail(&name, 0)?.cursor().with_seq(item.last_seq);
    let (messages, damage) = match read(call, &name, from, shows_hidden) {
        Ok(messages) => (messages, Vec::new()),
        // What can be read is shown.
        Err(Error::Corrupt { .. }) => whole(call, &name, from)?,
        Err(error) => return Err(error.into()),
    };
    let first = messages.first().map(|stored| stored.index);
    let next = messages.last().map_or_else(|| from.unwrap_or(0), |last| last.index + 1);
    let (before, has_earlier) = match first.filter(|first| *first > 0 && damage.is_empty()) {
        Some(first) => match store.page_before(&name, Some(first), size(1, shows_hidden)) {
            Ok(mut found) => {
                let has_earlier = !found.is_empty();
                (found.pop(), has_earlier)
            }
            Err(Error::Corrupt { .. }) => (None, true),
            Err(error) => return Err(error.into()),
        },
        None => (None, false),
    };
    let has_later = damage.is_empty() && !store.page(&name, next, size(1, shows_hidden))?.0.is_empty();
    let most = if call.query.get("whole").is_some() { usize::MAX } else { TEXT };
    let range = first.unwrap_or(0)..next;
    let hidden = if shows_hidden { reasons(call, &name, range)? } else { HashMap::new() };
    let settled = settled(&messages).unwrap_or(next);
    let address = format!("/pages/conversations/{}", item.id);
    let as_written = call.query.get("written").is_some();
    let scopes = call.caller.scopes.clone();
    let owner = other_owner(call).map(str::to_owned);
    let mut showing = Showing { address, most, as_written, hidden, before, scopes, owner, ..Showing::default() };
    let changes = Change::links(&call.caller.scopes, &showing.address, None);
    let page_size = PAGE as u64;
    let shown = Conversation {
        frame: Frame::of(call),
        heading: Heading::of(call, &name, item)?,
        messages: showing.messages(&messages),
        damage,
        shows_hidden,
        as_written,
        changes,
        earlier: first.filter(|_| has_earlier).map(|first| first.saturating_sub(page_size)),
        later: Some(next).filter(|_| has_later),
        cursor: (!has_later).then(|| cursor.to_string()),
        settled,
    };
    page(200, &shown)
}

/// Stops what is being written to it.
pub(super) fn stop(call: &Call, _: &[u8]) -> Outcome {
    let call = &for_its_owner(call)?;
    let id = call.store().describe(parameters::name(call))?.id;
    stops::stop(&call.app, call.store(), &call.caller.owner, &call.own(id))?;
    see_other(&format!("/pages/conversations/{id}"))
}

/// The messages of a page: from one on, or the newest.
fn read(call: &Call, name: &Name, from: Option<u64>, shows_hidden: bool) -> Result<Vec<StoredMessage>, Error> {
    match from {
        Some(from) => Ok(call.store().page(name, from, size(PAGE, shows_hidden))?.0),
        None => call.store().page_before(name, None, size(PAGE, shows_hidden)),
    }
}

const fn size(limit: usize, shows_hidden: bool) -> PageSize {
    PageSize { limit, bytes: BYTES, shows_hidden }
}

/// The messages of a conversation of which a part cannot be read, and what was done about it.
fn whole(call: &Call, name: &Name, from: Option<u64>) -> Result<(Vec<StoredMessage>, Vec<Note>), Refusal> {
    let conversation = call.store().load(name)?;
    let damage = conversation.report().iter().map(Note::from).collect();
    let mut messages = conversation.into_messages();
    messages.retain(|stored| stored.index >= from.unwrap_or(0) && stored.state != MessageState::Synthetic);
    messages.truncate(PAGE);
    Ok((messages, damage))
}

/// The first message that what comes next may change: one that is being written, or the last one of the model, if a call of it
/// has no result yet.
fn settled(messages: &[StoredMessage]) -> Option<u64> {
    let streaming = messages.iter().find(|stored| stored.state == MessageState::Streaming).map(|stored| stored.index);
    let calls = Calls::pair(messages);
    let last = messages.iter().rposition(|stored| stored.message.role == Role::Assistant);
    let waiting = last.and_then(|at| Some((at, messages.get(at)?))).filter(|(at, stored)| {
        let mut chunks = stored.message.chunks.iter().enumerate();
        chunks.any(|(chunk, content)| {
            matches!(content.body, Body::ToolCall { .. }) && calls.result(Site { message: *at, chunk }).is_none()
        })
    });
    streaming.into_iter().chain(waiting.map(|(_, stored)| stored.index)).min()
}

/// What hides messages of a range, or erased them, and when. Cost: reading the log.
fn reasons(call: &Call, name: &Name, range: Range<u64>) -> Result<HashMap<(u64, Option<u32>), String>, Refusal> {
    let mut reasons: HashMap<(u64, Option<u32>), String> = HashMap::new();
    // A follower's pieces are limited in bytes.
    let mut tail = call.store().tail(name, 0)?;
    loop {
        let entries = tail.next(Duration::ZERO)?;
        if entries.is_empty() {
            return Ok(reasons);
        }
        for entry in &entries {
            let Some(index) = entry.message_index else { continue };
            let (what, concerned) = match entry.kind {
                EntryKind::Rewind { end } => ("rewound", index.max(range.start)..end.min(range.end)),
                EntryKind::Remove => ("removed", index..index.saturating_add(1)),
                EntryKind::Redact => ("redacted", index..index.saturating_add(1)),
                _ => continue,
            };
            for index in concerned.filter(|index| range.contains(index)) {
                let reason = format!("{what} at seq {}, {}", entry.seq, Moment::from(entry.created_at).short);
                let known = reasons.entry((index, entry.chunk_index)).or_default();
                *known = if known.is_empty() { reason } else { format!("{known}; {reason}") };
            }
        }
    }
}
