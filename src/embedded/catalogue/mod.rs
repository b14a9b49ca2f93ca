//! Which conversations there are: their heads, their places in the list, what readers see of them.
//!
//! [`Catalogue`] reads what the log's lock protects together with the engine. A reader pins a conversation, and gets its head as
//! it is published, never half of a commit.

mod list;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use crate::embedded::commit::Committer;
use crate::embedded::engine::Engine;
use crate::embedded::state::{Existence, State};
use crate::embedded::stored;
use crate::error::{Error, Result};
use crate::log::followers::News;
use crate::log::{View, Wait};
use crate::model::ConversationId;
use crate::record::Head;

/// Slots of idle conversations that are kept, so that their heads need not be read again.
const IDLE_SLOTS: usize = 10_000;

/// What readers see.
#[derive(Debug)]
pub(crate) struct Catalogue {
    engine: Arc<dyn Engine>,
    commit: Arc<Committer>,
    /// Which opening of the store this is.
    epoch: u64,
}

/// Keeps a conversation's slot in memory.
pub(crate) struct Pin<'a> {
    commit: &'a Committer,
    id: ConversationId,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.commit.lock().slots.unpin(self.id);
    }
}

impl Catalogue {
    pub(crate) fn new(engine: Arc<dyn Engine>, commit: Arc<Committer>, epoch: u64) -> Self {
        Self { engine, commit, epoch }
    }

    /// Loads the conversation's slot and keeps it in memory.
    pub(crate) fn pin(&self, id: ConversationId) -> Result<Pin<'_>> {
        let mut state = self.commit.lock();
        while !state.slots.pin(id) {
            let generation = state.slots.generation();
            drop(state);
            let read = self.stored_head(id);
            state = self.commit.lock();
            if state.slots.generation() == generation && state.slots.get(id).is_none() {
                let (head, reserved) = read?;
                state.evict(IDLE_SLOTS);
                state.slots.load(id, head, reserved);
            }
        }
        Ok(Pin { commit: &self.commit, id })
    }

    /// A conversation's head as the engine has it, and whether its name is reserved.
    fn stored_head(&self, id: ConversationId) -> Result<(Option<Arc<Head>>, bool)> {
        let head = stored::sound_head(&*self.engine, id)?.map(Arc::new);
        let reserved = head.is_none() && stored::tombstone(&*self.engine, id)?.is_some();
        Ok((head, reserved))
    }

    /// What there is of a conversation, as its slot has it: no half of a commit is seen.
    pub(crate) fn existence(&self, id: ConversationId) -> Result<Existence> {
        let _pin = self.pin(id)?;
        Ok(self.commit.lock().slots.slot(id).existence())
    }

    /// The head that readers see.
    pub(crate) fn published_head(&self, id: ConversationId) -> Result<Option<Arc<Head>>> {
        let _pin = self.pin(id)?;
        Ok(self.commit.lock().slots.slot(id).published().cloned())
    }

    /// What readers may see of a conversation now. What is written later belongs to a later moment, and perhaps to
    /// another conversation of that name.
    pub(crate) fn view(&self, id: ConversationId) -> Result<Option<View>> {
        let _pin = self.pin(id)?;
        let mut state = self.commit.lock();
        let (through, commit) = (state.readable_through(), state.last_commit().number);
        let slot = state.slots.slot(id);
        let live = slot.open_messages().collect();
        Ok(slot.published().cloned().map(|head| View { id, head, live, epoch: self.epoch, commit, through }))
    }

    /// Whether something that a view shows may have been redacted after a commit.
    pub(crate) fn is_redacted_since(&self, view: &View, commit: u64) -> Result<bool> {
        if self.commit.lock().redactions.latest() <= commit {
            return Ok(false);
        }
        let segments = stored::segments(&*self.engine, view.id, &view.head)?;
        let logs = segments.iter().map(|segment| segment.conversation);
        Ok(self.commit.lock().redactions.concern(commit, logs))
    }

    /// Whether the conversation still is the one of this head. Missing data is no damage if the conversation was
    /// deleted meanwhile, and perhaps created again.
    pub(crate) fn is_still(&self, id: ConversationId, head: &Head) -> Result<bool> {
        let now = self.published_head(id)?;
        Ok(now.is_some_and(|now| now.incarnation == head.incarnation))
    }

    /// Waits until the published head of a conversation's incarnation is past a seq. False: the timeout passed, or the
    /// wait was stopped.
    ///
    /// # Errors
    /// `NotFound` if the conversation was deleted, whatever was created under its name since; `Closed` if the store is
    /// closed and there is nothing new.
    pub(crate) fn wait_for(&self, wait: &Wait<'_>) -> Result<bool> {
        let _pin = self.pin(wait.name.id())?;
        let mut found = News::None;
        self.commit.wait_while(wait.timeout, |state| {
            found = news(state, wait);
            matches!(found, News::None) && !wait.stopped.load(Ordering::Acquire)
        });
        match found {
            News::Gone => Err(Error::no_conversation(wait.name)),
            News::Closed => Err(Error::Closed),
            News::Some => Ok(true),
            News::None => Ok(false),
        }
    }

    /// As [`Catalogue::wait_for`], for a follower that is woken when it should ask again.
    pub(crate) fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        let id = wait.name.id();
        // A waker is the caller's code: it is cloned and dropped without the lock.
        let waker = waker.clone();
        let _pin = match self.pin(id) {
            Ok(pin) => pin,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let mut state = self.commit.lock();
        match news(&mut state, wait) {
            News::Gone => Poll::Ready(Err(Error::no_conversation(wait.name))),
            News::Closed => Poll::Ready(Err(Error::Closed)),
            News::Some => Poll::Ready(Ok(())),
            News::None => {
                let replaced = state.followers.add(id, follower, waker);
                drop(state);
                drop(replaced);
                Poll::Pending
            }
        }
    }

    /// Wakes one follower, and forgets it.
    pub(crate) fn wake(&self, id: ConversationId, follower: u64) {
        let waker = self.commit.lock().followers.forget(id, follower);
        self.commit.notify_published();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// What a follower of a pinned conversation finds.
fn news(state: &mut State, wait: &Wait<'_>) -> News {
    let is_closed = state.life.is_closed();
    let published = state.slots.slot(wait.name.id()).published();
    News::of(published.map(|head| (head.incarnation, head.next_seq)), wait, is_closed)
}
