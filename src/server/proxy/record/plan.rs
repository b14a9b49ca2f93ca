//! What is written to the place of a request: a conversation or a fork, what was said, what is hidden, and the book's entry.
//!
//! A request whose place is looked for, and what is needed for that.

use std::collections::BTreeSet;

use super::around::FIELD;
use super::book::{Beginning, Book, Entry, How};
use super::meaning::Digest;
use super::scope::{Elsewhere, Kind, Scope};
use super::turns::{Run, Turns};
use crate::error::{Error, Result};
use crate::log::{AppendOptions, ExpectedHead, Limits, NewConversation, reading};
use crate::model::{Chunk, ConversationId, Json, Message, Name, Role, StartedBy};
use crate::server::exchanges::Exchanges;
use crate::server::ledger::Room;

/// The most messages of one append.
const APPENDED: usize = 5_000;

/// What came of comparing a request with what is recorded.
pub(super) enum Echoed<'a> {
    Plan(Box<Plan<'a>>),
    Wait,
    Nothing,
}

impl Echoed<'_> {
    /// What else comes of looking, if nothing was found.
    pub(super) fn or_else(self, look: impl FnOnce() -> Result<Self>) -> Result<Self> {
        match self {
            Self::Nothing => look(),
            found => Ok(found),
        }
    }
}

/// What is to be written to a place.
pub(super) struct Plan<'a> {
    /// The conversation, its last seq, and the seq after which the request leaves it.
    pub(super) name: Name,
    pub(super) last_seq: u64,
    pub(super) next_message: u64,
    pub(super) leave_at: Option<u64>,
    pub(super) hide: Vec<(u64, Option<u32>)>,
    /// What the client kept of an answer, as messages of the model.
    pub(super) kept: Vec<Message>,
    /// What follows: messages of the request.
    pub(super) rest: Vec<Message>,
    /// What the client gave the model to go on with.
    pub(super) prefill: &'a [Message],
    /// If the run goes on: where it began, and what is in it.
    pub(super) run: Option<(u64, Vec<u64>)>,
    pub(super) answer_before: Option<u64>,
    pub(super) calls: Option<Digest>,
    pub(super) how: How,
    pub(super) rewritten: Vec<usize>,
}

/// Where an answer goes.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) entry: Entry,
    /// The digest by which the book has the entry.
    pub(super) asked: Digest,
    /// The index of the first message from which on nothing is shared with an earlier request; all of a fork's are new.
    pub(super) first: u64,
    /// The messages of the request, by their positions, in whose places others are recorded: the client has rewritten its past.
    pub(super) rewritten: Vec<usize>,
}

impl<'a> Request<'a> {
    /// The messages of the request from one on, without its first chunks, up to what the model is to go on with.
    pub(super) fn rest(&self, from: usize, chunks: usize) -> Vec<Message> {
        let end = self.turns.trailing().map_or(self.turns.messages.len(), |run| run.first);
        let mut rest = self.turns.messages.get(from..end).unwrap_or_default().to_vec();
        if let Some(first) = rest.first_mut() {
            first.chunks.drain(..chunks.min(first.chunks.len()));
        }
        rest
    }

    /// Adds what follows a run of the request.
    pub(super) fn follow(&self, plan: &mut Plan<'a>, run: &Run) {
        if run.end < self.turns.messages.len() {
            plan.rest = self.rest(run.end, 0);
            plan.prefill = self.turns.trailing().map_or(&[][..], |run| self.turns.run_messages(run));
        }
    }

    /// Writes what a plan says: the conversation or the fork, then what was said, then what is hidden, then the book's entry.
    pub(super) fn carry_out(&self, plan: Plan<'a>) -> Result<Placed> {
        let store = self.book.store;
        let is_beside = plan.how == How::New && self.is_beside()?;
        let begins = !is_beside && (plan.how == How::New || plan.leave_at.is_some());
        let (name, expected, next) = self.opened(&plan, is_beside)?;
        // A client that has rewritten its past does so again: it is found at once then.
        let is_rewritten = plan.how == How::Continued && self.scope.session.is_some() && !plan.rewritten.is_empty();
        let begins = begins || is_rewritten && self.book.newest_in(&self.scope.digest)? != Some(name.id());
        let (mut run_from, mut run) = plan.run.unwrap_or_default();
        let is_new_run = run.is_empty() && run_from == 0;
        let prefill = plan.prefill.iter().cloned().map(kept_by_client);
        let kept: Vec<Message> = plan.kept.into_iter().filter(|message| !message.chunks.is_empty()).collect();
        let rest: Vec<Message> = plan.rest.into_iter().filter(|message| !message.chunks.is_empty()).collect();
        let (kept_count, rest_count) = (kept.len(), rest.len());
        let all: Vec<Message> = kept.into_iter().chain(rest).chain(prefill).collect();
        let mut cursor = expected;
        for part in all.chunks(APPENDED) {
            let options = AppendOptions::new().with_expected(ExpectedHead::At(cursor));
            cursor = store.append_with(&name, part, &options)?.last_seq;
        }
        let index = |count: usize| next.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if is_new_run {
            run_from = index(kept_count + rest_count);
            run = (run_from..index(all.len())).collect();
        } else {
            run.extend(next..index(kept_count));
        }
        // What began after the place that it leaves is not there: its index is that of another message.
        let hide: BTreeSet<(u64, Option<u32>)> = plan.hide.into_iter().filter(|(message, _)| *message < next).collect();
        for (message, chunk) in hide {
            match store.remove(&name, message, chunk) {
                Ok(_) | Err(Error::NotFound { .. } | Error::BeingWritten { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let entry = Entry {
            exchange: self.exchange,
            how: plan.how,
            conversation: name.id(),
            from: run_from,
            kept: run,
            answer_before: plan.answer_before,
            scope: self.scope.digest,
            surroundings: self.scope.session.is_none().then_some(self.scope.surroundings),
            account: self.scope.session.is_none().then_some(self.scope.account),
            model: self.scope.session.is_none().then_some(self.scope.model),
            user: self.scope.user,
            calls: plan.calls,
            items: self.turns.items,
        };
        // Before the book: who finds the conversation there may stop the answer.
        self.exchanges.placed(self.exchange, name.id());
        self.exchanges.surrounds(self.exchange, self.scope.surroundings);
        let beginning = Beginning { conversation: name.id(), has_tools: self.scope.has_tools };
        self.book.write(&self.turns.asked, &entry, begins.then_some(&beginning))?;
        let first = if plan.leave_at.is_some() { 0 } else { next };
        Ok(Placed { entry, asked: self.turns.asked, first, rewritten: plan.rewritten })
    }

    /// The conversation that is written to, its last seq, and the index of its next message. It begins here if the plan says so.
    fn opened(&self, plan: &Plan<'a>, is_beside: bool) -> Result<(Name, u64, u64)> {
        let store = self.book.store;
        if plan.how == How::New {
            let kind = if is_beside { Kind::Side } else { self.scope.kind };
            let follows = kind == Kind::Main && self.scope.session.is_some();
            let derived = if follows { self.book.newest_in(&self.scope.digest)? } else { None };
            let new = self.tags(kind, derived)?.into_iter().fold(NewConversation::new(), NewConversation::with_tag);
            let last_seq = store.create(&plan.name, &new)?.last_seq;
            return Ok((plan.name.clone(), last_seq, plan.next_message));
        }
        let Some(at) = plan.leave_at else { return Ok((plan.name.clone(), plan.last_seq, plan.next_message)) };
        let child = Name::from(ConversationId::new()).with_owner(self.book.owner);
        store.fork_to(&plan.name, Some(at), &child)?;
        let view = reading::view(store.log(), &child)?;
        let stale: Vec<&str> = view.head.tags.iter().map(String::as_str).filter(|tag| is_ours(tag)).collect();
        store.untag(&child, &stale)?;
        let tags = self.tags(self.scope.kind, None)?;
        if !tags.is_empty() {
            store.tag(&child, &tags.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        let last_seq = reading::view(store.log(), &child)?.last_seq();
        Ok((child, last_seq, view.head.next_message_index))
    }

    /// Whether a conversation that begins is beside the main one of its session: it asks for one token, or has no tools where an
    /// earlier one has some, as the calls of a tool that asks a model.
    fn is_beside(&self) -> Result<bool> {
        let scope = self.scope;
        if scope.session.is_none() || scope.kind != Kind::Main || scope.kept_elsewhere.is_some() {
            return Ok(false);
        }
        if scope.is_probe || scope.has_tools {
            return Ok(scope.is_probe);
        }
        let newest = self.book.begun_in(&scope.digest, 1)?;
        Ok(newest.first().is_some_and(|beginning| beginning.has_tools))
    }

    /// The tags of a conversation that begins here.
    fn tags(&self, kind: Kind, derived: Option<ConversationId>) -> Result<Vec<String>> {
        let mut tags = Vec::new();
        // What is no tag is still a session: one that a body names may have any length.
        let tag = self.scope.session.as_ref().map(|session| format!("session:{session}"));
        tags.extend(tag.filter(|tag| tag.len() <= Limits::NAME_BYTES));
        if let Some(branch) = &self.scope.branch {
            tags.push(format!("branch:{branch}"));
        }
        if self.scope.session.is_some() || kind != Kind::Main {
            tags.push(format!("kind:{}", kind.as_str()));
        }
        if let Some(parent) = self.scope.parent
            && let Some(parent) = self.book.newest_in(&parent)?
        {
            tags.extend(StartedBy::from(parent).tags());
        }
        if matches!(self.scope.kept_elsewhere, Some(Elsewhere::Response(_))) {
            tags.push("parent-unknown".to_owned());
        }
        if let Some(derived) = derived {
            tags.push(format!("follows:{derived}"));
        }
        Ok(tags)
    }
}

/// Tags that the proxy gives.
fn is_ours(tag: &str) -> bool {
    let ours = ["session:", "branch:", "kind:", "follows:", "started-by:", "parent-unknown"];
    ours.iter().any(|prefix| tag.starts_with(prefix))
}

/// A message of the model that no answer was recorded of: the client says that the model said it.
pub(super) fn kept_by_client(mut message: Message) -> Message {
    if let Ok(json) = Json::new("{\"kept_by_client\":true}") {
        message.metadata.extra.push(FIELD, json);
    }
    message
}

/// A request that is to be placed.
pub(super) struct Request<'a> {
    pub(super) book: &'a Book<'a>,
    pub(super) turns: &'a Turns,
    pub(super) scope: &'a Scope,
    pub(super) exchange: uuid::Uuid,
    pub(super) skips: fn(Role, &Chunk) -> bool,
    /// Whether it may still wait for answers that are being stored.
    pub(super) may_wait: bool,
    /// Whether it begins a conversation in any case.
    pub(super) is_alone: bool,
    pub(super) exchanges: &'a Exchanges,
    /// What is held of the store counts there.
    pub(super) room: &'a Room,
}
