//! Where a conversation is: asked where it was last seen, and looked for if the answer may be wrong.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Sharded;
use super::member::{BucketState, Cluster, bucket_of};
use super::places::Place;
use crate::error::{Error, Result};
use crate::model::{ConversationId, Name};
use crate::postgres::Postgres;

/// The pause before the first repetition of a call; each is twice as long as the one before it.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// What a look for a conversation found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    At {
        place: Place,
        /// As a fork that is not in the bucket of its id.
        token: Option<u64>,
        /// The bucket can be read there, and not be written.
        is_frozen: bool,
    },
    /// The bucket has left a cluster, and has not arrived in the other one.
    Moving(u64),
}

/// Tries again while a bucket moves.
pub(super) struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    /// Whether it has taken too long.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Waits a moment; fails once it has taken too long.
    pub(super) fn again(&mut self, bucket: u64) -> Result<()> {
        if Instant::now() + self.pause >= self.until {
            return Err(Error::Busy(format!("bucket {bucket} is being moved to another cluster: try again")));
        }
        sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

impl Sharded {
    pub(super) fn patience(&self) -> Patience {
        Patience { until: Instant::now() + self.patience, pause: FIRST_PAUSE }
    }

    pub(super) fn cluster(&self, cluster: usize) -> Result<&Cluster> {
        self.clusters.get(cluster).ok_or_else(|| {
            Error::InvalidInput(format!(
                "a bucket is in cluster {cluster}, which was not in the list when the store was opened: open it again"
            ))
        })
    }

    pub(super) fn log(&self, cluster: usize) -> Result<&Postgres> {
        self.cluster(cluster).map(Cluster::log)
    }

    /// Asks about a conversation where it is. `is_nothing`: an answer that would also be given where it is not.
    pub(super) fn ask<T>(
        &self,
        id: ConversationId,
        call: impl FnMut(&Postgres) -> Result<T>,
        is_nothing: impl Fn(&T) -> bool,
    ) -> Result<T> {
        self.ask_until(id, call, is_nothing, |_, _| Ok(false))
    }

    /// As [`Sharded::ask`], for a call that may make the conversation.
    pub(super) fn ask_to_make<T>(&self, name: &Name, call: impl FnMut(&Postgres) -> Result<T>) -> Result<T> {
        self.ask_until(name.id(), call, |_| false, |place, token| self.forget_place(name, place, token))
    }

    /// `forget`: whether the place of a fork that is no more was forgotten, so that the call is to be repeated.
    fn ask_until<T>(
        &self,
        id: ConversationId,
        mut call: impl FnMut(&Postgres) -> Result<T>,
        is_nothing: impl Fn(&T) -> bool,
        forget: impl Fn(Place, u64) -> Result<bool>,
    ) -> Result<T> {
        let mut patience = self.patience();
        loop {
            let asked = self.places.asked(id);
            let place = asked.place;
            let answer = call(self.log(place.cluster)?);
            let is_busy = matches!(&answer, Err(Error::Busy(_)));
            let may_be_wrong = match &answer {
                Ok(answer) => is_nothing(answer),
                Err(error) => may_be_wrong(error),
            };
            if !may_be_wrong {
                return answer;
            }
            match self.find(id) {
                Err(failed) => return answer.and(Err(failed)),
                // Other buckets of a cluster may move for as long as one likes.
                Ok(Found::At { place: now, .. }) if !self.places.has_stayed(asked, now) && !patience.is_over() => {}
                Ok(Found::At { token: Some(token), is_frozen: false, .. }) if is_busy => {
                    if !forget(place, token)? {
                        return answer;
                    }
                }
                Ok(Found::At { is_frozen: true, .. }) if is_busy => patience.again(place.bucket)?,
                Ok(Found::At { .. }) => return answer,
                Ok(Found::Moving(bucket)) => patience.again(bucket)?,
            }
        }
    }

    /// Looks for a conversation: in the bucket of its id, or, if that says so, as a fork in another one.
    pub(super) fn find(&self, id: ConversationId) -> Result<Found> {
        let home = bucket_of(id);
        let (found, placed) = self.follow(home, id)?;
        self.places.note_fork(id, placed.map(|(bucket, _)| bucket));
        let Some((bucket, token)) = placed else { return Ok(found) };
        Ok(match self.follow(bucket, id)?.0 {
            Found::At { place, is_frozen, .. } => Found::At { place, token: Some(token), is_frozen },
            moving => moving,
        })
    }

    /// Looks for a bucket, from cluster to cluster, and for what it says of an id.
    fn follow(&self, bucket: u64, id: ConversationId) -> Result<(Found, Option<(u64, u64)>)> {
        let mut cluster = self.places.at(bucket).cluster;
        for _ in 0..=self.clusters.len() {
            let seen = self.cluster(cluster)?.whereabouts(bucket, id)?;
            self.places.note_moves(cluster, seen.moves);
            match (seen.state, seen.peer) {
                (Some(state), _) if state.is_readable() => {
                    let place = Place { bucket, cluster };
                    self.places.note(place);
                    let is_frozen = state == BucketState::Leaving;
                    return Ok((Found::At { place, token: None, is_frozen }, seen.placed));
                }
                // Where it went, or where it comes from.
                (Some(_), Some(peer)) => cluster = usize::try_from(peer).unwrap_or(usize::MAX),
                _ => break,
            }
        }
        Ok((Found::Moving(bucket), None))
    }
}

/// Whether an error may come from asking where the conversation is not. Nothing of the call took effect then.
pub(super) const fn may_be_wrong(error: &Error) -> bool {
    matches!(
        error,
        Error::NotFound { .. }
            | Error::StaleHead { .. }
            | Error::NameTaken { .. }
            | Error::SharedByForks { .. }
            | Error::CursorOutOfRange { .. }
            | Error::StaleCursor { .. }
            | Error::MessageClosed { .. }
            | Error::Busy(_)
            | Error::Corrupt { .. }
    )
}
