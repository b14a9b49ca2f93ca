//! Tools that the provider ran itself: their calls and results stand side by side in the assistant's message, in the blocks
//! that they came as (AN-37).

use std::collections::{HashMap, HashSet};
use std::ptr;

use super::native::Given;
use super::renderer::Renderer;
use super::request::{Block, OwnKind};
use crate::model::Body;
use crate::provider::prompt::turns::{Call, Reply, Turn};

/// The blocks of a message's pairs.
#[derive(Default)]
pub(crate) struct Hosted<'a> {
    /// By position of their chunk.
    pub(crate) blocks: HashMap<usize, Block<'a>>,
    /// The results that stand in another message, by position of their call.
    pub(crate) results: HashMap<usize, Block<'a>>,
}

impl<'a> Renderer<'a> {
    /// The pairs that are given back as they came. Where one call cannot be, all are told as the caller's: a result in a
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
        self.opaque_pairs(turn, &mut ids, &mut hosted);
        self.server_calls.extend(ids);
        hosted
    }

    /// A call's block, its result's, and the latter's position if it stands in the same message.
    fn pair(
        &self,
        turn: &Turn<'a>,
        call: &Call<'a>,
        ids: &HashSet<String>,
    ) -> Option<(Block<'a>, Block<'a>, Option<usize>)> {
        let is_known = |id: &str| self.server_calls.contains(id) || ids.contains(id);
        let Reply::Result { stored, chunk, .. } = &call.answer else { return None };
        let asked = Given::of(turn.stored.message.chunks.get(call.chunk)?.native.as_ref())?;
        let found = Given::of(stored.message.chunks.get(*chunk)?.native.as_ref())?;
        let is_pair = !is_known(&call.id)
            && asked.server_call(is_known) == Some(&call.id)
            && found.server_result(is_known) == Some(&call.id);
        let position = ptr::eq(*stored, turn.stored).then_some(*chunk);
        is_pair.then(|| (asked.block(OwnKind::Other, None), found.block(OwnKind::ServerResult, None), position))
    }

    /// Calls and results that are kept as opaque chunks.
    fn opaque_pairs(&self, turn: &Turn<'a>, ids: &mut HashSet<String>, hosted: &mut Hosted<'a>) {
        let mut open: HashMap<String, (usize, Given<'a>)> = HashMap::new();
        for (at, chunk) in turn.stored.message.chunks.iter().enumerate() {
            let Body::Opaque { provider, json, .. } = &chunk.body else { continue };
            if !self.manner.providers.contains(&provider.as_str()) {
                continue;
            }
            let Some(given) = Given::read(json) else { continue };
            let is_known = |id: &str| self.server_calls.contains(id) || ids.contains(id) || open.contains_key(id);
            if let Some(id) = given.server_call(is_known).filter(|id| !is_known(id)).map(str::to_owned) {
                open.insert(id, (at, given));
            } else if let Some((id, (position, call))) =
                given.server_result(is_known).map(str::to_owned).and_then(|id| open.remove_entry(&id))
            {
                hosted.blocks.insert(position, call.block(OwnKind::Other, None));
                hosted.blocks.insert(at, given.block(OwnKind::ServerResult, None));
                ids.insert(id);
            }
        }
    }
}
