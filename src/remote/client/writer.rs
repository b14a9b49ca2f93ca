//! A message that is being written: the server holds its writer, and hears of it.

use std::cell::Cell;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use super::http::Again;
use super::shared::Shared;
use crate::error::{Error, Result};
use crate::log::{AppendOptions, OpenMessage, Receipt, locked};
use crate::model::{Chunk, FinishReason, Json, Message, Metadata, Name, Role};
use crate::record;
use crate::remote::body;
use crate::remote::call::{Append, Begun, Finish, Nothing, Push, Writers};

/// Between two words that writers live: a part of what the server waits for.
const WORDS_A_LEASE: u64 = 3;

/// A message that is being written.
#[derive(Debug)]
pub(super) struct Open {
    shared: Arc<Shared>,
    writer: String,
    name: Name,
    index: u64,
    role: Role,
    /// The number of the last delta that was pushed.
    pushed: Cell<u64>,
    /// The number and the digest of one without an answer, which may have been taken.
    unanswered: Cell<Option<(u64, [u8; 16])>>,
}

/// Begins a message. Whether a begin that was cut was taken is not known: nobody could write on.
pub(super) fn begin(
    shared: &Arc<Shared>,
    name: &Name,
    role: Role,
    metadata: Metadata,
    options: &AppendOptions,
) -> Result<(Option<Box<dyn OpenMessage>>, Receipt)> {
    let known = body::seal(&[body::known(role, metadata)])?;
    let Begun { writer, receipt } = shared.write("begin", &Append::new(name, options), &known, Again::Ask)?;
    let Some(writer) = writer else { return Ok((None, receipt)) };
    locked(&shared.writers).push(writer.clone());
    let index = receipt.message_indexes.first().copied().unwrap_or_default();
    let (pushed, unanswered) = (Cell::new(0), Cell::new(None));
    let open = Open { shared: Arc::clone(shared), writer, name: name.clone(), index, role, pushed, unanswered };
    Ok((Some(Box::new(open)), receipt))
}

impl Open {
    /// The server does not know the writer any more.
    fn unknown(&self, error: Error) -> Error {
        match error {
            Error::NotFound { .. } => Error::MessageClosed {
                conversation: self.name.clone(),
                message_index: self.index,
                reason: "the server is another one, was started again, or had not heard of its writer in time",
            },
            error => error,
        }
    }
}

impl OpenMessage for Open {
    fn index(&self) -> u64 {
        self.index
    }

    fn push(&self, chunk_index: u32, delta: Chunk) -> Result<()> {
        let delta = body::seal(&[Message::new(self.role, [delta])])?;
        let digest = record::digest(&[chunk_index.to_be_bytes().as_slice(), &delta].concat());
        // The same delta is a repetition. Another one comes after the one whose fate is not known.
        let number = match self.unanswered.get() {
            Some((number, of)) if of == digest => number,
            Some((number, _)) => number + 1,
            None => self.pushed.get() + 1,
        };
        let push = Push { writer: self.writer.clone(), number, chunk_index };
        self.unanswered.set(Some((number, digest)));
        let Nothing {} =
            self.shared.write("push", &push, &delta, Again::Repeat).map_err(|error| self.unknown(error))?;
        self.pushed.set(number);
        self.unanswered.set(None);
        Ok(())
    }

    fn finish(&self, reason: Option<FinishReason>, usage: Option<Json>, metadata: Metadata) -> Result<Receipt> {
        let end = Message { finish_reason: reason, usage, ..body::known(self.role, metadata) };
        let finish = Finish { writer: self.writer.clone() };
        let finished: Result<Option<Receipt>> =
            self.shared.write("finish", &finish, &body::seal(&[end])?, Again::RepeatThere);
        let gone = || Error::OutcomeUnknown { cause: "the server gave no receipt".to_owned() };
        finished.map_err(|error| self.unknown(error))?.ok_or_else(gone)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // A log that was closed has dropped it.
        let mut writers = locked(&self.shared.writers);
        let place = writers.iter().position(|writer| *writer == self.writer);
        let writer = place.map(|place| writers.remove(place));
        std::mem::drop(writers);
        if let Some(writer) = writer {
            let _ = self.shared.drop_writers(vec![writer]);
        }
    }
}

/// Lets the server hear of the writers, until the log is closed.
pub(super) fn keep(shared: &Weak<Shared>) {
    while let Some(shared) = shared.upgrade() {
        let pause = Duration::from_secs((shared.welcome.lease_seconds / WORDS_A_LEASE).max(1));
        let writers: Vec<String> = {
            let writers = locked(&shared.writers);
            if shared.is_closed() {
                return;
            }
            let (writers, _) = shared.ending.wait_timeout(writers, pause).unwrap_or_else(PoisonError::into_inner);
            writers.clone()
        };
        if shared.is_closed() {
            return;
        }
        if !writers.is_empty() {
            // Who writes learns of a server that is gone.
            if let Err(error) = shared.read::<Writers>("keep", &Writers { writers }) {
                tracing::warn!("the server at {} does not hear of its writers: {error}", shared.server.shown());
            }
        }
    }
}
