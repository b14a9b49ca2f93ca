//! The followers of conversations: blocked threads, or wakers.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use crate::embedded::commit::state::{Phase, State};
use crate::embedded::core::Core;
use crate::error::{Error, Result};
use crate::log::Wait;
use crate::log::followers::News;
use crate::model::ConversationId;

impl State {
    fn news(&mut self, wait: &Wait<'_>) -> News {
        let is_closed = self.phase == Phase::Closed;
        let published = self.slot(wait.name.id()).published.as_ref();
        News::of(published.map(|head| (head.incarnation, head.next_seq)), wait, is_closed)
    }
}

impl Core {
    /// Waits until the published head of a conversation's incarnation is past a seq. False: the timeout passed, or the
    /// wait was stopped.
    ///
    /// # Errors
    /// `NotFound` if the conversation was deleted, whatever was created under its name since; `Closed` if the store is
    /// closed and there is nothing new.
    pub(crate) fn wait_for(&self, wait: &Wait<'_>) -> Result<bool> {
        let _pin = self.pin(wait.name.id())?;
        let mut state = self.lock();
        state.tailing += 1;
        let mut news = News::None;
        let waited = self.published.wait_timeout_while(state, wait.timeout, |state| {
            news = state.news(wait);
            matches!(news, News::None) && !wait.stopped.load(Ordering::Acquire)
        });
        (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.tailing -= 1;
        drop(state);
        match news {
            News::Gone => Err(Error::no_conversation(wait.name)),
            News::Closed => Err(Error::Closed),
            News::Some => Ok(true),
            News::None => Ok(false),
        }
    }

    /// As [`Core::wait_for`], for a follower that is woken when it should ask again.
    pub(crate) fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        let id = wait.name.id();
        // A waker is the caller's code: it is cloned and dropped without the lock.
        let waker = waker.clone();
        let _pin = match self.pin(id) {
            Ok(pin) => pin,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let mut state = self.lock();
        match state.news(wait) {
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
        let waker = self.lock().followers.forget(id, follower);
        self.published.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Wakes all followers.
    pub(crate) fn wake_all(&self) {
        let mut state = self.lock();
        state.followers.notify_all();
        let woken = state.followers.take_woken();
        drop(state);
        self.published.notify_all();
        woken.into_iter().for_each(Waker::wake);
    }
}
