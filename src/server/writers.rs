//! The messages that clients of the log are writing. A client that is not heard of for a while has gone: its messages are
//! interrupted.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::room::Stream;
use crate::log::{OpenMessage, Receipt, locked};

/// The most finished messages that are known, for clients that did not get the answer.
const FINISHED: usize = 16_384;

/// The writers, by what names them.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    of: Mutex<HashMap<String, Arc<Writer>>>,
    /// Those that are finished, oldest first.
    finished: Mutex<VecDeque<String>>,
}

/// A message that a client is writing.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The key that began it: no other may go on.
    key: String,
    heard: Mutex<Instant>,
    is_finished: AtomicBool,
    state: Mutex<State>,
}

/// What a writer has taken.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) message: Box<dyn OpenMessage>,
    /// How many deltas.
    pub(crate) pushed: u64,
    /// Its end, for a client that did not get the answer.
    pub(crate) finished: Option<Receipt>,
    /// Until it is finished.
    pub(crate) room: Option<Stream>,
}

impl Writer {
    /// What it has taken. Its deltas come one after another.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl Writers {
    /// Holds a message that a key began.
    pub(crate) fn add(&self, name: String, key: &str, message: Box<dyn OpenMessage>, room: Stream) {
        let state = State { message, pushed: 0, finished: None, room: Some(room) };
        let (heard, is_finished) = (Mutex::new(Instant::now()), AtomicBool::new(false));
        let writer = Writer { key: key.to_owned(), heard, is_finished, state: Mutex::new(state) };
        locked(&self.of).insert(name, Arc::new(writer));
    }

    /// The writer of a name, which is heard of now. One that is finished stays for a while and no longer, whatever is heard of it.
    pub(crate) fn find(&self, key: &str, name: &str) -> Option<Arc<Writer>> {
        let writer = locked(&self.of).get(name).filter(|writer| writer.key == key).cloned()?;
        if !writer.is_finished.load(Ordering::Acquire) {
            *locked(&writer.heard) = Instant::now();
        }
        Some(writer)
    }

    /// A writer is finished: only its end is still asked for. The oldest of very many are forgotten.
    pub(crate) fn finished(&self, name: &str, writer: &Writer) {
        writer.is_finished.store(true, Ordering::Release);
        let mut finished = locked(&self.finished);
        finished.push_back(name.to_owned());
        if finished.len() > FINISHED
            && let Some(oldest) = finished.pop_front()
        {
            locked(&self.of).remove(&oldest);
        }
    }

    /// Lets go of a writer: what is not finished is interrupted.
    pub(crate) fn remove(&self, key: &str, name: &str) {
        if self.find(key, name).is_some() {
            // Without the lock: its end is written.
            let writer = locked(&self.of).remove(name);
            drop(writer);
        }
    }

    /// Takes those out that were not heard of since a moment.
    pub(crate) fn unheard(&self, since: Instant) -> Vec<Arc<Writer>> {
        let is_unheard = |writer: &Arc<Writer>| *locked(&writer.heard) < since;
        locked(&self.of).extract_if(|_, writer| is_unheard(writer)).map(|(_, writer)| writer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::room::Streams;
    use super::*;
    use crate::model::{Metadata, Name, Role};
    use crate::store::Store;

    #[test]
    fn what_is_finished_is_forgotten_however_often_it_is_asked_for() {
        let (store, streams) = (Store::open("memory:").unwrap(), Arc::new(Streams::new(4, 4)));
        let writers = Writers::default();
        for name in ["one", "two"] {
            let options = crate::AppendOptions::new();
            let begun = store.log().begin(&Name::from(name), Role::User, Metadata::default(), &options);
            writers.add(name.to_owned(), "ada", begun.unwrap().0.unwrap(), streams.begin("ada").unwrap());
        }
        let one = writers.find("ada", "one").unwrap();
        writers.finished("one", &one);
        let later = Instant::now();
        assert!(writers.find("ada", "one").is_some() && writers.find("ada", "two").is_some());
        assert_eq!(writers.unheard(later).len(), 1);
        assert!(writers.find("ada", "one").is_none() && writers.find("ada", "two").is_some());
        // Many at once are not all kept.
        let two = writers.find("ada", "two").unwrap();
        writers.finished("two", &two);
        (0..FINISHED).for_each(|at| writers.finished(&at.to_string(), &one));
        assert!(writers.find("ada", "two").is_none());
    }

    #[test]
    fn a_writer_that_is_not_heard_of_is_let_go_and_no_other_key_has_it() {
        let (store, streams) = (Store::open("memory:").unwrap(), Arc::new(Streams::new(2, 2)));
        let writers = Writers::default();
        for name in ["one", "two"] {
            let options = crate::AppendOptions::new();
            let begun = store.log().begin(&Name::from(name), Role::User, Metadata::default(), &options);
            writers.add(name.to_owned(), "ada", begun.unwrap().0.unwrap(), streams.begin("ada").unwrap());
        }
        assert!(streams.begin("ada").is_err());
        let begun = Instant::now();
        assert!(writers.find("grace", "one").is_none() && writers.find("ada", "two").is_some());
        writers.remove("grace", "two");
        let unheard = writers.unheard(begun);
        assert_eq!((unheard.len(), writers.find("ada", "one").is_none()), (1, true));
        assert!(store.unfinished().unwrap().iter().all(|found| found.state == crate::MessageState::Streaming));
        drop(unheard);
        store.sync().unwrap();
        let states = store.unfinished().unwrap().into_iter().map(|found| (found.key.unwrap(), found.state));
        let mut states: Vec<_> = states.collect();
        states.sort_by(|one, two| one.0.cmp(&two.0));
        let (interrupted, streaming) = (crate::MessageState::Interrupted, crate::MessageState::Streaming);
        assert_eq!(states, [("one".to_owned(), interrupted), ("two".to_owned(), streaming)]);
        assert!(streams.begin("ada").is_ok());
    }
}
