//! Gives the engine what is in a layer, in the background, and notes with it how far it came, under a key of its own.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use super::super::contract::{Engine, JOURNAL_KEY, Operation};
use super::layer::Layer;
use crate::error::{Error, Result};

/// A name without meaning: of a journal, or of one use of a region.
pub(super) type Id = [u8; 16];

const VERSION: u8 = 1;
/// version(1), id(16), number(8), closed(1), checksum(4)
const NOTE_BYTES: usize = 30;

/// Which journal an engine has, and how much of it the engine's data contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) journal: Id,
    /// The number of the last record that the engine's data contains.
    pub(super) number: u64,
    /// Whether the journal had no further records when this was written.
    pub(super) closed: bool,
}

impl Note {
    /// The engine's note, if there is one that can be read.
    pub(super) fn read(engine: &dyn Engine) -> Result<Option<Self>> {
        Ok(engine.get(JOURNAL_KEY)?.and_then(|bytes| Self::decode(&bytes)))
    }

    /// Writes it after everything that was written before, and makes it survive a power cut.
    pub(super) fn write(&self, engine: &dyn Engine) -> Result<()> {
        engine.give(&mut std::iter::empty(), (JOURNAL_KEY.to_vec(), self.encode()))
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(NOTE_BYTES);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.journal);
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.push(self.closed.into());
        bytes.extend_from_slice(&checksum(&bytes).to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (fields, stated) = bytes.split_last_chunk::<4>()?;
        if bytes.len() != NOTE_BYTES || checksum(fields) != u32::from_be_bytes(*stated) {
            return None;
        }
        let (&[VERSION], fields) = fields.split_first_chunk::<1>()? else { return None };
        let (journal, fields) = fields.split_first_chunk::<16>()?;
        let (number, closed) = fields.split_first_chunk::<8>()?;
        Some(Self { journal: *journal, number: u64::from_be_bytes(*number), closed: closed == [1] })
    }
}

fn checksum(fields: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(JOURNAL_KEY);
    hasher.update(fields);
    hasher.finalize()
}

/// A layer that nobody writes to any more, and what the engine notes once it has it.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) layer: Arc<Layer>,
    pub(super) note: Note,
}

/// Gives the engine a layer, durably.
pub(super) fn checkpoint(engine: &dyn Engine, job: &Job) -> Result<()> {
    let layer = job.layer.read();
    let mut operations = layer.iter().map(|(key, last)| {
        let value = last.value.as_ref().map(|value| value.as_slice());
        Operation { key, value, rewrites: last.rewrites }
    });
    engine.give(&mut operations, (JOURNAL_KEY.to_vec(), job.note.encode()))
}

/// Why a checkpoint failed: nothing is given to the engine after that.
pub(super) type Failure = Arc<OnceLock<Error>>;

/// What the thread has to do.
#[derive(Debug, Default)]
struct Work {
    job: Option<Job>,
    stop: bool,
}

/// What the thread and those who wait for it share.
#[derive(Debug, Default)]
struct Shared {
    work: Mutex<Work>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while<'a>(&'a self, work: MutexGuard<'a, Work>, while_: impl Fn(&Work) -> bool) -> MutexGuard<'a, Work> {
        self.changed.wait_while(work, |work| while_(work)).unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that makes checkpoints, one after the other.
#[derive(Debug)]
pub(super) struct Checkpoints {
    shared: Arc<Shared>,
    failure: Failure,
    /// Absent only during the drop.
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    /// `made` is called after each, and `failure` is set by the first that fails.
    pub(super) fn start(engine: Arc<dyn Engine>, failure: Failure, made: impl Fn() + Send + 'static) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = thread::Builder::new().name("conversation-store-journal".to_owned());
        let thread = thread.spawn({
            let (shared, failure) = (Arc::clone(&shared), Arc::clone(&failure));
            move || {
                while let Some(job) = next(&shared) {
                    let made_it = catch_unwind(AssertUnwindSafe(|| checkpoint(&*engine, &job)));
                    let result =
                        made_it.unwrap_or_else(|_| Err(Error::io("make a checkpoint")(io::Error::other("a panic"))));
                    let failed = result.map(|()| made()).map_err(|error| failure.set(error)).is_err();
                    shared.lock().job = None;
                    shared.changed.notify_all();
                    if failed {
                        break;
                    }
                }
            }
        });
        let thread = thread.map_err(Error::io("start a thread for the journal"))?;
        Ok(Self { shared, failure, thread: Some(thread) })
    }

    /// Hands over a layer. The last one's checkpoint was made.
    pub(super) fn begin(&self, job: Job) {
        self.shared.lock().job = Some(job);
        self.shared.changed.notify_all();
    }

    /// Returns once the checkpoint is made.
    pub(super) fn wait(&self) -> Result<()> {
        drop(self.shared.wait_while(self.shared.lock(), |work| work.job.is_some()));
        self.check()
    }

    /// Fails if a checkpoint did.
    pub(super) fn check(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |error| Err(again(error)))
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It makes the checkpoint that it has begun, and catches panics.
            let _ = thread.join();
        }
    }
}

/// The next layer, once there is one. None: that is the end.
fn next(shared: &Shared) -> Option<Job> {
    shared.wait_while(shared.lock(), |work| work.job.is_none() && !work.stop).job.clone()
}

/// The same error once more.
fn again(error: &Error) -> Error {
    match error {
        Error::Io { action, source } => Error::Io {
            action: action.clone(),
            source: source
                .raw_os_error()
                .map_or_else(|| io::Error::other(source.to_string()), io::Error::from_raw_os_error),
        },
        other => Error::io("make a checkpoint of the journal")(io::Error::other(other.to_string())),
    }
}
