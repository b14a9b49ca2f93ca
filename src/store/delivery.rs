//! An answer that comes under an idempotency key. What was stored under the key decides what happens. If it is whole, it is
//! compared with the new answer to the end. If it was cut off, it is hidden, and the new answer is stored as a new message.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::{Begun, MessageWriter, Store};
use crate::error::{Error, Result};
use crate::history::{MessageState, StoredMessage};
use crate::log::append::repetition_key;
use crate::log::reading::PageSize;
use crate::log::replay::is_redacted;
use crate::log::{AppendOptions, ExpectedHead, Receipt};
use crate::model::{Chunk, FinishReason, Json, Metadata, Name, Role};
use crate::provider::Event;

/// Takes an answer.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// Stores it.
    New(MessageWriter),
    /// Compares it with what is stored under its key.
    Repeated(Box<Repetition>),
}

/// An answer that is stored whole, and what comes under its key.
#[derive(Debug)]
pub(crate) struct Repetition {
    name: Name,
    key: String,
    receipt: Receipt,
    stored: StoredMessage,
    /// What came of each chunk: the chunk without the text that grows, and the bytes of that text.
    came: BTreeMap<u32, (Chunk, usize)>,
    is_same: bool,
}

impl Store {
    /// Begins a message, or its repetition. Fails with `BeingWritten` while the first is being written.
    pub(crate) fn deliver(
        &self,
        name: &Name,
        role: Role,
        metadata: &Metadata,
        options: &AppendOptions,
    ) -> Result<Delivery> {
        let mut options = options.clone();
        let key = options.idempotency_key.clone().unwrap_or_default();
        let mut cut = Vec::new();
        loop {
            let receipt = match self.begin_with(name, role, metadata.clone(), &options)? {
                Begun::Writer(writer) => {
                    cut.into_iter().try_for_each(|message| self.hide(name, message))?;
                    return Ok(Delivery::New(writer));
                }
                Begun::Duplicate(receipt) => receipt,
            };
            let stored = self.delivered(name, &receipt)?;
            let is_cut = stored.message.finish_reason == Some(FinishReason::Interrupted);
            match stored.state {
                MessageState::Streaming => {
                    return Err(Error::BeingWritten { conversation: name.clone(), message_index: stored.index });
                }
                MessageState::Interrupted => {}
                _ if is_cut => {}
                _ => return Ok(Delivery::Repeated(Box::new(Repetition::new(name, key, receipt, stored)))),
            }
            // Of several repetitions one stores it: they find the same key.
            options.idempotency_key = Some(repetition_key(&key, receipt.first_seq));
            if options.expected != ExpectedHead::Any {
                options.expected = ExpectedHead::At(stored.last_seq);
            }
            cut.push(stored.index);
        }
    }

    /// The message of a receipt, hidden or not.
    fn delivered(&self, name: &Name, receipt: &Receipt) -> Result<StoredMessage> {
        let index = receipt.message_indexes.first().copied().unwrap_or_default();
        let (messages, _) = self.page(name, index, PageSize { limit: 1, bytes: 0, shows_hidden: true })?;
        let stored = messages.into_iter().find(|stored| stored.index == index);
        stored.ok_or_else(|| Error::NotFound { what: format!("message {index} of conversation {name}") })
    }

    /// Hides a message that was cut off, unless that was done before.
    fn hide(&self, name: &Name, message: u64) -> Result<()> {
        match self.remove(name, message, None) {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Delivery {
    /// The index of the message that it writes; `None` if it writes none.
    pub(crate) fn message_index(&self) -> Option<u64> {
        match self {
            Self::New(writer) => Some(writer.message_index()),
            Self::Repeated(_) => None,
        }
    }

    /// Takes a part of the answer. Gives the receipt of its end, once it has come.
    pub(crate) fn take(&mut self, event: Event) -> Result<Option<Receipt>> {
        match self {
            Self::New(writer) => {
                let end = writer.ingest([event])?;
                Ok(end.map(|end| Receipt { first_seq: writer.first_seq(), ..end }))
            }
            Self::Repeated(repetition) => repetition.take(event),
        }
    }
}

impl Repetition {
    fn new(name: &Name, key: String, receipt: Receipt, stored: StoredMessage) -> Self {
        Self { name: name.clone(), key, receipt, stored, came: BTreeMap::new(), is_same: true }
    }

    fn take(&mut self, event: Event) -> Result<Option<Receipt>> {
        let (is_end, is_same) = match event {
            // The key was used with the same beginning.
            Event::Begin(_) => (false, true),
            Event::Delta { chunk_index, chunk } => (false, self.is_part(chunk_index, &chunk)),
            Event::Finish { reason, usage } => (true, self.is_whole(reason.as_ref(), usage.as_ref())),
        };
        self.is_same &= is_same || self.is_forgotten();
        match (self.is_same, is_end) {
            (false, _) => Err(Error::KeyReused { conversation: self.name.clone(), key: self.key.clone() }),
            (true, false) => Ok(None),
            (true, true) => Ok(Some(Receipt { last_seq: self.stored.last_seq, ..self.receipt.clone() })),
        }
    }

    /// Whether the stored chunk goes on with this.
    fn is_part(&mut self, chunk_index: u32, part: &Chunk) -> bool {
        let at = self.stored.chunk_indexes.binary_search(&chunk_index).ok();
        let Some(stored) = at.and_then(|at| self.stored.message.chunks.get(at)) else { return false };
        let fits = match self.came.entry(chunk_index) {
            Entry::Vacant(entry) => {
                entry.insert((part.shape(), 0));
                true
            }
            Entry::Occupied(mut entry) => entry.get_mut().0.push_fragment(part.shape()).is_ok(),
        };
        let Some((_, bytes)) = self.came.get_mut(&chunk_index) else { return false };
        let text = part.growing().as_bytes();
        let (start, end) = (*bytes, *bytes + text.len());
        *bytes = end;
        fits && stored.growing().as_bytes().get(start..end) == Some(text)
    }

    /// Whether all that is stored came, and ends so.
    fn is_whole(&self, reason: Option<&FinishReason>, usage: Option<&Json>) -> bool {
        let StoredMessage { message, chunk_indexes, .. } = &self.stored;
        let mut chunks = chunk_indexes.iter().zip(&message.chunks);
        let came = |(index, chunk): (&u32, &Chunk)| {
            let came = self.came.get(index);
            came.is_some_and(|(shape, bytes)| *shape == chunk.shape() && *bytes == chunk.growing().len())
        };
        chunks.all(came) && message.finish_reason.as_ref() == reason && message.usage.as_ref() == usage
    }

    /// Whether some of it was redacted since: it may have been the same.
    fn is_forgotten(&self) -> bool {
        self.stored.message.chunks.iter().any(|chunk| is_redacted(chunk.growing()))
    }
}
