//! Tools that the provider ran itself: their calls and results stand side by side in the assistant's message, in the blocks
//! that they came as (AN-37).

use std::collections::{HashMap, HashSet};
use std::ptr;

use super::Renderer;
use super::native::{NativeBlock, is_server_id};
use super::plan::{Asked, Plan, Step};
use super::request::{Block, RawKind};
use crate::history::report::{Fact, Unsent};
use crate::model::{Body, Chunk};
use crate::provider::anthropic::rules::AN_37;
use crate::provider::anthropic::types::is_server_result;
use crate::provider::prompt::turns::{Call, Origin, Reply, Turn};

/// The blocks of a message's pairs.
#[derive(Default)]
pub(crate) struct Hosted<'a> {
    /// By position of their chunk.
    pub(crate) blocks: HashMap<usize, Block<'a>>,
    /// The results that stand in another message, by position of their call.
    pub(crate) results: HashMap<usize, Block<'a>>,
}

impl<'a> Renderer<'a> {
    /// The pairs that are given back as they came. Where one call cannot be, all are sent as the caller's: a result in a
    /// message of its own would part the others.
    pub(crate) fn hosted(&mut self, turn: &Turn<'a>, calls: &[Call<'a>]) -> Hosted<'a> {
        let chunks = &turn.stored.message.chunks;
        let is_hosted = |call: &&Call<'_>| {
            matches!(chunks.get(call.chunk).map(|chunk| &chunk.body), Some(Body::ToolCall { server: true, .. }))
        };
        if !turn.is_by(self.manner.providers, None) {
            return Hosted::default();
        }
        let mut hosted = Hosted::default();
        let mut ids = HashSet::new();
        for call in calls.iter().filter(is_hosted) {
            let pair = self.pair(turn, call, &ids);
            let Some((asked, found, position)) = pair else { return Hosted::default() };
            hosted.blocks.insert(call.chunk, asked);
            match position {
                Some(position) => hosted.blocks.insert(position, found),
                None => hosted.results.insert(call.chunk, found),
            };
            ids.insert(call.id.clone());
        }
        self.server_calls.extend(ids);
        hosted
    }

    /// A call's block, its result's, and the latter's position if it is in the same message.
    fn pair(
        &self,
        turn: &Turn<'a>,
        call: &Call<'a>,
        ids: &HashSet<String>,
    ) -> Option<(Block<'a>, Block<'a>, Option<usize>)> {
        let is_known = |id: &str| self.server_calls.contains(id) || ids.contains(id);
        let Reply::Result { stored, chunk, .. } = &call.answer else { return None };
        let asked = NativeBlock::of(turn.stored.message.chunks.get(call.chunk)?.native.as_ref())?;
        let found = NativeBlock::of(stored.message.chunks.get(*chunk)?.native.as_ref())?;
        let is_pair = !is_known(&call.id)
            && asked.server_call(is_known) == Some(&call.id)
            && found.server_result(is_known) == Some(&call.id);
        let position = ptr::eq(*stored, turn.stored).then_some(*chunk);
        is_pair.then(|| (asked.block(RawKind::Other, None), found.block(RawKind::ServerResult, None), position))
    }

    /// A block of the provider's own goes back as it came; another's is written as text, if it has any.
    pub(crate) fn opaque(&mut self, turn: &Turn<'a>, at: usize, chunk: &'a Chunk, plan: &mut Plan<'a>) {
        let Body::Opaque { provider, kind, json } = &chunk.body else { return };
        let providers = self.manner.providers;
        if !providers.contains(&provider.as_str()) || !turn.is_by(providers, None) {
            plan.change();
            plan.steps.extend(self.dialogue.words_of(&chunk.body, turn.stored, at).map(Step::Say));
            return;
        }
        let found = match NativeBlock::read(json).filter(NativeBlock::is_block) {
            None => Err(Unsent::NotTyped),
            Some(given) => self.why_not(turn, &given).map_or(Ok(given), Err),
        };
        match found {
            Ok(given) => {
                if let Some(id) = given.answers() {
                    self.unanswered.remove(id);
                }
                let step = match (given.asks(), given.answers()) {
                    (Some(id), _) => {
                        self.server_calls.insert(id.to_owned());
                        self.unanswered.insert(id.to_owned());
                        let origin = Origin { stored: turn.stored, chunk: at };
                        let asked = Asked { id: id.to_owned(), made_result: given.made_result(), origin };
                        Step::Ask(given.block(RawKind::ServerCall, None), asked)
                    }
                    (None, Some(_)) => Step::Say(given.block(RawKind::ServerResult, None)),
                    (None, None) => Step::Say(given.block(RawKind::Other, None)),
                };
                plan.steps.push(step);
            }
            Err(why) => {
                plan.change();
                self.dialogue.note(Fact::Removed { kind, why }, turn.stored, at);
            }
        }
    }

    /// Why a block does not go back.
    fn why_not(&self, turn: &Turn<'_>, given: &NativeBlock<'_>) -> Option<Unsent<'static>> {
        let is_used = |id: &str| self.server_calls.contains(id);
        match (given.asks(), given.answers()) {
            (None, _) if given.kind().ends_with("tool_use") => return Some(Unsent::NoId),
            (None, None) if is_server_result(given.kind()) => return Some(Unsent::CallMissing(AN_37.id)),
            (Some(id), _) if is_used(id) => return Some(Unsent::IdUsed(None)),
            (Some(id), _) if given.kind() == "server_tool_use" && !is_server_id(id) => {
                return Some(Unsent::IdForeign);
            }
            (Some(id), _) if given.made_result().is_none() && !ends(turn, id) => {
                return Some(Unsent::ResultMissing);
            }
            (_, Some(id)) if !self.unanswered.contains(id) => return Some(Unsent::CallMissing(AN_37.id)),
            _ => {}
        }
        if given.called_by().is_some_and(|id| !is_used(id)) {
            return Some(Unsent::CallerMissing);
        }
        given.refusal("assistant").map(|finding| Unsent::Refused(finding.into()))
    }
}

/// Whether the result of a call is in the same message.
fn ends(turn: &Turn<'_>, id: &str) -> bool {
    turn.stored.message.chunks.iter().any(|chunk| match &chunk.body {
        Body::Opaque { json, .. } => NativeBlock::read(json).is_some_and(|given| given.answers() == Some(id)),
        _ => false,
    })
}
