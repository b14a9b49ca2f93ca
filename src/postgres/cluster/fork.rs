//! Forks: each is in the bucket of its parent. The place of its id says so, where that is another one.

use tokio_postgres::Row;

use super::Sharded;
use super::member::{Cluster, bucket_of};
use super::places::Place;
use super::route::{Found, may_be_wrong};
use crate::error::{Error, Result};
use crate::log::limits::check_key;
use crate::log::{ForkAt, Log, fork};
use crate::model::{ConversationId, Name};
use crate::postgres::rows::Outcome;
use crate::postgres::rows::{number, some_number};
use crate::postgres::statement::Statement;

impl Sharded {
    /// Makes a conversation that shares the entries up to `at`.
    pub(super) fn fork(&self, parent: &Name, at: ForkAt, child: &Name) -> Result<()> {
        check_key(child)?;
        let view = self.view(parent)?.ok_or_else(|| Error::no_conversation(parent))?;
        // The id of a key depends on its owner.
        let child = &match child.owner() {
            Some(_) => child.clone(),
            None => child.clone().with_owner(view.head.owner.as_str()),
        };
        let id = child.id();
        // Before the name is looked at, as in a store of one cluster.
        let last = view.last_seq();
        fork::fork_point(parent, last, at.seq)?;
        if id == view.id {
            return Err(Error::NameTaken { conversation: child.clone(), actual: last });
        }
        let mut patience = self.patience();
        loop {
            let asked = self.places.asked(view.id);
            let place = asked.place;
            let forked = if bucket_of(id) == place.bucket {
                self.log(place.cluster)?.fork(parent, at, child)
            } else {
                self.fork_elsewhere(parent, at, child, place)
            };
            let error = match forked {
                Err(error) if may_be_wrong(&error) => error,
                forked => return forked,
            };
            let (parents, own) = (self.find(view.id)?, self.find(id)?);
            match (parents, own) {
                (Found::Moving(bucket), _) | (_, Found::Moving(bucket)) => patience.again(bucket)?,
                (Found::At { place: now, .. }, _) if !self.places.has_stayed(asked, now) && !patience.is_over() => {}
                _ if !matches!(error, Error::Busy(_)) => return Err(error),
                // The name is that of a fork in another bucket, or was.
                (_, Found::At { place: other, token: Some(token), .. }) if bucket_of(id) == place.bucket => {
                    if !self.forget_place(child, other, token)? {
                        return Err(self.taken(child)?);
                    }
                }
                _ => patience.again(place.bucket).map_err(|_| error)?,
            }
        }
    }

    /// Makes a fork in another bucket than that of its id.
    fn fork_elsewhere(&self, parent: &Name, at: ForkAt, child: &Name, place: Place) -> Result<()> {
        let cluster = self.cluster(place.cluster)?;
        let token = token();
        cluster.announce(child, place.bucket, token)?;
        let forked = self
            .claim(child, place.bucket, token)
            .and_then(|()| cluster.log().make_fork(parent, at, child, Some(token)));
        if forked.as_ref().is_err_and(|error| !matches!(error, Error::OutcomeUnknown { .. })) {
            // What is left otherwise, the next one of that name takes away.
            let _ = self.forget_place(child, place, token);
        }
        forked
    }

    /// Lets the place of an id name the bucket of an announced fork.
    fn claim(&self, child: &Name, bucket: u64, token: u64) -> Result<()> {
        let mut replaced = None;
        while let Placed::Other(other, old) =
            self.cluster(self.places.home(child.id()).cluster)?.place(child, bucket, token, replaced)?
        {
            // Of what was announced, this fork alone stays.
            self.cluster(self.places.at(other).cluster)?.retract(child, other, Some(token))?;
            replaced = Some(old);
        }
        Ok(())
    }

    fn taken(&self, name: &Name) -> Result<Error> {
        let conversation = name.clone();
        Ok(match self.view(&name.id().into())? {
            Some(view) => Error::NameTaken { conversation, actual: view.last_seq() },
            None => Error::SharedByForks { conversation },
        })
    }

    /// Forgets the place of a fork that is not there. False: there is a conversation of that name.
    pub(super) fn forget_place(&self, name: &Name, place: Place, token: u64) -> Result<bool> {
        match self.cluster(place.cluster)?.retract(name, place.bucket, None) {
            Ok(()) => {}
            Err(Error::NameTaken { .. } | Error::SharedByForks { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.cluster(self.places.home(name.id()).cluster)?.unplace(name.id(), token)?;
        Ok(true)
    }
}

/// A number that no two forks are likely to share.
fn token() -> u64 {
    let [.., a, b, c, d, e, f, g] = *ConversationId::new().as_bytes();
    u64::from_be_bytes([0, a, b, c, d, e, f, g])
}

/// What the place of an id says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placed {
    /// It says what it should.
    Done,
    /// It is that of another fork, in this bucket, with this token.
    Other(u64, u64),
}

impl Cluster {
    /// Announces a fork in its bucket.
    fn announce(&self, child: &Name, bucket: u64, token: u64) -> Result<()> {
        const SQL: &str = "SELECT * FROM cs_announce_v1($1, $2, $3)";
        let statement = Statement::repeatable(SQL).with(child.id().as_bytes()).with(bucket).with(token);
        self.done(statement, child).map(|_| ())
    }

    /// Lets the place of an id name the bucket of a fork. `replaced`: the token of a fork that is no more.
    fn place(&self, child: &Name, bucket: u64, token: u64, replaced: Option<u64>) -> Result<Placed> {
        const SQL: &str = "SELECT * FROM cs_place_v1($1, $2, $3, $4)";
        let statement = Statement::repeatable(SQL).with(child.id().as_bytes()).with(bucket).with(token).with(replaced);
        let row = self.done(statement, child)?;
        match Outcome::of(&row)? {
            Outcome::Moved if number(&row, "o_token")? != token => {
                Ok(Placed::Other(number(&row, "o_bucket")?, number(&row, "o_token")?))
            }
            _ => Ok(Placed::Done),
        }
    }

    /// Takes back what announced forks of this name, but for one. Fails if there is a conversation of that name.
    fn retract(&self, name: &Name, bucket: u64, kept: Option<u64>) -> Result<()> {
        const SQL: &str = "SELECT * FROM cs_retract_v1($1, $2, $3)";
        self.done(Statement::repeatable(SQL).with(name.id().as_bytes()).with(bucket).with(kept), name).map(|_| ())
    }

    /// Forgets the place of an id, if it still has this token.
    fn unplace(&self, id: ConversationId, token: u64) -> Result<()> {
        const SQL: &str = "SELECT * FROM cs_unplace_v1($1, $2)";
        self.database().row(Statement::repeatable(SQL).with(id.as_bytes()).with(token)).map(|_| ())
    }

    fn done(&self, statement: Statement, name: &Name) -> Result<Row> {
        let row = self.database().row(statement)?;
        let conversation = name.clone();
        match Outcome::of(&row)? {
            Outcome::Done | Outcome::Moved => Ok(row),
            Outcome::SharedByForks => Err(Error::SharedByForks { conversation }),
            Outcome::NotAsExpected => {
                let actual = some_number(&row, "o_last")?.unwrap_or_default();
                Err(Error::NameTaken { conversation, actual })
            }
            other => Err(other.unexpected()),
        }
    }
}
