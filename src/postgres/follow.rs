//! Who follows conversations. What this process writes is known at once; what others write, by one look for all followers,
//! which comes less often while nothing happens.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use super::Postgres;
use super::rows::{self, number};
use super::shared::Shared;
use super::value::Statement;
use super::watched::Head;
use crate::error::{Error, Result};
use crate::log::Wait;
use crate::log::followers::News;
use crate::log::locked;
use crate::model::ConversationId;

/// Between two looks, if the last one found something.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// Between two looks, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Conversations that one statement looks at.
const AT_ONCE: usize = 10_000;

fn answer(news: &News, wait: &Wait<'_>) -> Option<Result<()>> {
    match news {
        News::Gone => Some(Err(Error::no_conversation(wait.name))),
        News::Closed => Some(Err(Error::Closed)),
        News::Some => Some(Ok(())),
        News::None => None,
    }
}

impl Postgres {
    /// Looks for what followers of a conversation wait for, now.
    pub(crate) fn look_again(&self, id: ConversationId) -> Result<()> {
        self.shared.look(id)
    }
}

impl Shared {
    /// Waits until a conversation's incarnation has an entry after a seq. False: the timeout passed, or it was stopped.
    pub(super) fn wait_for(&self, wait: &Wait<'_>) -> Result<bool> {
        let id = wait.name.id();
        let until = Instant::now().checked_add(wait.timeout);
        if wait.stopped.load(Ordering::Acquire) {
            return Ok(false);
        }
        locked(&self.watched.state).known.entry(id).or_default().blocked += 1;
        let looked = self.look(id);
        let mut state = locked(&self.watched.state);
        let result = match looked {
            Err(error) => Err(error),
            Ok(()) => loop {
                if let Some(answer) = answer(&state.news(wait), wait) {
                    break answer.map(|()| true);
                }
                let left = until.map_or(LONGEST_PAUSE, |until| until.saturating_duration_since(Instant::now()));
                if left.is_zero() || wait.stopped.load(Ordering::Acquire) {
                    break Ok(false);
                }
                self.watched.wanted.notify_one();
                state = self.watched.found.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            },
        };
        if let Some(known) = state.known.get_mut(&id) {
            known.blocked = known.blocked.saturating_sub(1);
        }
        state.leave(id);
        result
    }

    /// Looks at one conversation now.
    fn look(&self, id: ConversationId) -> Result<()> {
        let after = locked(&self.watched.state).changes;
        let head = self.database.query(look_at(&[id]))?.first().map(head_of).transpose()?;
        self.watched.see([(id, head.map(|(_, head)| head))], after);
        Ok(())
    }

    /// As [`Shared::wait_for`], for a follower that is woken when it should ask again.
    pub(super) fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        let id = wait.name.id();
        // A waker is the caller's code: it is cloned and dropped without the lock.
        let waker = waker.clone();
        let mut state = locked(&self.watched.state);
        let known = state.known.entry(id).or_default();
        known.asking.insert(follower);
        if !known.is_seen {
            self.watched.wanted.notify_one();
        }
        match answer(&state.news(wait), wait) {
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
    pub(super) async fn look_for_news(shared: Arc<Self>) {
        let mut pause = SHORTEST_PAUSE;
        loop {
            let ids: Vec<ConversationId> = locked(&shared.watched.state).known.keys().copied().collect();
            let mut is_new = false;
            for ids in ids.chunks(AT_ONCE) {
                match shared.look_at_once(ids).await {
                    Ok(found) => is_new |= found,
                    Err(error) => tracing::warn!("followers get no news: {error}"),
                }
            }
            pause = if is_new { SHORTEST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            if ids.is_empty() {
                shared.watched.wanted.notified().await;
                pause = SHORTEST_PAUSE;
            } else if timeout(pause, shared.watched.wanted.notified()).await.is_ok() {
                // Others that come now are looked for together.
                sleep(Duration::from_millis(2)).await;
            }
        }
    }

    async fn look_at_once(&self, ids: &[ConversationId]) -> Result<bool> {
        let after = locked(&self.watched.state).changes;
        let rows = self.database.calls().query(&look_at(ids)).await?;
        let mut heads: HashMap<_, _> = rows.iter().map(head_of).collect::<Result<_>>()?;
        Ok(self.watched.see(ids.iter().map(|id| (*id, heads.remove(id))), after))
    }
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
