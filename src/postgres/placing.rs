//! The place of a fork that is not in the bucket of its own id: the steps in `cluster.sql`.

use tokio_postgres::Row;

use super::Postgres;
use super::rows::{number, some_number};
use super::shared::Outcome;
use super::value::Statement;
use crate::error::{Error, Result};
use crate::model::{ConversationId, Name};

/// What the place of an id says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It says what it should.
    Done,
    /// It is that of another fork, in this bucket, with this token.
    Other(u64, u64),
}

impl Postgres {
    /// Announces a fork in its bucket.
    pub(crate) fn announce(&self, child: &Name, bucket: u64, token: u64) -> Result<()> {
        const SQL: &str = "SELECT * FROM cs_announce_v1($1, $2, $3)";
        let statement = Statement::repeatable(SQL).with(child.id().as_bytes()).with(bucket).with(token);
        self.done(statement, child).map(|_| ())
    }

    /// Lets the place of an id name the bucket of a fork. `replaced`: the token of a fork that is no more.
    pub(crate) fn place(&self, child: &Name, bucket: u64, token: u64, replaced: Option<u64>) -> Result<Placed> {
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
    pub(crate) fn retract(&self, name: &Name, bucket: u64, kept: Option<u64>) -> Result<()> {
        const SQL: &str = "SELECT * FROM cs_retract_v1($1, $2, $3)";
        self.done(Statement::repeatable(SQL).with(name.id().as_bytes()).with(bucket).with(kept), name).map(|_| ())
    }

    /// Forgets the place of an id, if it still has this token.
    pub(crate) fn unplace(&self, id: ConversationId, token: u64) -> Result<()> {
        const SQL: &str = "SELECT * FROM cs_unplace_v1($1, $2)";
        self.shared.database.row(Statement::repeatable(SQL).with(id.as_bytes()).with(token)).map(|_| ())
    }

    fn done(&self, statement: Statement, name: &Name) -> Result<Row> {
        let row = self.shared.database.row(statement)?;
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
