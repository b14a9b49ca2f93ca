//! Conversations that stay where they are in the list for a moment.
//!
//! A move in the list takes as long as the rest of a small append. So a conversation that moved less than a second ago stays
//! at its place, and its head states how far that is from its last activity. A page of the list looks at these conversations
//! too.

use std::collections::HashSet;
use std::sync::Arc;

use crate::model::ConversationId;
use crate::record::{Head, Lag};

/// The longest time between the place of a conversation and its last activity, in microseconds.
const LAG: u64 = 1_000_000;
/// At most this many conversations lag: each page of the list reads all of their heads.
const MOST: usize = 64;

/// The conversations whose place is not that of their last activity, as stored or as queued.
#[derive(Debug, Default)]
pub(crate) struct Lagging {
    ids: HashSet<ConversationId>,
    /// There is no room for another one before this time.
    full_until: i64,
}

/// The heads of a conversation in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads<'a> {
    pub(crate) queued: Option<&'a Arc<Head>>,
    pub(crate) published: Option<&'a Arc<Head>>,
    /// Nothing may be queued for it now.
    pub(crate) frozen: bool,
}

/// Room for one more conversation.
pub(crate) enum Room {
    Free,
    /// This one has to move first, which has this head.
    After(ConversationId, Arc<Head>),
    None,
}

impl Lagging {
    pub(crate) fn ids(&self) -> impl Iterator<Item = ConversationId> {
        self.ids.iter().copied()
    }

    pub(crate) fn contains(&self, id: ConversationId) -> bool {
        self.ids.contains(&id)
    }

    pub(crate) fn extend(&mut self, ids: impl IntoIterator<Item = ConversationId>) {
        self.ids.extend(ids);
    }

    /// A head of the conversation was published.
    pub(crate) fn publish(&mut self, id: ConversationId, heads: Heads<'_>) {
        if !self.ids.is_empty() && !lags(heads) {
            self.ids.remove(&id);
        }
    }

    /// Whether one more conversation may lag at this time. `heads`: those of a conversation in use.
    pub(crate) fn room<'a>(&mut self, now: i64, heads: impl Fn(ConversationId) -> Option<Heads<'a>>) -> Room {
        if self.ids.len() < MOST {
            return Room::Free;
        }
        if now < self.full_until {
            return Room::None;
        }
        self.ids.retain(|id| heads(*id).is_some_and(lags));
        let mut oldest = now;
        for id in &self.ids {
            let heads = heads(*id).filter(|heads| !heads.frozen);
            let Some(head) = heads.and_then(|heads| heads.queued).filter(|head| is_lagging(head)) else { continue };
            let listed = head.listed();
            if now.abs_diff(listed) >= LAG {
                return Room::After(*id, Arc::clone(head));
            }
            oldest = oldest.min(listed);
        }
        if self.ids.len() < MOST {
            return Room::Free;
        }
        self.full_until = oldest.saturating_add_unsigned(LAG);
        Room::None
    }
}

/// How far a conversation is from its place at this time, if it may stay there. `before`: its queued head.
pub(crate) fn stay(before: &Head, now: i64) -> Option<Lag> {
    Some(now.abs_diff(before.listed())).filter(|lag| (1..LAG).contains(lag)).map(Lag)
}

/// The head of a conversation that has moved to the place of its last activity, if it is not there.
pub(crate) fn caught_up(head: &Arc<Head>) -> Option<Head> {
    is_lagging(head).then(|| Head { lag: Lag::default(), ..Head::clone(head) })
}

fn is_lagging(head: &Arc<Head>) -> bool {
    head.lag != Lag::default()
}

fn lags(heads: Heads<'_>) -> bool {
    [heads.queued, heads.published].into_iter().flatten().any(is_lagging)
}
