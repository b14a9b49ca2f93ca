//! What was acknowledged, line by line: `conversation last_seq`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use conversation_store::model::ConversationId;

use super::super::failure::Failure;

/// The file, if the caller named one.
#[derive(Debug)]
pub(super) struct Acks(Option<Mutex<File>>);

impl Acks {
    pub(super) fn create(path: Option<&Path>) -> Result<Self, Failure> {
        let create = |path: &Path| {
            File::create_new(path).map_err(|error| Failure::usage(format!("cannot create {}: {error}", path.display())))
        };
        Ok(Self(path.map(create).transpose()?.map(Mutex::new)))
    }

    /// Writes a line with one call: a line that is complete was acknowledged.
    pub(super) fn note(&self, conversation: ConversationId, last_seq: u64) -> Result<(), Failure> {
        let Some(file) = &self.0 else { return Ok(()) };
        let line = format!("{conversation} {last_seq}\n");
        let written = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
        written.map_err(|error| Failure::failed(format!("cannot write the acks: {error}")))
    }
}
