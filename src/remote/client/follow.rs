//! Who follows conversations. A thread for each that is followed asks the server, which answers once there is something new.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::http::{Again, Server};
use crate::error::{Error, Result};
use crate::log::followers::Followers;
use crate::log::{Wait, locked};
use crate::model::{ConversationId, Name};
use crate::remote::call;
use crate::remote::call::Waited;

/// How long the server may wait before it answers that there is nothing new.
const LONGEST: Duration = Duration::from_secs(20);

/// The conversations that are followed.
#[derive(Debug)]
pub(super) struct Followed {
    server: Arc<Server>,
    state: Mutex<State>,
    /// Something was found, or somebody is to look again.
    found: Condvar,
}

#[derive(Debug, Default)]
struct State {
    watches: HashMap<Key, Watch>,
    followers: Followers,
    is_closed: bool,
}

/// A conversation that is followed: the id and the owner that it is asked by, and its incarnation.
type Key = (ConversationId, Option<String>, u64);

#[derive(Debug, Default)]
struct Watch {
    /// The last seq that is there, as far as is known.
    last_seq: u64,
    /// Why nobody asks any more.
    failed: Option<Failed>,
    is_asking: bool,
    blocked: usize,
    polling: HashSet<u64>,
}

#[derive(Clone, Debug)]
enum Failed {
    Gone,
    Closed,
    Broken(String),
}

impl Followed {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self { server, state: Mutex::default(), found: Condvar::new() }
    }

    /// Waits until a conversation's incarnation has an entry after a seq. False: the timeout passed, or it was stopped.
    pub(super) fn wait_for(self: &Arc<Self>, wait: &Wait<'_>) -> Result<bool> {
        if wait.stopped.load(Ordering::Acquire) {
            return Ok(false);
        }
        if wait.timeout.is_zero() {
            return self.look(wait);
        }
        let until = Instant::now().checked_add(wait.timeout);
        let key = key(wait);
        let mut state = locked(&self.state);
        let watch = state.watches.entry(key.clone()).or_default();
        watch.blocked += 1;
        self.ask_for(&key, watch, wait);
        let result = loop {
            if state.is_closed {
                break None;
            }
            if let Some(answer) = state.watches.get(&key).and_then(|watch| watch.answer(wait)) {
                break Some(answer.map(|()| true));
            }
            let left = until.map_or(LONGEST, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() || wait.stopped.load(Ordering::Acquire) {
                break Some(Ok(false));
            }
            state = self.found.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        };
        if let Some(watch) = state.watches.get_mut(&key) {
            watch.blocked = watch.blocked.saturating_sub(1);
        }
        drop(state);
        // A log that is closed still gives what there is.
        result.unwrap_or_else(|| self.look(wait))
    }

    /// Asks once.
    fn look(&self, wait: &Wait<'_>) -> Result<bool> {
        let found = self.ask(wait.name, wait.incarnation, wait.seq, Duration::ZERO)?;
        if found.is_none() && locked(&self.state).is_closed { Err(Error::Closed) } else { Ok(found.is_some()) }
    }

    fn ask(&self, name: &Name, incarnation: u64, seq: u64, patience: Duration) -> Result<Option<u64>> {
        let milliseconds = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let (Waited { last_seq }, _) = self.server.call(
            "wait",
            &call::Wait { name: name.into(), incarnation, seq, milliseconds },
            &[],
            Again::Read,
        )?;
        Ok(last_seq)
    }

    /// Sees to it that somebody asks for a conversation.
    fn ask_for(self: &Arc<Self>, key: &Key, watch: &mut Watch, wait: &Wait<'_>) {
        watch.last_seq = watch.last_seq.max(wait.seq);
        if watch.is_asking {
            return;
        }
        watch.failed = None;
        let (followed, name, of) = (Arc::clone(self), wait.name.clone(), key.clone());
        let spawned = thread::Builder::new().name("convo-follow".to_owned()).spawn(move || followed.follow(&name, &of));
        match spawned {
            Ok(_) => watch.is_asking = true,
            Err(error) => watch.failed = Some(Failed::Broken(error.to_string())),
        }
    }

    /// Asks until nobody wants to know.
    fn follow(&self, name: &Name, key: &Key) {
        loop {
            let mut state = locked(&self.state);
            let is_closed = state.is_closed;
            let Some(watch) = state.watches.get_mut(key) else { return };
            if is_closed || !watch.is_wanted() {
                state.watches.remove(key);
                return;
            }
            let seq = watch.last_seq;
            drop(state);
            let asked = self.ask(name, key.2, seq, LONGEST);
            let mut state = locked(&self.state);
            let Some(watch) = state.watches.get_mut(key) else { return };
            let is_over = asked.is_err();
            match asked {
                Ok(None) => continue,
                Ok(Some(last_seq)) => watch.last_seq = watch.last_seq.max(last_seq),
                Err(error) => {
                    watch.is_asking = false;
                    watch.failed = Some(match error {
                        Error::NotFound { .. } => Failed::Gone,
                        Error::Closed => Failed::Closed,
                        error => Failed::Broken(error.to_string()),
                    });
                }
            }
            state.followers.notify(key.0);
            self.notify(state);
            if is_over {
                return;
            }
        }
    }

    /// As [`Followed::wait_for`], for a follower that is woken when it should ask again.
    pub(super) fn poll_for(self: &Arc<Self>, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        // A waker is the caller's code: it is cloned and dropped without the lock.
        let waker = waker.clone();
        let key = key(wait);
        let mut state = locked(&self.state);
        if state.is_closed {
            return Poll::Ready(Err(Error::Closed));
        }
        let watch = state.watches.entry(key.clone()).or_default();
        // A failure that another follower was given is not the answer to this one.
        if watch.polling.insert(follower) || watch.answer(wait).is_none() {
            self.ask_for(&key, watch, wait);
        }
        match watch.answer(wait) {
            Some(Err(error)) => {
                // If it asks once more, somebody asks the server again.
                watch.polling.remove(&follower);
                Poll::Ready(Err(error))
            }
            Some(Ok(())) => Poll::Ready(Ok(())),
            None => {
                let replaced = state.followers.add(key.0, follower, waker);
                drop(state);
                drop(replaced);
                Poll::Pending
            }
        }
    }

    /// Lets one follower look again, and forgets it until it asks again.
    pub(super) fn wake(&self, name: &Name, follower: u64) {
        let mut state = locked(&self.state);
        for watch in state.watches.values_mut() {
            watch.polling.remove(&follower);
        }
        let waker = state.followers.forget(name.id(), follower);
        drop(state);
        self.found.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn close(&self) {
        let mut state = locked(&self.state);
        state.is_closed = true;
        state.followers.notify_all();
        self.notify(state);
    }

    /// Wakes those who are to look again, without the lock.
    fn notify(&self, mut state: MutexGuard<'_, State>) {
        let woken = state.followers.take_woken();
        drop(state);
        self.found.notify_all();
        woken.into_iter().for_each(Waker::wake);
    }
}

fn key(wait: &Wait<'_>) -> Key {
    (wait.name.id(), wait.name.owner().map(str::to_owned), wait.incarnation)
}

impl Watch {
    fn answer(&self, wait: &Wait<'_>) -> Option<Result<()>> {
        if self.last_seq > wait.seq {
            return Some(Ok(()));
        }
        self.failed.as_ref().map(|failed| match failed {
            Failed::Gone => Err(Error::no_conversation(wait.name)),
            Failed::Closed => Err(Error::Closed),
            Failed::Broken(text) => Err(Error::io("follow a conversation")(std::io::Error::other(text.clone()))),
        })
    }

    fn is_wanted(&self) -> bool {
        self.blocked > 0 || !self.polling.is_empty()
    }
}
