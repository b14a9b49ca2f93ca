//! The conversations that are followed, and what is known of them.

use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::task::Waker;

use super::lock::locked;
use crate::error::{Error, Result};
use crate::log::Wait;
use crate::log::followers::Followers;
use crate::model::ConversationId;

/// The conversations that are followed.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) state: Mutex<State>,
    /// Something was found, or somebody is to look again.
    pub(super) found: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) watches: HashMap<Key, Watch>,
    pub(super) followers: Followers,
    pub(super) is_closed: bool,
}

/// A conversation that is followed: the id and the owner that it is asked by, and its incarnation.
pub(super) type Key = (ConversationId, Option<String>, u64);

#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The last seq that is there, as far as is known.
    pub(super) last_seq: u64,
    /// Why nobody asks any more.
    pub(super) failed: Option<Failed>,
    pub(super) is_asking: bool,
    pub(super) blocked: usize,
    pub(super) polling: HashSet<u64>,
}

#[derive(Clone, Debug)]
pub(super) enum Failed {
    Gone,
    Closed,
    Broken(String),
}

pub(super) fn key(wait: &Wait<'_>) -> Key {
    (wait.name.id(), wait.name.owner().map(str::to_owned), wait.incarnation)
}

impl Watch {
    pub(super) fn answer(&self, wait: &Wait<'_>) -> Option<Result<()>> {
        if self.last_seq > wait.seq {
            return Some(Ok(()));
        }
        self.failed.as_ref().map(|failed| match failed {
            Failed::Gone => Err(Error::no_conversation(wait.name)),
            Failed::Closed => Err(Error::Closed),
            Failed::Broken(text) => Err(Error::io("follow a conversation")(std::io::Error::other(text.clone()))),
        })
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.blocked > 0 || !self.polling.is_empty()
    }
}

impl Watched {
    pub(super) fn close(&self) {
        let mut state = locked(&self.state);
        state.is_closed = true;
        state.followers.notify_all();
        self.wake(state);
    }

    /// Wakes those who are to look again, without the lock.
    pub(super) fn wake(&self, mut state: MutexGuard<'_, State>) {
        let woken = state.followers.take_woken();
        drop(state);
        self.found.notify_all();
        woken.into_iter().for_each(Waker::wake);
    }
}
