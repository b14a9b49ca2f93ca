//! Appends that wait at one time, and the calls that take them to the database.
//!
//! An append is sent at once, by itself, unless enough calls are under way. Then it waits until one of them ends, and shares
//! the next call with the others that wait. No timer runs. A call is one transaction, and each of its appends has an answer of
//! its own: the database writes those that fit, and passes over the others, which are sent by themselves after it. So a conflict
//! of one append, or a lock of its conversation, concerns no other. Appends of one conversation are sent in the order in which
//! they came, and the next ones once those have an answer.

use std::collections::{HashSet, VecDeque};
use std::pin::pin;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_postgres::Row;

use super::append::{Given, by_itself, incarnation};
use super::database::{Calls, Database};
use super::failure::Failure;
use super::rows::{self, corrupt, number};
use super::statement::{Statement, signed};
use super::url::processors;
use crate::error::{Error, Result};
use crate::log::{ExpectedHead, locked};
use crate::model::ConversationId;

#[cfg(test)]
#[cfg(unix)]
mod tests;

/// Appends of a call, at most.
const MOST: usize = 64;
/// Bytes of the records of a call, at most, where there are several.
const MOST_BYTES: usize = 1 << 20;
/// For so long a call keeps others waiting. One that takes longer waits itself: for a lock, or for a standby.
const PATIENCE: Duration = Duration::from_millis(50);

/// The appends that wait, and the calls under way.
pub(super) struct Gathering {
    database: Arc<Database>,
    /// Calls that are under way at one time, but for those that take long.
    most_calls: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order in which they came.
    waiting: VecDeque<Waiting>,
    /// Calls under way, but for those that take long.
    calls: usize,
    /// The conversations of appends that are under way.
    written: HashSet<ConversationId>,
    /// Appends so far.
    count: u64,
}

/// An append that waits.
struct Waiting {
    given: Given,
    expected: ExpectedHead,
    caller: Caller,
}

/// A thread that waits for the answer of an append.
struct Caller {
    number: u64,
    answer: SyncSender<Result<Row>>,
}

/// The appends of a call that was sent.
enum Call {
    One(ConversationId, Caller),
    Several(Vec<Waiting>),
}

/// An append that is sent by itself.
struct Alone {
    id: ConversationId,
    caller: Caller,
    statement: Statement,
}

/// What became of the appends of a call.
#[derive(Default)]
struct Ended {
    answers: Vec<(Caller, Result<Row>)>,
    /// To be sent once more.
    again: Option<Alone>,
    /// Nothing was written of these.
    rest: Vec<Waiting>,
}

impl Gathering {
    /// `pool`: connections at most.
    pub(super) fn new(database: Arc<Database>, pool: usize) -> Self {
        // One computes while another one waits for the disk. More than the server has processors for are no faster.
        let most_calls = processors().clamp(2, 8).min(pool);
        Self { database, most_calls, state: Mutex::default() }
    }

    /// Appends to a conversation, and blocks until there is an answer: the row that the function gives.
    pub(super) fn append(self: &Arc<Self>, given: Given, expected: ExpectedHead) -> Result<Row> {
        let runtime = self.database.handle().ok_or(Error::Closed)?;
        let (answer, answered) = sync_channel(1);
        let (number, begun) = {
            let mut state = locked(&self.state);
            state.count += 1;
            let number = state.count;
            state.waiting.push_back(Waiting { given, expected, caller: Caller { number, answer } });
            (number, state.begin(self.most_calls))
        };
        if let Some(call) = begun {
            runtime.spawn(Arc::clone(self).carry(call));
        }
        match answered.recv_timeout(self.calls().timeout()) {
            Ok(row) => row,
            // It was not sent.
            Err(RecvTimeoutError::Timeout) if locked(&self.state).forget(number) => Err(Error::Busy(format!(
                "earlier appends of its conversation have no answer from PostgreSQL at {} yet: try again",
                self.calls().shown
            ))),
            Err(_) => answered.recv().map_err(|_| Error::Closed)?,
        }
    }

    fn calls(&self) -> &Calls {
        self.database.calls()
    }

    /// Makes a call, and begins what can be begun once it has ended, or takes long.
    async fn carry(self: Arc<Self>, call: Vec<Waiting>) {
        let calls = self.calls();
        let ids: Vec<ConversationId> = call.iter().map(|waiting| waiting.given.id).collect();
        let (call, statement) = Call::of(call);
        let until = calls.deadline();
        let mut counts = true;
        let answer = match calls.connection(until).await {
            Ok(connection) => {
                let mut asking = pin!(calls.attempt_by(connection, &statement, until));
                match timeout(PATIENCE, &mut asking).await {
                    Ok(answer) => answer,
                    Err(_) => {
                        counts = false;
                        self.begin(1);
                        asking.await
                    }
                }
            }
            Err(failure) => Err(failure),
        };
        let Ended { answers, again, rest } = call.end(answer, statement, until, &calls.shown);
        let alone = locked(&self.state).end(&ids, again, rest);
        // Those who are answered often append again at once, and share the next call.
        answers.into_iter().for_each(|(caller, row)| caller.answer(row));
        for alone in alone {
            tokio::spawn(Arc::clone(&self).carry_alone(alone, until));
        }
        self.begin(usize::from(counts));
    }

    /// Sends an append by itself, again where that may succeed.
    async fn carry_alone(self: Arc<Self>, alone: Alone, until: Instant) {
        let row = self.calls().row_until(&alone.statement, until).await;
        locked(&self.state).written.remove(&alone.id);
        alone.caller.answer(row);
        self.begin(0);
    }

    /// Begins the calls that can be begun. `ended`: how many of those under way have ended, or take long.
    fn begin(self: &Arc<Self>, ended: usize) {
        let mut state = locked(&self.state);
        state.calls = state.calls.saturating_sub(ended);
        while let Some(call) = state.begin(self.most_calls) {
            tokio::spawn(Arc::clone(self).carry(call));
        }
    }
}

impl State {
    /// The appends of the next call, if there are some and it may be made now.
    fn begin(&mut self, most_calls: usize) -> Option<Vec<Waiting>> {
        if self.calls >= most_calls {
            return None;
        }
        let (mut call, mut later, mut bytes) = (Vec::new(), Vec::new(), 0);
        while let Some(next) = self.waiting.pop_front() {
            if self.written.contains(&next.given.id) {
                later.push(next);
                continue;
            }
            bytes += next.given.body.len();
            if !call.is_empty() && (call.len() == MOST || bytes > MOST_BYTES) {
                later.push(next);
                break;
            }
            call.push(next);
        }
        later.into_iter().rev().for_each(|waiting| self.waiting.push_front(waiting));
        if call.is_empty() {
            return None;
        }
        self.calls += 1;
        self.written.extend(call.iter().map(|waiting| waiting.given.id));
        Some(call)
    }

    /// Lets go of the conversations of a call that has ended, but for those of which an append is sent by itself: the first
    /// of each. The rest waits again, before all others.
    fn end(&mut self, ids: &[ConversationId], again: Option<Alone>, rest: Vec<Waiting>) -> Vec<Alone> {
        ids.iter().for_each(|id| _ = self.written.remove(id));
        self.written.extend(again.iter().map(|again| again.id));
        let (mut alone, mut later) = (again.into_iter().collect::<Vec<_>>(), Vec::new());
        for Waiting { given, expected, caller } in rest {
            let id = given.id;
            if self.written.insert(id) {
                alone.push(Alone { id, caller, statement: by_itself(given, false, expected, None) });
            } else {
                later.push(Waiting { given, expected, caller });
            }
        }
        later.into_iter().rev().for_each(|waiting| self.waiting.push_front(waiting));
        alone
    }

    /// Forgets an append that waits; whether it did.
    fn forget(&mut self, number: u64) -> bool {
        let at = self.waiting.iter().position(|waiting| waiting.caller.number == number);
        at.and_then(|at| self.waiting.remove(at)).is_some()
    }
}

impl Call {
    /// One append as it is sent by itself, or what several are sent with.
    fn of(mut call: Vec<Waiting>) -> (Self, Statement) {
        match call.pop() {
            Some(Waiting { given, expected, caller }) if call.is_empty() => {
                (Self::One(given.id, caller), by_itself(given, false, expected, None))
            }
            last => {
                call.extend(last);
                let statement = several(&call);
                (Self::Several(call), statement)
            }
        }
    }

    /// What becomes of its appends. `until`: when all of them have to have an answer.
    fn end(self, rows: Result<Vec<Row>, Failure>, statement: Statement, until: Instant, shown: &str) -> Ended {
        let is_in_time = Instant::now() < until;
        match (self, rows) {
            (Self::One(_, caller), Ok(rows)) => {
                let row = rows.into_iter().next().ok_or_else(|| corrupt("an append gave no row".to_owned()));
                Ended { answers: vec![(caller, row)], ..Ended::default() }
            }
            (Self::One(id, caller), Err(failure)) if is_in_time && failure.passes(false) => {
                Ended { again: Some(Alone { id, caller, statement }), ..Ended::default() }
            }
            (Self::One(_, caller), Err(failure)) => {
                Ended { answers: vec![(caller, Err(failure.into_error(shown)))], ..Ended::default() }
            }
            (Self::Several(call), Ok(rows)) => placed(call, rows),
            // One of them may be the reason: each finds out by itself.
            (Self::Several(rest), Err(failure))
                if is_in_time && (matches!(failure, Failure::Refused { .. }) || failure.passes(false)) =>
            {
                tracing::debug!(failure = ?failure, "appends that shared a call are sent by themselves");
                Ended { rest, ..Ended::default() }
            }
            (Self::Several(call), Err(failure)) => {
                let error = |waiting: Waiting| (waiting.caller, Err(failure.clone().into_error(shown)));
                Ended { answers: call.into_iter().map(error).collect(), ..Ended::default() }
            }
        }
    }
}

/// Gives each of several appends its row, by the place that the row names. One without a row was passed over.
fn placed(call: Vec<Waiting>, rows: Vec<Row>) -> Ended {
    let mut found: Vec<Option<Row>> = call.iter().map(|_| None).collect();
    for row in rows {
        let at = number(&row, "o_at").ok().and_then(|at| usize::try_from(at).ok()?.checked_sub(1));
        if let Some(place) = at.and_then(|at| found.get_mut(at)) {
            *place = Some(row);
            continue;
        }
        // Which of them it is of is not known: none may be sent again.
        let error = |waiting: Waiting| (waiting.caller, Err(corrupt("a row of no append".to_owned())));
        return Ended { answers: call.into_iter().map(error).collect(), ..Ended::default() };
    }
    let mut ended = Ended::default();
    for (waiting, row) in call.into_iter().zip(found) {
        match row {
            Some(row) => ended.answers.push((waiting.caller, Ok(row))),
            None => ended.rest.push(waiting),
        }
    }
    ended
}

/// Several appends in one call, in their order.
fn several(call: &[Waiting]) -> Statement {
    const SQL: &str = "SELECT * FROM cs_append_many_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
    fn each<T>(call: &[Waiting], value: impl Fn(&Waiting) -> T) -> Vec<T> {
        call.iter().map(value).collect()
    }
    let key = |waiting: &Waiting| waiting.given.idempotency.map(|(key, _)| key.to_vec());
    let content = |waiting: &Waiting| waiting.given.idempotency.map(|(_, content)| content.to_vec());
    let (mut items, mut item_of, mut item_at) = (Vec::new(), Vec::new(), Vec::<i64>::new());
    for (place, waiting) in (1_i64..).zip(call) {
        let (digests, places) = &waiting.given.items;
        items.extend(digests.iter().cloned());
        item_of.extend(places.iter().map(|_| place));
        item_at.extend(places);
    }
    Statement::once(SQL)
        .with(each(call, |waiting| waiting.given.id.as_bytes().to_vec()))
        .with(each(call, |waiting| waiting.given.owner.clone()))
        .with(each(call, |waiting| waiting.given.time))
        .with(each(call, |waiting| waiting.given.body.clone()))
        .with(each(call, |waiting| signed(waiting.given.entries)))
        .with(each(call, |waiting| signed(waiting.given.messages)))
        .with(each(call, |waiting| waiting.given.title.is_some()))
        .with(each(call, |waiting| rows::expected(waiting.expected)))
        .with(each(call, |waiting| incarnation(waiting.expected).map_or(-1, signed)))
        .with(each(call, key))
        .with(each(call, content))
        .with(items)
        .with(item_of)
        .with(item_at)
}

impl Caller {
    fn answer(self, row: Result<Row>) {
        let _ = self.answer.send(row);
    }
}
