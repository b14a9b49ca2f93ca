//! Items of the provider's own, which go back to it as they came: all that it does not refuse, known or not.

use serde_json::value::{RawValue, to_raw_value};

use super::assistant::Item;
use super::native::NativeItem;
use super::request::Entry;
use super::{Renderer, made_for, source};
use crate::history::report::{Fact, IdGone, Unsent};
use crate::history::{ReportLine, StoredMessage};
use crate::model::{Body, Chunk, Role};
use crate::provider::openai_responses::manner::PROVIDER;
use crate::provider::openai_responses::read::request::{CALLERS, is_given};
use crate::provider::openai_responses::rules::{OR_04, OR_05, OR_06};
use crate::provider::prompt::turns::Turn;

impl Item<'_> {
    /// As it goes back.
    pub(crate) fn json(&self) -> Box<RawValue> {
        if self.with_id { self.given.whole() } else { self.given.without_id() }
    }
}

impl<'a> Renderer<'a> {
    /// An item, if it goes back; else the report has the reason.
    pub(super) fn own_item(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) -> Option<Item<'a>> {
        let Body::Opaque { kind, json, .. } = &chunk.body else { return None };
        let found = match NativeItem::read(json).filter(NativeItem::is_item) {
            None => Err(Unsent::NotTyped),
            Some(given) if turn.role == Role::Assistant && CALLERS.contains(&given.kind()) => Err(Unsent::ByCaller),
            Some(given) => match given.refusal() {
                Some(finding) => Err(Unsent::Refused(finding.into())),
                None if given.is_answer() && !self.is_answer(at) => Err(Unsent::CallMissing(OR_05.id)),
                None if given.wants_answer() && !self.is_answered(at) && given.made_answer().is_none() => {
                    Err(Unsent::Unanswered(OR_04.id))
                }
                None => self.free(turn.stored, at, given).ok_or(Unsent::IdUsed(Some(OR_06.id))),
            },
        };
        found
            .map_err(|why| {
                self.note(Fact::Removed { kind, why }, turn.stored, at);
                self.drop_answer(at);
            })
            .ok()
    }

    /// Whether a chunk answers a call, which has its place then.
    pub(super) fn is_answer(&self, chunk: usize) -> bool {
        self.pairs.calls.contains_key(&(self.at, chunk))
    }

    fn is_answered(&self, chunk: usize) -> bool {
        self.pairs.answers.contains_key(&(self.at, chunk))
    }

    /// The item with its id, if no other had it; without where it may be.
    fn free(&mut self, stored: &StoredMessage, at: usize, given: NativeItem<'a>) -> Option<Item<'a>> {
        let with_id = given.id().is_none_or(|id| self.ids.insert(id.to_owned()));
        if !with_id && given.may_lose_id() {
            self.note(Fact::IdRemoved { kind: given.kind(), why: IdGone::Used }, stored, at);
        }
        (with_id || given.may_lose_id()).then_some(Item { given, with_id })
    }

    /// What a call that is no function's is answered. An answer in the same message stays in its place.
    pub(super) fn answer(&mut self, turn: &Turn<'a>, chunk: usize, given: &NativeItem<'_>) {
        match self.pairs.answers.get(&(self.at, chunk)).copied() {
            Some((turn, _)) if turn == self.at => {}
            Some((turn, chunk)) => {
                let Some(stored) = self.stored.get(turn).copied() else { return };
                let content = stored.message.chunks.get(chunk).map(|chunk| &chunk.body);
                let Some(Body::Opaque { kind, json, .. }) = content else { return };
                match NativeItem::read(json).and_then(|given| self.free(stored, chunk, given)) {
                    Some(item) => self.input.push((Entry::Raw(item.json()), source(stored, chunk))),
                    None => self.note(Fact::Removed { kind, why: Unsent::IdUsed(Some(OR_06.id)) }, stored, chunk),
                }
            }
            None => {
                if let Some(made) = given.made_answer().and_then(|made| to_raw_value(&made).ok()) {
                    let line = ReportLine::chunk(Fact::ItemAnswered { kind: given.kind() }, turn.stored, chunk);
                    self.report.push(line.with_tool_call_id(given.text("call_id")));
                    self.input.push((Entry::Raw(made), made_for(turn.stored, chunk)));
                }
            }
        }
    }

    /// The call of this turn was left out, and so is its answer.
    pub(super) fn drop_answer(&mut self, chunk: usize) {
        if let Some((turn, chunk)) = self.pairs.answers.get(&(self.at, chunk)).copied()
            && let Some(stored) = self.stored.get(turn).copied()
            && let Some(Body::Opaque { kind, .. }) = stored.message.chunks.get(chunk).map(|chunk| &chunk.body)
        {
            self.note(Fact::Removed { kind, why: Unsent::CallRemoved }, stored, chunk);
        }
    }

    /// Whether a chunk that is not the model's is an item that a caller gives, not a part of a message.
    pub(super) fn is_given_item(&self, turn: &Turn<'_>, at: usize, chunk: &Chunk) -> bool {
        match &chunk.body {
            Body::Opaque { provider, kind, json } if provider == PROVIDER && turn.role == Role::User => {
                is_given(kind, true)
                    && turn.is_by(self.manner.providers, None)
                    && (self.is_answer(at) || NativeItem::read(json).is_some_and(|given| given.is_item()))
            }
            _ => false,
        }
    }

    /// An item that the caller gave. An answer is after its call already.
    pub(super) fn given_item(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk) {
        if self.is_answer(at) {
            return;
        }
        if let Some(item) = self.own_item(turn, at, chunk) {
            let json = item.json();
            self.input.push((Entry::Raw(json), source(turn.stored, at)));
            self.answer(turn, at, &item.given);
        }
    }
}
