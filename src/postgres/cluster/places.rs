//! Where conversations were last seen: a guess, which an answer that may be wrong corrects.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::member::bucket_of;
use crate::log::locked;
use crate::model::ConversationId;

/// Forks whose places are remembered.
const PLACES: usize = 100_000;

/// The bucket of a conversation, and its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) bucket: u64,
    pub(super) cluster: usize,
}

/// Where a conversation was asked for, and how often buckets had come or gone there by then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) place: Place,
    moves: u64,
}

/// What is known of where conversations are.
pub(super) struct Places {
    /// The cluster of each bucket.
    map: Vec<AtomicUsize>,
    /// The buckets of forks that are not in those of their ids.
    placed: Mutex<HashMap<ConversationId, u64>>,
    /// How often buckets had come or gone when a cluster was last looked at: by cluster.
    moves: Vec<AtomicU64>,
    /// The same, when each bucket was in a cluster.
    settled: Mutex<Vec<u64>>,
}

impl Places {
    /// `map`: the cluster of each bucket.
    pub(super) fn new(map: Vec<usize>, clusters: usize) -> Self {
        Self {
            map: map.into_iter().map(AtomicUsize::new).collect(),
            placed: Mutex::default(),
            moves: (0..clusters).map(|_| AtomicU64::new(0)).collect(),
            settled: Mutex::default(),
        }
    }

    /// Where a conversation was last seen, or should be.
    pub(super) fn of(&self, id: ConversationId) -> Place {
        let placed = locked(&self.placed).get(&id).copied();
        self.at(placed.unwrap_or_else(|| bucket_of(id)))
    }

    /// Where a bucket was last seen.
    pub(super) fn at(&self, bucket: u64) -> Place {
        let known = usize::try_from(bucket).ok().and_then(|bucket| self.map.get(bucket));
        Place { bucket, cluster: known.map_or(usize::MAX, |cluster| cluster.load(Ordering::Relaxed)) }
    }

    /// Where the place of an id is.
    pub(super) fn home(&self, id: ConversationId) -> Place {
        self.at(bucket_of(id))
    }

    /// Where to ask for a conversation.
    pub(super) fn asked(&self, id: ConversationId) -> Asked {
        let place = self.of(id);
        Asked { place, moves: self.moves(place.cluster) }
    }

    /// Whether the bucket that was found in a place has been there ever since it was asked for there.
    pub(super) fn has_stayed(&self, asked: Asked, now: Place) -> bool {
        now == asked.place && self.moves(now.cluster) == asked.moves
    }

    /// Notes where a bucket is.
    pub(super) fn note(&self, place: Place) {
        let known = usize::try_from(place.bucket).ok().and_then(|bucket| self.map.get(bucket));
        if let Some(known) = known {
            known.store(place.cluster, Ordering::Relaxed);
        }
    }

    /// Notes in which bucket a fork is; nothing, if it is in that of its id.
    pub(super) fn note_fork(&self, id: ConversationId, bucket: Option<u64>) {
        let mut placed = locked(&self.placed);
        let Some(bucket) = bucket else {
            placed.remove(&id);
            return;
        };
        if placed.len() >= PLACES {
            placed.clear();
        }
        placed.insert(id, bucket);
    }

    /// How often buckets had come to a cluster or left it when it was last looked at.
    fn moves(&self, cluster: usize) -> u64 {
        self.moves.get(cluster).map_or(0, |moves| moves.load(Ordering::Acquire))
    }

    /// Notes how often buckets have come to a cluster or left it.
    pub(super) fn note_moves(&self, cluster: usize, seen: u64) {
        if let Some(moves) = self.moves.get(cluster) {
            // It only grows: who looked earlier may note it later.
            moves.fetch_max(seen, Ordering::AcqRel);
        }
    }

    /// How often buckets had moved when each was in a cluster: by cluster.
    pub(super) fn settled(&self) -> Vec<u64> {
        locked(&self.settled).clone()
    }

    /// Notes that each bucket was in a cluster when they had moved so often.
    pub(super) fn settle(&self, moves: Vec<u64>) {
        *locked(&self.settled) = moves;
    }
}
