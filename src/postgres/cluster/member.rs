//! A database as one cluster of a sharded store: what it knows of that store, and which buckets it has.

use std::time::Duration;

use tokio_postgres::Row;

use crate::error::{Error, Result};
use crate::log::{Clock, Opening};
use crate::model::ConversationId;
use crate::postgres::database::Database;
use crate::postgres::rows::{corrupt, digest, get, number, some_number};
use crate::postgres::statement::Statement;
use crate::postgres::url::Url;
use crate::postgres::{Postgres, schema};

/// Buckets of a sharded store.
pub(super) const BUCKETS: u64 = 1024;
/// The version of what `cluster.sql` makes.
const VERSION: u64 = 1;
/// The oldest version whose programs can work with this one.
const OLDEST: u64 = 1;
const SCRIPT: &str = include_str!("cluster.sql");

/// What a database says of the sharded store that it is a part of.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) store_id: [u8; 16],
    /// Its number, from 0.
    pub(super) cluster: u64,
    /// How many there are.
    pub(super) clusters: u64,
    pub(super) buckets: Vec<Bucket>,
}

/// A bucket that is in a cluster, or was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    pub(super) bucket: u64,
    pub(super) state: BucketState,
    /// The other cluster of its move.
    pub(super) peer: Option<u64>,
}

/// What a cluster has of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BucketState {
    /// It is read and written here.
    Here,
    /// It is read here.
    Leaving,
    /// It is in another cluster.
    Gone,
    /// It is being copied from another cluster.
    Arriving,
    /// All of it was copied.
    Arrived,
}

/// Where a conversation is to be looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whereabouts {
    /// What is here of the bucket that was asked for; nothing, if it has never been here.
    pub(super) state: Option<BucketState>,
    /// The other cluster of its move.
    pub(super) peer: Option<u64>,
    /// The bucket that the conversation is in as a fork, and the token of that place.
    pub(super) placed: Option<(u64, u64)>,
    /// How often a bucket has come or gone.
    pub(super) moves: u64,
}

/// What a cluster has of all buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readable {
    /// How many can be read here.
    pub(super) readable: u64,
    /// How often one has come or gone.
    pub(super) moves: u64,
    /// How many clusters there are.
    pub(super) clusters: u64,
    /// The last of the clusters to which buckets went.
    pub(super) furthest: Option<u64>,
}

/// The bucket of an id: ten bits, from all of its bytes.
pub(super) fn bucket_of(id: ConversationId) -> u64 {
    let folded = id.as_bytes().chunks(2).fold([0, 0], |[high, low], pair| match pair {
        [more_high, more_low] => [high ^ more_high, low ^ more_low],
        _ => [high, low],
    });
    u64::from(u16::from_be_bytes(folded)) % BUCKETS
}

impl BucketState {
    fn of(text: &str) -> Result<Self> {
        Ok(match text {
            "here" => Self::Here,
            "leaving" => Self::Leaving,
            "gone" => Self::Gone,
            "arriving" => Self::Arriving,
            "arrived" => Self::Arrived,
            other => return Err(corrupt(format!("a bucket in the state {other:?}"))),
        })
    }

    /// Whether its conversations can be read here.
    pub(super) fn is_readable(self) -> bool {
        matches!(self, Self::Here | Self::Leaving)
    }
}

/// A database that is one cluster of a sharded store, or becomes one.
#[derive(Debug)]
pub(super) struct Cluster {
    log: Postgres,
}

impl Cluster {
    /// As [`Postgres::open`].
    pub(super) fn open(url: &str, clock: Clock, window: Duration, opening: Opening, creates: bool) -> Result<Self> {
        let url = Url::parse(url)?;
        // A backup asks for the map while it keeps its moment.
        if url.pool < 2 {
            return Err(Error::InvalidInput(format!(
                "{}: pool=1 is too few for a cluster of a store: 2 at least",
                url.shown
            )));
        }
        let database = Database::connect(&url)?;
        schema::check(&database, creates && !opening.read_only)?;
        Ok(Self { log: Postgres::start(database, &url, clock, window, opening)? })
    }

    /// The conversations that are in it.
    pub(super) const fn log(&self) -> &Postgres {
        &self.log
    }

    pub(super) fn database(&self) -> &Database {
        &self.log.database
    }

    /// Where the database is, for people.
    pub(super) fn shown(&self) -> &str {
        &self.database().calls().shown
    }

    /// What the database knows of the sharded store that it is a part of; nothing, if it is a part of none.
    pub(super) fn member(&self) -> Result<Option<Member>> {
        const SHARDS: &str =
            "SELECT s.version::bigint, s.oldest::bigint, s.store_id, s.cluster, s.clusters FROM cs_shards s";
        const BUCKETS: &str = "SELECT b.bucket, b.state, b.peer FROM cs_bucket b ORDER BY b.bucket";
        let database = self.database();
        if !schema::is_member(database)? {
            return Ok(None);
        }
        let rows = database.query(Statement::repeatable(SHARDS))?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (found, oldest) = (number(row, "version")?, number(row, "oldest")?);
        if oldest > VERSION {
            let what = format!("the map of buckets in PostgreSQL at {}", self.shown());
            let (found, supported) = (u32::try_from(found).unwrap_or_default(), VERSION as u32);
            return Err(Error::UnsupportedVersion { what, found, supported });
        }
        let buckets = database.query(Statement::repeatable(BUCKETS))?;
        Ok(Some(Member {
            store_id: digest(row, "store_id")?,
            cluster: number(row, "cluster")?,
            clusters: number(row, "clusters")?,
            buckets: buckets.iter().map(bucket).collect::<Result<_>>()?,
        }))
    }

    /// Which tables these are, by whatever name they are reached.
    pub(super) fn tables(&self) -> Result<String> {
        const TABLES: &str = "SELECT concat_ws(' ', pg_postmaster_start_time(), d.oid, to_regclass('cs_schema')::oid) AS tables \
                              FROM pg_catalog.pg_database d WHERE d.datname = current_database()";
        get(&self.database().row(Statement::repeatable(TABLES))?, "tables")
    }

    /// Makes the database a cluster of a sharded store, with buckets that no other has; or changes how many clusters there
    /// are. All of it, or nothing.
    pub(super) fn join(&self, store_id: &[u8; 16], cluster: u64, clusters: u64, buckets: &[u64]) -> Result<()> {
        const JOIN: &str = "INSERT INTO cs_shards VALUES (true, $1::bigint::integer, $2::bigint::integer, $3, $4, $5, 0) \
                            ON CONFLICT (one) DO UPDATE SET clusters = $5";
        const TAKE: &str =
            "INSERT INTO cs_bucket SELECT u.bucket, 'here' FROM unnest($1) AS u(bucket) ON CONFLICT DO NOTHING";
        const FORKS: &str = "SELECT cs_place_forks_v1()";
        let session = self.database().session()?;
        session.script("BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(7163384950271)")?;
        session.script(SCRIPT)?;
        let join = Statement::once(JOIN).with(VERSION).with(OLDEST).with(store_id);
        session.query(join.with(cluster).with(clusters))?;
        session.query(Statement::once(TAKE).with(buckets))?;
        if !buckets.is_empty() {
            session.query(Statement::once(FORKS))?;
        }
        session.end()
    }

    /// Keeps others from making a sharded store that this is the first cluster of, while `work` is done.
    pub(super) fn alone<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let session = self.database().session()?;
        session.script("BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(7163384950272)")?;
        let done = work()?;
        // It has written nothing: how its transaction ends does not matter.
        let _ = session.end();
        Ok(done)
    }

    /// Whether it has any conversation.
    pub(super) fn has_any(&self) -> Result<bool> {
        const ANY: &str = "SELECT EXISTS (SELECT FROM cs_conversation) AS has_any";
        get(&self.database().row(Statement::repeatable(ANY))?, "has_any")
    }

    /// What is here of a bucket, and of the place of an id.
    pub(super) fn whereabouts(&self, bucket: u64, id: ConversationId) -> Result<Whereabouts> {
        const SQL: &str = "SELECT b.state, b.peer, p.bucket AS placed, p.token, one.moves FROM cs_shards one \
                           LEFT JOIN cs_bucket b ON b.bucket = $1 LEFT JOIN cs_placed p ON p.conv_id = $2";
        let row = self.database().row(Statement::repeatable(SQL).with(bucket).with(id.as_bytes()))?;
        let state = get::<Option<&str>>(&row, "state")?.map(BucketState::of).transpose()?;
        let placed = some_number(&row, "placed")?.zip(some_number(&row, "token")?);
        Ok(Whereabouts { state, peer: some_number(&row, "peer")?, placed, moves: number(&row, "moves")? })
    }

    /// How many buckets can be read here, and how often one came or went.
    pub(super) fn readable_buckets(&self) -> Result<Readable> {
        const SQL: &str = "SELECT s.moves, s.clusters, (SELECT count(*) FROM cs_bucket b \
                           WHERE b.state IN ('here', 'leaving')) AS readable, (SELECT max(b.peer) FROM cs_bucket b \
                           WHERE b.state = 'gone') AS furthest FROM cs_shards s";
        let row = self.database().row(Statement::repeatable(SQL))?;
        let (readable, moves) = (number(&row, "readable")?, number(&row, "moves")?);
        let furthest = some_number(&row, "furthest")?;
        Ok(Readable { readable, moves, clusters: number(&row, "clusters")?, furthest })
    }
}

fn bucket(row: &Row) -> Result<Bucket> {
    let state = BucketState::of(get(row, "state")?)?;
    Ok(Bucket { bucket: number(row, "bucket")?, state, peer: some_number(row, "peer")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_ten_bits_of_all_bytes_of_an_id() {
        let mut bytes = [0; 16];
        assert_eq!(bucket_of(ConversationId::from_bytes(bytes)), 0);
        (bytes[0], bytes[15]) = (0xFE, 0x81);
        assert_eq!(bucket_of(ConversationId::from_bytes(bytes)), 0x281);
        (bytes[14], bytes[1]) = (0xFF, 0x01);
        assert_eq!(bucket_of(ConversationId::from_bytes(bytes)), 0x180);
    }
}
