//! The conversations that are followed, and what is known of each.

use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex};
use std::task::Waker;

use tokio::sync::Notify;

use crate::log::Wait;
use crate::log::followers::{Followers, News};
use crate::log::locked;
use crate::model::ConversationId;

/// The conversations that are followed.
#[derive(Default)]
pub(super) struct Watched {
    pub(super) state: Mutex<State>,
    /// Something was found.
    pub(super) found: Condvar,
    /// There is somebody to look for, who has not been looked for yet.
    pub(super) wanted: Notify,
}

/// What is known of them.
#[derive(Default)]
pub(super) struct State {
    pub(super) followers: Followers,
    pub(super) known: HashMap<ConversationId, Known>,
    pub(super) is_closed: bool,
    /// How often something new was seen.
    pub(super) changes: u64,
}

/// What is known of a conversation that is followed.
#[derive(Default)]
pub(super) struct Known {
    /// How many wait for it, blocked.
    pub(super) blocked: usize,
    /// Those who are woken when they should ask again.
    pub(super) asking: HashSet<u64>,
    /// Whether it was looked at since it is followed.
    pub(super) is_seen: bool,
    /// Its incarnation and its next seq; nothing, if it is not there.
    head: Option<Head>,
    /// After which change of all it was so.
    since: u64,
}

/// Incarnation and next seq of a conversation.
pub(super) type Head = (u64, u64);

impl State {
    /// What a follower finds.
    pub(super) fn news(&self, wait: &Wait<'_>) -> News {
        match self.known.get(&wait.name.id()).filter(|known| known.is_seen) {
            Some(known) => News::of(known.head, wait, self.is_closed),
            None if self.is_closed => News::Closed,
            None => News::None,
        }
    }

    /// Notes what was seen of a conversation after a change; whether that is new.
    fn see(&mut self, id: ConversationId, head: Option<Head>, after: u64) -> bool {
        let Some(known) = self.known.get_mut(&id) else { return false };
        let is_older = known.since > after
            || matches!((known.head, head), (Some((before, next)), Some((now, now_next))) if before == now && now_next < next);
        if known.is_seen && (known.head == head || is_older) {
            return false;
        }
        self.changes += 1;
        (known.is_seen, known.head, known.since) = (true, head, self.changes);
        self.followers.notify(id);
        true
    }

    /// Forgets a conversation that nobody follows any more.
    pub(super) fn leave(&mut self, id: ConversationId) {
        if self.known.get(&id).is_some_and(|known| known.blocked == 0 && known.asking.is_empty()) {
            self.known.remove(&id);
        }
    }
}

impl Watched {
    /// This process wrote to a conversation.
    pub(super) fn moved(&self, id: ConversationId, incarnation: u64, next_seq: u64) {
        self.see([(id, Some((incarnation, next_seq)))], u64::MAX);
    }

    /// This process deleted a conversation.
    pub(super) fn gone(&self, id: ConversationId) {
        self.see([(id, None)], u64::MAX);
    }

    /// Whether something that was seen after a change was new.
    pub(super) fn see(&self, heads: impl IntoIterator<Item = (ConversationId, Option<Head>)>, after: u64) -> bool {
        let mut state = locked(&self.state);
        let mut is_new = false;
        for (id, head) in heads {
            is_new |= state.see(id, head, after);
        }
        let woken = state.followers.take_woken();
        drop(state);
        if is_new {
            self.found.notify_all();
        }
        woken.into_iter().for_each(Waker::wake);
        is_new
    }

    /// Lets all who follow look again: nothing is written any more.
    pub(super) fn close(&self) {
        let mut state = locked(&self.state);
        state.is_closed = true;
        state.followers.notify_all();
        let woken = state.followers.take_woken();
        drop(state);
        self.found.notify_all();
        woken.into_iter().for_each(Waker::wake);
    }

    /// Wakes one follower, and forgets it.
    pub(super) fn wake(&self, id: ConversationId, follower: u64) {
        let mut state = locked(&self.state);
        let waker = state.followers.forget(id, follower);
        if let Some(known) = state.known.get_mut(&id) {
            known.asking.remove(&follower);
        }
        state.leave(id);
        drop(state);
        self.found.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
