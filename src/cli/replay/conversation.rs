use std::collections::VecDeque;

use conversation_store::model::{Message, Name};
use conversation_store::{AppendOptions, Error, ExpectedHead, Result, Store, StoredMessage};

use super::super::failure::Failure;
use super::super::text::count;
use super::compare::difference;

/// A conversation of the file, as far as its lines were read.
pub(super) struct Replayed {
    pub(super) name: Name,
    /// Why its remaining lines are skipped.
    pub(super) conflict: Option<Failure>,
    /// What the store holds and no line was compared with yet.
    stored: VecDeque<StoredMessage>,
    /// The last seq; 0 before the first.
    last_seq: u64,
    compared: u64,
    appended: u64,
}

impl Replayed {
    /// Looks up what the store holds.
    pub(super) fn begin(store: &Store, name: Name) -> Result<Self> {
        let mut replayed =
            Self { name, conflict: None, stored: VecDeque::new(), last_seq: 0, compared: 0, appended: 0 };
        let item = match store.describe(&replayed.name) {
            Ok(item) => item,
            Err(Error::NotFound { .. }) => return Ok(replayed),
            Err(error) => return Err(error),
        };
        replayed.last_seq = item.last_seq;
        match store.load_raw(&replayed.name) {
            Ok(messages) => replayed.stored = messages.into(),
            Err(error @ Error::Corrupt { .. }) => replayed.conflict = Some(error.into()),
            Err(error) => return Err(error),
        }
        if item.hidden > 0 && replayed.conflict.is_none() {
            let hidden = count(item.hidden, "hidden message");
            replayed.refuse(&format!("it has {hidden}, which are not in the file"));
        }
        Ok(replayed)
    }

    /// Compares the next line with what is stored, or appends it.
    pub(super) fn take(&mut self, store: &Store, message: &Message, place: &str) -> Result<()> {
        if self.conflict.is_some() {
            return Ok(());
        }
        let Some(stored) = self.stored.pop_front() else { return self.append(store, message) };
        match difference(&stored, message) {
            None => self.compared += 1,
            Some(what) => self.refuse(&format!(
                "{place} differs from stored message {} (seq {}): {what}",
                stored.index, stored.first_seq
            )),
        }
        Ok(())
    }

    fn append(&mut self, store: &Store, message: &Message) -> Result<()> {
        let expected = match self.last_seq {
            0 => ExpectedHead::NewConversation,
            seq => ExpectedHead::At(seq),
        };
        let options = AppendOptions::new().with_expected(expected);
        let receipt = store.append_with(&self.name, std::slice::from_ref(message), &options)?;
        self.last_seq = receipt.last_seq;
        self.appended += 1;
        Ok(())
    }

    /// The file is at its end: no stored message may be left over.
    pub(super) fn finish(&mut self, file: &str) {
        if let (None, Some(stored)) = (&self.conflict, self.stored.front()) {
            let problem = format!(
                "the store has {} more than {file}, from message {} (seq {}) on",
                count(self.stored.len(), "message"),
                stored.index,
                stored.first_seq
            );
            self.refuse(&problem);
        }
    }

    fn refuse(&mut self, problem: &str) {
        let conflict = Failure::new("conflict", format!("conflict: {problem}; nothing was appended to it"));
        let hint = format!("replay into another store (--store URL), or `convo delete {}` first", self.name);
        self.conflict = Some(conflict.with_hint(hint));
    }

    /// What was done with its lines.
    pub(super) fn summary(&self) -> String {
        format!("{} appended, {} stored already", count(self.appended, "line"), self.compared)
    }
}
