//! The answers that are written through this server now: calls of models that pass, and answers that are ingested.
//!
//! And the newest requests of calls that are recorded, in memory.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::error::Result;
use crate::log::locked;
use crate::model::ConversationId;

/// How long an answer may still end for a client that has gone: it goes with the last piece, and the end comes after that.
const ENDING: Duration = Duration::from_millis(500);

/// What is recorded now.
pub(crate) struct Exchanges {
    running: Mutex<HashMap<Uuid, Running>>,
    begun: Notify,
    settled: Notify,
    ended: Notify,
    /// The keys of owners' digests, as far as they were read or made.
    keys: Mutex<HashMap<String, [u8; 32]>>,
    /// The first id of this server: those before it are of earlier ones, or of others of the same store.
    first: Uuid,
    /// The newest requests.
    pub(crate) requests: Recent,
}

impl fmt::Debug for Exchanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchanges").field("running", &self.running).finish_non_exhaustive()
    }
}

impl Default for Exchanges {
    fn default() -> Self {
        Self {
            running: Mutex::default(),
            begun: Notify::new(),
            settled: Notify::new(),
            ended: Notify::new(),
            keys: Mutex::default(),
            first: Uuid::now_v7(),
            requests: Recent::default(),
        }
    }
}

#[derive(Debug)]
struct Running {
    owner: String,
    kind: Kind,
    /// Known once the request is stored.
    conversation: Option<ConversationId>,
    /// Whether its client may have seen of its answer, and its request has no place yet.
    is_answered: bool,
    has_no_place: bool,
    /// Whether its client has seen it fail.
    has_failed: bool,
    /// When its client went.
    left: Option<Instant>,
    /// The digest of what surrounds its messages, known once the request is stored.
    surroundings: Option<[u8; 16]>,
    /// The owner's calls that were so when this one began: it may go on from them.
    after: Vec<Uuid>,
    /// Its messages, by their indexes.
    messages: Vec<u64>,
    stop: watch::Sender<bool>,
    /// Whether no more of its answer comes: only its end is stored.
    is_over: bool,
}

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// That of a call that passes.
    Exchange,
    /// That of an earlier call, which a client gets by its id. Nobody goes on from it, and it names no answer.
    Fetched,
    /// One that is ingested.
    Ingest,
    /// That of a response, which this server asked a model for.
    Response,
}

/// The answers that were stopped.
#[derive(Debug, Default)]
pub(crate) struct StoppedHere {
    pub(crate) exchanges: Vec<Uuid>,
    pub(crate) ingests: usize,
    pub(crate) responses: usize,
    /// Their messages, by their indexes.
    pub(crate) messages: Vec<u64>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Registered {
    exchanges: Arc<Exchanges>,
    id: Uuid,
}

impl Exchanges {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Running>> {
        locked(&self.running)
    }

    /// Registers an answer: also whether it is to stop.
    pub(crate) fn begin(self: &Arc<Self>, id: Uuid, owner: &str, kind: Kind) -> (Registered, watch::Receiver<bool>) {
        let (stop, stopped) = watch::channel(false);
        let mut all = self.lock();
        let is_before = |one: &Running| one.is_answered && one.has_no_place && one.owner == owner;
        let running = Running {
            owner: owner.to_owned(),
            kind,
            conversation: None,
            is_answered: false,
            has_no_place: false,
            has_failed: false,
            left: None,
            surroundings: None,
            after: all.iter().filter(|(_, one)| is_before(one)).map(|(id, _)| *id).collect(),
            messages: Vec::new(),
            stop,
            is_over: false,
        };
        all.insert(id, running);
        drop(all);
        self.begun.notify_waiters();
        (Registered { exchanges: Arc::clone(self), id }, stopped)
    }

    /// Notes that all of a request is there. It has no place yet: nobody waits for one whose end may never come.
    pub(crate) fn asks(&self, id: Uuid) {
        if let Some(running) = self.lock().get_mut(&id) {
            running.has_no_place = running.kind == Kind::Exchange;
        }
    }

    /// Notes that an answer, or an error, begins to pass: what its client says from now on may go on from it.
    pub(crate) fn answers(&self, id: Uuid) {
        if let Some(running) = self.lock().get_mut(&id) {
            running.is_answered = true;
        }
    }

    /// Notes that a client sees its call fail.
    pub(crate) fn fails(&self, id: Uuid) {
        if let Some(running) = self.lock().get_mut(&id) {
            running.has_failed = true;
        }
    }

    /// Notes that a client goes before the end of its answer.
    pub(crate) fn leaves(&self, id: Uuid) {
        if let Some(running) = self.lock().get_mut(&id) {
            running.left.get_or_insert_with(Instant::now);
        }
    }

    /// Stops an answer whose client went so long ago that it does not get the end of it. False: its client is there, or has just
    /// gone. Of another server's calls nobody knows that here.
    pub(crate) fn stop_left(&self, id: Uuid) -> bool {
        let running = self.lock();
        let Some(one) = running.get(&id).filter(|one| one.left.is_some_and(|left| left.elapsed() > ENDING)) else {
            return false;
        };
        one.stop.send_replace(true);
        true
    }

    /// Notes what surrounds the messages of a call: the system's words, and tools.
    pub(crate) fn surrounds(&self, id: Uuid, surroundings: [u8; 16]) {
        if let Some(running) = self.lock().get_mut(&id) {
            running.surroundings = Some(surroundings);
        }
    }

    /// Whether a call runs whose client is there, and which has other surroundings: another agent's.
    pub(crate) fn is_anothers(&self, id: Uuid, surroundings: [u8; 16]) -> bool {
        let is_other = |running: &Running| running.surroundings.is_some_and(|other| other != surroundings);
        self.lock().get(&id).is_some_and(|running| running.left.is_none() && is_other(running))
    }

    /// Notes that a request has its place, or gets none.
    pub(crate) fn settled(&self, id: Uuid) {
        if let Some(running) = self.lock().get_mut(&id) {
            running.has_no_place = false;
        }
        self.settled.notify_waiters();
    }

    /// Returns once a call goes on from none any more whose request has no place yet.
    pub(crate) async fn turn(&self, id: Uuid) {
        loop {
            // Asked for before the look, so that nothing is missed between.
            let settled = self.settled.notified();
            if !self.is_too_early(id) {
                return;
            }
            settled.await;
        }
    }

    fn is_too_early(&self, id: Uuid) -> bool {
        let running = self.lock();
        let has_no_place = |id: &Uuid| running.get(id).is_some_and(|one| one.has_no_place);
        running.get(&id).is_some_and(|one| one.after.iter().any(has_no_place))
    }

    /// Whether nothing of a call's answer can have reached its client yet. Of another server's calls nobody knows that here.
    pub(crate) fn is_unanswered(&self, id: Uuid) -> bool {
        self.lock().get(&id).is_some_and(|running| !running.is_answered)
    }

    /// Notes a message of an answer.
    pub(crate) fn writes(&self, id: Uuid, message: u64) {
        if let Some(running) = self.lock().get_mut(&id) {
            running.messages.push(message);
        }
    }

    /// Notes where a call's request is stored.
    pub(crate) fn placed(&self, id: Uuid, conversation: ConversationId) {
        if let Some(running) = self.lock().get_mut(&id) {
            running.conversation = Some(conversation);
        }
    }

    /// Stops the answers that are being written to a conversation.
    pub(crate) fn stop(&self, owner: &str, conversation: ConversationId) -> StoppedHere {
        let running = self.lock();
        let is_meant = |running: &Running| running.owner == owner && running.conversation == Some(conversation);
        let mut stopped = StoppedHere::default();
        for (id, one) in running.iter().filter(|(_, running)| is_meant(running)) {
            stopped.messages.extend(&one.messages);
            if one.is_over {
                continue;
            }
            one.stop.send_replace(true);
            match one.kind {
                Kind::Exchange | Kind::Fetched => stopped.exchanges.push(*id),
                Kind::Ingest => stopped.ingests += 1,
                Kind::Response => stopped.responses += 1,
            }
        }
        stopped
    }

    /// Returns once one is recorded.
    pub(crate) async fn some(&self) {
        loop {
            // Asked for before the look, so that nothing is missed between.
            let begun = self.begun.notified();
            if !self.lock().is_empty() {
                return;
            }
            begun.await;
        }
    }

    /// Whether an answer is being written to a conversation.
    pub(crate) fn is_writing(&self, owner: &str, conversation: ConversationId) -> bool {
        let is_it = |running: &Running| running.owner == owner && running.conversation == Some(conversation);
        self.lock().values().any(is_it)
    }

    /// Whether a call of a conversation has failed, as its client knows, and is not over yet. Its end says whether it has an
    /// answer.
    pub(crate) fn has_failing(&self, owner: &str, conversation: ConversationId) -> bool {
        let is_it = |running: &Running| running.owner == owner && running.conversation == Some(conversation);
        self.lock().values().any(|running| is_it(running) && running.has_failed)
    }

    /// Returns once none is recorded any more.
    pub(crate) async fn none(&self) {
        loop {
            // Asked for before the look, so that nothing is missed between.
            let ended = self.ended.notified();
            if self.lock().is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// The key of an owner's digests. Only one call makes it, and others wait for that.
    pub(crate) fn key_of(&self, owner: &str, make: impl FnOnce() -> Result<[u8; 32]>) -> Result<[u8; 32]> {
        let mut keys = locked(&self.keys);
        if let Some(key) = keys.get(owner) {
            return Ok(*key);
        }
        let key = make()?;
        keys.insert(owner.to_owned(), key);
        Ok(key)
    }

    /// Whether the end of a call, of which the book knows none, was lost with the server that passed it on.
    pub(crate) fn is_lost(&self, id: Uuid) -> bool {
        // Ids are in the order of time.
        id < self.first
    }

    /// Whether other calls of an owner are being recorded, whose answers are not known by their ids yet.
    pub(crate) fn has_others(&self, owner: &str, id: Uuid) -> bool {
        let is_other = |(other, running): (&Uuid, &Running)| {
            *other != id && running.owner == owner && running.kind != Kind::Fetched
        };
        self.lock().iter().any(is_other)
    }

    pub(crate) fn is_running(&self, owner: &str, id: Uuid) -> bool {
        self.lock().get(&id).is_some_and(|running| running.owner == owner)
    }
}

impl Registered {
    /// Notes that no more of its answer comes: from now on it cannot be stopped. Returns whether it was.
    pub(crate) fn ends(&self) -> bool {
        let mut running = self.exchanges.lock();
        running.get_mut(&self.id).is_some_and(|one| {
            one.is_over = true;
            *one.stop.borrow()
        })
    }

    /// Its answer ends: the conversation may be gone on from, though it is not ended. Who is shown the end may ask at once.
    pub(crate) fn leave(&self) {
        if let Some(running) = self.exchanges.lock().get_mut(&self.id) {
            running.conversation = None;
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.exchanges.lock().remove(&self.id);
        self.exchanges.settled.notify_waiters();
        self.exchanges.ended.notify_waiters();
    }
}

/// The most bytes of them.
const RECENT: usize = 32 * 1024 * 1024;

/// A request, and a secret that only who has all that it was compared with can know.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) secret: [u8; 16],
}

/// The newest requests, by their exchanges: the next one is compared with one of them. What is not there is read from the store.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<VecDeque<(Uuid, Known)>>);

impl Recent {
    pub(crate) fn find(&self, exchange: Uuid) -> Option<Known> {
        let recent = locked(&self.0);
        recent.iter().rev().find(|(known, _)| *known == exchange).map(|(_, known)| known.clone())
    }

    pub(crate) fn keep(&self, exchange: Uuid, known: Known) {
        let mut recent = locked(&self.0);
        recent.push_back((exchange, known));
        let mut bytes: usize = recent.iter().map(|(_, known)| known.bytes.len()).sum();
        while bytes > RECENT {
            bytes -= recent.pop_front().map_or(bytes, |(_, known)| known.bytes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_that_was_left_may_be_gone_on_from_and_is_waited_for() {
        let exchanges = Arc::new(Exchanges::default());
        let (id, conversation) = (Uuid::now_v7(), ConversationId::new());
        let (registered, stopped) = exchanges.begin(id, "ada", Kind::Response);
        exchanges.placed(id, conversation);
        assert!(exchanges.is_writing("ada", conversation) && !exchanges.is_writing("grace", conversation));
        registered.leave();
        assert!(!exchanges.is_writing("ada", conversation));
        assert_eq!(exchanges.stop("ada", conversation).responses, 0);
        assert!(!*stopped.borrow() && exchanges.is_running("ada", id));
        drop(registered);
        assert!(!exchanges.is_running("ada", id));
    }

    #[test]
    fn an_answer_that_is_over_is_not_stopped_though_its_end_is_not_stored() {
        let exchanges = Arc::new(Exchanges::default());
        let (id, conversation) = (Uuid::now_v7(), ConversationId::new());
        let begin = || {
            let (registered, stopped) = exchanges.begin(id, "ada", Kind::Exchange);
            exchanges.placed(id, conversation);
            exchanges.writes(id, 7);
            (registered, stopped)
        };
        let (registered, _) = begin();
        assert_eq!(exchanges.stop("ada", conversation).exchanges, [id]);
        assert!(registered.ends());
        drop(registered);
        let (registered, stopped) = begin();
        assert!(!registered.ends());
        let again = exchanges.stop("ada", conversation);
        assert!(again.exchanges.is_empty() && !*stopped.borrow());
        assert_eq!(again.messages, [7], "nobody else is asked to stop it");
    }

    /// A client goes on from what it has seen when it asks: what is answered later keeps nobody waiting.
    #[test]
    fn a_call_waits_for_those_that_were_answered_before_it_began() {
        let exchanges = Arc::new(Exchanges::default());
        let begin = |owner: &str| {
            let id = Uuid::now_v7();
            let registered = exchanges.begin(id, owner, Kind::Exchange).0;
            exchanges.asks(id);
            (id, registered)
        };
        let (first, registered) = begin("ada");
        let (beside, _beside) = begin("ada");
        exchanges.answers(first);
        let (next, _next) = begin("ada");
        let (of_another, _of_another) = begin("grace");
        assert!(exchanges.is_too_early(next));
        assert!(!exchanges.is_too_early(beside) && !exchanges.is_too_early(of_another));
        exchanges.settled(first);
        assert!(!exchanges.is_too_early(next));
        exchanges.answers(beside);
        let (last, _last) = begin("ada");
        assert!(exchanges.is_too_early(last));
        drop((registered, _beside));
        assert!(!exchanges.is_too_early(last));
    }

    /// It may never end.
    #[test]
    fn nobody_waits_for_a_request_that_is_answered_before_its_end() {
        let exchanges = Arc::new(Exchanges::default());
        let begin = || {
            let id = Uuid::now_v7();
            (id, exchanges.begin(id, "ada", Kind::Exchange).0)
        };
        let (early, _early) = begin();
        exchanges.answers(early);
        let (next, _next) = begin();
        assert!(!exchanges.is_too_early(next));
        exchanges.asks(early);
        let (last, _last) = begin();
        assert!(exchanges.is_too_early(last));
        exchanges.settled(early);
        assert!(!exchanges.is_too_early(last));
    }
}
