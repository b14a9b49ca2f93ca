//! The conversations that are followed. What this process writes is known at once; what others write, by one look for all
//! followers, which comes less often while nothing happens.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::{sleep, timeout_at};

use super::database::Database;
use super::rows::{self, number};
use super::statement::Statement;
use crate::error::{Error, Result};
use crate::log::followers::{Followers, News};
use crate::log::{Wait, locked};
use crate::model::ConversationId;

/// Between two looks, if the last one found something.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// Between two looks, at most, if they cost nothing.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The pause after a look is so many times as long as the look took: of the database's time looks take a tenth.
const COST: u32 = 9;
/// Between two looks, at most, whatever they cost.
const COSTLIEST_PAUSE: Duration = Duration::from_secs(10);
/// Others that come meanwhile are looked for together.
const TOGETHER: Duration = Duration::from_millis(2);
/// Conversations that one statement looks at.
const AT_ONCE: usize = 10_000;

/// The conversations that are followed.
pub(super) struct Followed {
    database: Arc<Database>,
    state: Mutex<State>,
    /// Something was found.
    found: Condvar,
    /// There is somebody to look for, who has not been looked for yet.
    wanted: Notify,
}

/// What is known of them.
#[derive(Default)]
struct State {
    followers: Followers,
    known: HashMap<ConversationId, Known>,
    is_closed: bool,
    /// How often something new was seen.
    changes: u64,
}

/// What is known of a conversation that is followed.
#[derive(Default)]
struct Known {
    /// How many wait for it, blocked.
    blocked: usize,
    /// Those who are woken when they should ask again.
    asking: HashSet<u64>,
    /// Whether it was looked at since it is followed.
    is_seen: bool,
    /// Its incarnation and its next seq; nothing, if it is not there.
    head: Option<Head>,
    /// After which change of all it was so.
    since: u64,
}

/// Incarnation and next seq of a conversation.
type Head = (u64, u64);

impl Followed {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database, state: Mutex::default(), found: Condvar::new(), wanted: Notify::new() }
    }

    /// Waits until a conversation's incarnation has an entry after a seq. False: the timeout passed, or it was stopped.
    pub(super) fn wait_for(&self, wait: &Wait<'_>) -> Result<bool> {
        let id = wait.name.id();
        let until = Instant::now().checked_add(wait.timeout);
        if wait.stopped.load(Ordering::Acquire) {
            return Ok(false);
        }
        locked(&self.state).known.entry(id).or_default().blocked += 1;
        let looked = self.look(id);
        let mut state = locked(&self.state);
        let result = match looked {
            Err(error) => Err(error),
            Ok(()) => loop {
                if let Some(answer) = state.answer(wait) {
                    break answer.map(|()| true);
                }
                let left = until.map_or(LONGEST_PAUSE, |until| until.saturating_duration_since(Instant::now()));
                if left.is_zero() || wait.stopped.load(Ordering::Acquire) {
                    break Ok(false);
                }
                self.wanted.notify_one();
                state = self.found.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            },
        };
        if let Some(known) = state.known.get_mut(&id) {
            known.blocked = known.blocked.saturating_sub(1);
        }
        state.leave(id);
        result
    }

    /// Looks at one conversation now.
    pub(super) fn look(&self, id: ConversationId) -> Result<()> {
        let after = locked(&self.state).changes;
        let head = self.database.query(look_at(&[id]))?.first().map(head_of).transpose()?;
        self.see([(id, head.map(|(_, head)| head))], after);
        Ok(())
    }

    /// As [`Followed::wait_for`], for a follower that is woken when it should ask again.
    pub(super) fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        let id = wait.name.id();
        // A waker is the caller's code: it is cloned and dropped without the lock.
        let waker = waker.clone();
        let mut state = locked(&self.state);
        let known = state.known.entry(id).or_default();
        known.asking.insert(follower);
        if !known.is_seen {
            self.wanted.notify_one();
        }
        match state.answer(wait) {
            Some(answer) => Poll::Ready(answer),
            None => {
                let replaced = state.followers.add(id, follower, waker);
                drop(state);
                drop(replaced);
                Poll::Pending
            }
        }
    }

    /// Looks for news of all conversations that are followed.
    pub(super) async fn look_for_news(followed: Arc<Self>) {
        let mut pause = SHORTEST_PAUSE;
        loop {
            let begun = Instant::now();
            let (has_some, is_new) = followed.look_at_those(|_| true).await;
            pause = pause_after(pause, is_new, begun.elapsed());
            if !has_some {
                followed.wanted.notified().await;
                sleep(TOGETHER).await;
                pause = SHORTEST_PAUSE;
                continue;
            }
            let until = tokio::time::Instant::now() + pause;
            while timeout_at(until, followed.wanted.notified()).await.is_ok() {
                sleep(TOGETHER).await;
                followed.look_at_those(|known| !known.is_seen).await;
            }
        }
    }

    /// Looks at some of the conversations that are followed: whether there are such, and whether one had something new.
    async fn look_at_those(&self, is_wanted: impl Fn(&Known) -> bool) -> (bool, bool) {
        let ids: Vec<ConversationId> =
            locked(&self.state).known.iter().filter(|(_, known)| is_wanted(known)).map(|(id, _)| *id).collect();
        let mut is_new = false;
        for ids in ids.chunks(AT_ONCE) {
            match self.look_at_once(ids).await {
                Ok(found) => is_new |= found,
                Err(error) => tracing::warn!("followers get no news: {error}"),
            }
        }
        (!ids.is_empty(), is_new)
    }

    async fn look_at_once(&self, ids: &[ConversationId]) -> Result<bool> {
        let after = locked(&self.state).changes;
        let rows = self.database.calls().query(&look_at(ids)).await?;
        let mut heads: HashMap<_, _> = rows.iter().map(head_of).collect::<Result<_>>()?;
        Ok(self.see(ids.iter().map(|id| (*id, heads.remove(id))), after))
    }

    /// This process wrote to a conversation.
    pub(super) fn moved(&self, id: ConversationId, incarnation: u64, next_seq: u64) {
        self.see([(id, Some((incarnation, next_seq)))], u64::MAX);
    }

    /// This process deleted a conversation.
    pub(super) fn gone(&self, id: ConversationId) {
        self.see([(id, None)], u64::MAX);
    }

    /// Whether something that was seen after a change was new.
    fn see(&self, heads: impl IntoIterator<Item = (ConversationId, Option<Head>)>, after: u64) -> bool {
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

impl State {
    /// What a follower is answered; nothing, while there is nothing new.
    fn answer(&self, wait: &Wait<'_>) -> Option<Result<()>> {
        let news = match self.known.get(&wait.name.id()).filter(|known| known.is_seen) {
            Some(known) => News::of(known.head, wait, self.is_closed),
            None if self.is_closed => News::Closed,
            None => News::None,
        };
        match news {
            News::Gone => Some(Err(Error::no_conversation(wait.name))),
            News::Closed => Some(Err(Error::Closed)),
            News::Some => Some(Ok(())),
            News::None => None,
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
    fn leave(&mut self, id: ConversationId) {
        if self.known.get(&id).is_some_and(|known| known.blocked == 0 && known.asking.is_empty()) {
            self.known.remove(&id);
        }
    }
}

/// The pause after a look that took so long.
fn pause_after(pause: Duration, is_new: bool, took: Duration) -> Duration {
    let pause = if is_new { SHORTEST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
    pause.max((took * COST).min(COSTLIEST_PAUSE))
}

fn look_at(ids: &[ConversationId]) -> Statement {
    const SQL: &str =
        "SELECT conv_id, incarnation, next_seq FROM cs_conversation WHERE conv_id = ANY ($1) AND NOT deleted";
    let ids: Vec<Vec<u8>> = ids.iter().map(|id| id.as_bytes().to_vec()).collect();
    Statement::repeatable(SQL).with(ids)
}

fn head_of(row: &tokio_postgres::Row) -> Result<(ConversationId, Head)> {
    Ok((rows::id(row, "conv_id")?, (number(row, "incarnation")?, number(row, "next_seq")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_costly_look_comes_seldom() {
        let millis = Duration::from_millis;
        for (pause, is_new, took, wanted) in [
            (50, true, 0, 50),
            (50, false, 1, 100),
            (800, false, 1, 1_000),
            // Of 10,000 conversations.
            (50, true, 59, 531),
            (50, false, 59, 531),
            (1_000, false, 59, 1_000),
            (1_000, true, 1_000, 9_000),
            (1_000, true, 60_000, 10_000),
        ] {
            let found = pause_after(millis(pause), is_new, millis(took));
            assert_eq!(found, millis(wanted), "{pause} {is_new} {took}");
            assert!(took > 1_000 || took * 10 <= took + wanted);
        }
    }
}
