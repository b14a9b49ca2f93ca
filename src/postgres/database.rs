//! Calls to the database: a pool of connections on a small runtime of the log's own, so that calls may block.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use deadpool::managed::QueueMode;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime as Tokio, Timeouts};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Error as Refusal, Row};

use super::connection::Connector;
use super::failure::{self, Failure};
use super::statement::Statement;
use super::url::Url;
use crate::error::{Error, Result};

/// Threads of the runtime: they wait for the network, and compute little.
const THREADS: usize = 2;
/// The pause before the first repetition of a call; each is twice as long as the one before it.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// How long a connection without an answer still counts as one of the pool. The server goes on with what it was asked, and keeps
/// its side of the connection until it is done: to replace it at once would take the server one connection more for each call.
const LINGER: Duration = Duration::from_secs(300);

/// A database, and the connections to it.
#[derive(Debug)]
pub(super) struct Database {
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
    calls: Calls,
    /// By a connection of their own: they must not wait for other calls.
    renewals: Calls,
}

/// What a call needs.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pool: Pool,
    timeout: Duration,
    /// How long one step of long work may take.
    step: Duration,
    /// Whether statements are prepared, once a connection. A pooler between may not keep them, or give what another program
    /// prepared under the same name.
    prepares: Arc<AtomicBool>,
    /// Where the database is, for people.
    pub(super) shown: Arc<str>,
}

impl Database {
    /// Makes one connection, so that what is wrong is known at once.
    pub(super) fn connect(url: &Url) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("conversation-store")
            .enable_all()
            .build()
            .map_err(Error::io("start the threads of the connections"))?;
        let prepares = Arc::new(AtomicBool::new(url.prepared.unwrap_or(true)));
        let are_direct = || url.prepared.is_none().then(|| Arc::clone(&prepares));
        let calls = Calls {
            pool: pool(url, url.pool, are_direct())?,
            timeout: url.timeout,
            step: url.step,
            prepares: Arc::clone(&prepares),
            shown: url.shown.as_str().into(),
        };
        let renewals = Calls { pool: pool(url, 1, are_direct())?, ..calls.clone() };
        let database = Self { runtime: Some(runtime), calls, renewals };
        let calls = database.calls.clone();
        database.wait(async move {
            let connected = calls.connection(Instant::now() + calls.timeout).await;
            connected.map(|_| ()).map_err(|failure| failure.into_error(&calls.shown))
        })??;
        Ok(database)
    }

    pub(super) const fn calls(&self) -> &Calls {
        &self.calls
    }

    /// For renewals of leases.
    pub(super) const fn renewals(&self) -> &Calls {
        &self.renewals
    }

    pub(super) fn handle(&self) -> Option<&Handle> {
        self.runtime.as_ref().map(Runtime::handle)
    }

    /// Blocks until a future has its result. It may be called on any thread, those of another runtime too.
    pub(super) fn wait<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Result<T> {
        let (give, take) = sync_channel(1);
        let handle = self.handle().ok_or(Error::Closed)?;
        handle.spawn(async move {
            let _ = give.send(future.await);
        });
        take.recv().map_err(|_| Error::Closed)
    }

    /// The rows that a statement gives.
    pub(super) fn query(&self, statement: Statement) -> Result<Vec<Row>> {
        let calls = self.calls.clone();
        self.wait(async move { calls.query(&statement).await })?
    }

    /// The one row that a statement gives.
    pub(super) fn row(&self, statement: Statement) -> Result<Row> {
        let sql = statement.sql;
        self.query(statement)?.pop().ok_or_else(|| no_row(sql))
    }

    /// A connection of one's own, for what takes several statements.
    pub(super) fn session(&self) -> Result<Session<'_>> {
        let calls = self.calls.clone();
        let connected = self.wait(async move {
            calls.repeat_until(calls.deadline(), false, false, |until| calls.connection(until)).await
        })??;
        Ok(Session { database: self, connection: Some(Arc::new(connected)), limit: None })
    }

    /// As [`Database::session`], for long work in steps: each statement has to be answered in the time of a step.
    pub(super) fn session_of_steps(&self) -> Result<Session<'_>> {
        let mut session = self.session()?;
        session.limit = Some(self.calls.step);
        Ok(session)
    }

    /// Reads something with several statements that all see one moment. It is read again if its connection is lost.
    pub(super) fn at_one_moment<T>(&self, mut read: impl FnMut(&Session<'_>) -> Result<T>) -> Result<T> {
        let until = Instant::now() + self.calls.timeout;
        loop {
            let mut session = self.session()?;
            session.limit = Some(self.calls.timeout);
            let begun = session.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
            match begun.and_then(|()| read(&session)) {
                Err(error) if failure::is_lost_without_effect(&error) && Instant::now() < until => {}
                Ok(done) => {
                    // What was read, was read: nothing depends on how its transaction ends.
                    let _ = session.end();
                    return Ok(done);
                }
                failed => return failed,
            }
        }
    }
}

impl Calls {
    /// How long a call may take.
    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A drop may happen on a thread of another runtime, where nothing may wait.
            runtime.shutdown_background();
        }
    }
}

impl Calls {
    /// The rows that a statement gives. What passes by itself is waited for, and the statement sent again, unless it may have
    /// taken effect.
    pub(super) async fn query(&self, statement: &Statement) -> Result<Vec<Row>> {
        self.query_until(statement, self.deadline()).await
    }

    /// As [`Calls::query`], until a moment.
    async fn query_until(&self, statement: &Statement, until: Instant) -> Result<Vec<Row>> {
        let attempt = |until| self.attempt(statement, until);
        self.repeat_until(until, statement.is_repeatable, statement.writes, attempt).await
    }

    /// When a call that begins now has to be done.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Attempts something until it succeeds, it fails for a reason that stays, or the time is over. `writes`: an attempt without
    /// an answer may have taken effect, however the later ones fail.
    async fn repeat_until<T, Attempt>(
        &self,
        until: Instant,
        is_repeatable: bool,
        writes: bool,
        attempt: impl Fn(Instant) -> Attempt,
    ) -> Result<T>
    where
        Attempt: Future<Output = Result<T, Failure>>,
    {
        let (mut pause, mut unanswered) = (FIRST_PAUSE, None);
        loop {
            let failure = match attempt(until).await {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            if !failure.passes(is_repeatable) || Instant::now() + pause >= until {
                return Err(unanswered.unwrap_or(failure).into_error(&self.shown));
            }
            tracing::debug!(failure = ?failure, "a call to the database is repeated");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            if writes && failure.may_have_effect() {
                unanswered.get_or_insert(failure);
            }
        }
    }

    /// The one row that a statement gives.
    pub(super) async fn row(&self, statement: &Statement) -> Result<Row> {
        self.row_until(statement, self.deadline()).await
    }

    /// As [`Calls::row`], until a moment.
    pub(super) async fn row_until(&self, statement: &Statement, until: Instant) -> Result<Row> {
        self.query_until(statement, until).await?.pop().ok_or_else(|| no_row(statement.sql))
    }

    async fn attempt(&self, statement: &Statement, until: Instant) -> Result<Vec<Row>, Failure> {
        self.attempt_by(self.connection(until).await?, statement, until).await
    }

    /// The rows that a statement gives, sent once through a connection.
    pub(super) async fn attempt_by(
        &self,
        connection: Object,
        statement: &Statement,
        until: Instant,
    ) -> Result<Vec<Row>, Failure> {
        let answer = timeout_at(until, self.ask(&connection, statement)).await;
        let failure = match answer {
            Ok(Ok(rows)) => return Ok(rows),
            Ok(Err(error)) => Failure::of(&error),
            Err(_) => Failure::Unanswered(self.timeout),
        };
        // A statement is never cancelled: where it waits for a standby, that would end the wait, and it would be taken for done.
        if matches!(failure, Failure::Unanswered(_)) {
            tokio::spawn(linger(connection));
        } else if failure.spoils_connection() {
            drop(Object::take(connection));
        }
        Err(failure)
    }

    async fn ask(&self, connection: &Object, statement: &Statement) -> Result<Vec<Row>, Refusal> {
        let typed = statement.typed();
        if !self.prepares.load(Ordering::Acquire) || statement.is_planned_anew {
            return connection.query_typed(statement.sql, &typed).await;
        }
        let (values, types): (Vec<_>, Vec<_>) = typed.into_iter().unzip();
        let prepared = connection.prepare_typed_cached(statement.sql, &types).await?;
        connection.query(&prepared, &values).await
    }

    pub(super) async fn connection(&self, until: Instant) -> Result<Object, Failure> {
        let left = Some(until.saturating_duration_since(Instant::now()));
        match self.pool.timeout_get(&Timeouts { wait: left, create: left, recycle: left }).await {
            Ok(connection) => Ok(connection),
            Err(PoolError::Backend(error)) => Err(Failure::of_connecting(&error)),
            Err(PoolError::Timeout(deadpool_postgres::TimeoutType::Wait)) => {
                Err(Failure::Exhausted(self.pool.status().max_size))
            }
            Err(error) => Err(Failure::Unreached(error.to_string())),
        }
    }
}

/// Holds a connection whose answer did not come until the server is done, or the connection ends: it may be used again, or it is
/// closed.
async fn linger(connection: Object) {
    if !matches!(timeout(LINGER, connection.batch_execute("")).await, Ok(Ok(()))) {
        drop(Object::take(connection));
    }
}

fn pool(url: &Url, size: usize, are_direct: Option<Arc<AtomicBool>>) -> Result<Pool> {
    let connector = Connector::new(url.config.get_ssl_mode() != SslMode::Disable, url.roots.as_deref(), are_direct)?;
    let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_connect(url.config.clone(), connector, config);
    // The one that was used last is taken first: what the server keeps for it, plans too, is warm.
    let pool = Pool::builder(manager).max_size(size).queue_mode(QueueMode::Lifo).runtime(Tokio::Tokio1).build();
    pool.map_err(|error| Error::InvalidInput(format!("the pool of connections: {error}")))
}

/// A connection of one's own. What it was doing is given up when it is dropped.
pub(super) struct Session<'a> {
    database: &'a Database,
    /// Taken when it is dropped.
    connection: Option<Arc<Object>>,
    /// How long each statement may take.
    limit: Option<Duration>,
}

impl Session<'_> {
    /// Runs statements that give nothing.
    pub(super) fn script(&self, sql: &'static str) -> Result<()> {
        self.ask(|connection| async move { connection.batch_execute(sql).await }, Failure::into_error_without_effect)
    }

    /// The rows that a statement gives.
    pub(super) fn query(&self, statement: Statement) -> Result<Vec<Row>> {
        let query =
            |connection: Arc<Object>| async move { connection.query_typed(statement.sql, &statement.typed()).await };
        self.ask(query, Failure::into_error_without_effect)
    }

    fn ask<T, Answer>(
        &self,
        ask: impl FnOnce(Arc<Object>) -> Answer,
        error: impl FnOnce(Failure, &str) -> Error + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        Answer: Future<Output = Result<T, Refusal>> + Send + 'static,
    {
        let Some(connection) = self.connection.clone() else { return Err(Error::Closed) };
        let (answer, limit, shown) = (ask(connection), self.limit, Arc::clone(&self.database.calls.shown));
        self.database.wait(async move {
            let answer = match limit {
                Some(limit) => timeout(limit, answer).await.map_err(|_| Failure::Unanswered(limit)),
                None => Ok(answer.await),
            };
            let answer = answer.and_then(|answer| answer.map_err(|refusal| Failure::of(&refusal)));
            answer.map_err(|failure| error(failure, &shown))
        })?
    }

    /// Commits, and gives the connection back.
    pub(super) fn end(mut self) -> Result<()> {
        self.ask(|connection| async move { connection.batch_execute("COMMIT").await }, Failure::into_error)?;
        self.connection = None;
        Ok(())
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // It may be in the middle of a transaction: nobody else gets it.
        if let Some(connection) = self.connection.take().and_then(Arc::into_inner) {
            drop(Object::take(connection));
        }
    }
}

fn no_row(sql: &str) -> Error {
    super::rows::corrupt(format!("{} gave no row", sql.split('(').next().unwrap_or_default()))
}
