//! Appends: checked and numbered when they are queued.

use std::sync::{Arc, MutexGuard, PoisonError};

use uuid::Uuid;

use super::limits::{check_key, check_messages, check_name};
use super::redact::FORGOTTEN;
use super::state::{Pending, State, Unsealed};
use super::{Core, QUEUE_BYTES, items};
use crate::error::{Error, Result};
use crate::group::StoredMessage;
use crate::model::{self, ConversationId, Message, Name, Role, Timestamp};
use crate::record::{self, Body, Head, Header, Origin, TitleSource, key};

/// The namespace of digests. Frozen with format version 1.
const DIGESTS: Uuid = Uuid::from_u128(0x8e35_1cf6_5d0f_5f0a_9d5c_7f2e_41b7_a09c);
/// Characters of a title that is made from the first user text.
const TITLE_CHARS: usize = 80;

/// What [`crate::Store::append_with`] may be told.
///
/// ```
/// use conversation_store::{AppendOptions, Durability, ExpectedHead};
///
/// let options = AppendOptions::new()
///     .with_expected(ExpectedHead::At(14))
///     .with_idempotency_key("request-7")
///     .with_durability(Durability::Buffered);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct AppendOptions {
    /// What the conversation has to be for the append to be taken.
    pub expected: ExpectedHead,
    /// A second append with the same key and content changes nothing and gets the first receipt. Kept as long as the
    /// conversation; any string up to 1 KiB.
    pub idempotency_key: Option<String>,
    /// When the call returns.
    pub durability: Durability,
}

/// What a conversation has to be for an append to be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectedHead {
    /// Anything.
    #[default]
    Any,
    /// It does not exist yet.
    NewConversation,
    /// Its last seq is this one.
    At(u64),
}

/// When an append returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it survives a power cut.
    #[default]
    Durable,
    /// When it is queued: it is written within the store's window, and a crash may lose that window, never more, and
    /// never with a hole in it.
    Buffered,
}

impl AppendOptions {
    /// The defaults: any head, no key, durable.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the append only if the conversation is as expected.
    #[must_use]
    pub fn with_expected(mut self, expected: ExpectedHead) -> Self {
        self.expected = expected;
        self
    }

    /// Makes a repeated append harmless.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Sets when the call returns.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
}

/// What an append got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The conversation's id.
    pub conversation: ConversationId,
    /// The seq of the first entry.
    pub first_seq: u64,
    /// The seq of the last entry.
    pub last_seq: u64,
    /// The index of each message, in order.
    pub message_indexes: Vec<u64>,
    /// Whether it survives a power cut already.
    pub durable: bool,
    /// Whether this was a repetition: nothing was written.
    pub duplicate: bool,
}

/// A write of one record, before it has a place.
pub(super) struct Draft<'a> {
    pub(super) name: &'a Name,
    pub(super) body: Body,
    /// How many messages begin in it.
    pub(super) messages: u64,
    /// The message index to which the body's are relative, if it is not the next one.
    pub(super) base: Option<u64>,
    /// What may give the conversation its title.
    pub(super) said: &'a [Message],
}

/// A write of one record in its place.
pub(super) struct Placed {
    pub(super) pending: Pending,
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
    pub(super) base: u64,
}

impl Core {
    pub(crate) fn append(&self, name: &Name, messages: &[Message], options: &AppendOptions) -> Result<Receipt> {
        check_key(name)?;
        let content = check_messages(messages)?;
        let body = Body::messages(messages, content)?;
        let idempotency = options.idempotency_key.as_deref().map(|key| {
            check_name("an idempotency key", key)?;
            Ok::<_, Error>((key, digest(key.as_bytes()), digest(body.content())))
        });
        let idempotency = idempotency.transpose()?;
        let id = name.id();
        let _pin = self.pin(id)?;
        let mut state = self.writable(id, options.durability)?;
        if let Some((key, key_digest, content_digest)) = &idempotency {
            let (receipt, locked) = self.find_receipt(id, key_digest, state)?;
            state = locked;
            if let Some(receipt) = receipt {
                if ![*content_digest, FORGOTTEN].contains(&receipt.content_digest) {
                    return Err(Error::KeyReused { conversation: id, key: (*key).to_owned() });
                }
                let durable = state.slot(id).published.as_ref().is_some_and(|head| head.next_seq > receipt.last_seq);
                let wait = !durable && options.durability == Durability::Durable;
                if wait {
                    self.queue_durable(state, Pending::default())?;
                }
                return Ok(Receipt {
                    conversation: id,
                    first_seq: receipt.first_seq,
                    last_seq: receipt.last_seq,
                    message_indexes: receipt.message_indexes,
                    durable: durable || wait,
                    duplicate: true,
                });
            }
        }
        let slot = state.slot(id);
        slot.check_free(id)?;
        check_expected(id, options.expected, slot.queued.as_deref())?;
        let count = messages.len() as u64;
        let draft = Draft { name, body, messages: count, base: None, said: messages };
        let Placed { mut pending, first_seq, last_seq, base } = self.place(&mut state, draft);
        let message_indexes: Vec<u64> = (base..base + count).collect();
        if let Some((_, key_digest, content_digest)) = idempotency {
            let receipt =
                record::Receipt { first_seq, last_seq, message_indexes: message_indexes.clone(), content_digest };
            let key = key::receipt(id, &key_digest);
            let value = record::seal(&key, &receipt)?;
            pending.ops.push((key, Some(value)));
            pending.receipt = Some(key_digest);
            state.slot(id).receipts.insert(key_digest, receipt);
        }
        let durable = options.durability == Durability::Durable;
        self.queue(state, pending, options.durability)?;
        Ok(Receipt { conversation: id, first_seq, last_seq, message_indexes, durable, duplicate: false })
    }

    pub(super) fn queue(
        &self,
        mut state: MutexGuard<'_, State>,
        pending: Pending,
        durability: Durability,
    ) -> Result<()> {
        match durability {
            Durability::Durable => self.queue_durable(state, pending),
            Durability::Buffered => {
                self.queue_buffered(&mut state, pending);
                Ok(())
            }
        }
    }

    /// The state, once the conversation, which is pinned, may be written.
    pub(super) fn writable(&self, id: ConversationId, durability: Durability) -> Result<MutexGuard<'_, State>> {
        let mut state = self.lock();
        loop {
            state.check_writable()?;
            let full = durability == Durability::Buffered && state.queued_bytes > QUEUE_BYTES;
            if !full && !state.slot(id).frozen {
                return Ok(state);
            }
            if full {
                self.ticker.hurry();
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The receipt under an idempotency key, queued or stored. The lock is given up while the engine is read.
    fn find_receipt<'a>(
        &'a self,
        id: ConversationId,
        digest: &[u8; 16],
        mut state: MutexGuard<'a, State>,
    ) -> Result<(Option<record::Receipt>, MutexGuard<'a, State>)> {
        loop {
            let slot = state.slot(id);
            if let Some(receipt) = slot.receipts.get(digest) {
                return Ok((Some(receipt.clone()), state));
            }
            if slot.published.is_none() {
                return Ok((None, state));
            }
            let published_count = slot.published_count;
            drop(state);
            let key = key::receipt(id, digest);
            let stored = match self.engine.get(&key)? {
                Some(bytes) => Some(record::open("an idempotency record", &key, &bytes)?),
                None => None,
            };
            state = self.writable(id, Durability::Durable)?;
            // What was published while the engine was read may have been missed there.
            if stored.is_some() || state.slot(id).published_count == published_count {
                return Ok((stored, state));
            }
        }
    }

    /// Gives a draft its seqs and message indexes behind the queued head.
    pub(super) fn place(&self, state: &mut State, draft: Draft<'_>) -> Placed {
        let id = draft.name.id();
        let now = self.now();
        let current = state.slot(id).queued.clone();
        let mut head = current.as_deref().cloned().unwrap_or_else(|| Head {
            next_seq: 1,
            next_message_index: 0,
            last_rewind: 0,
            created: now,
            last_activity: now,
            key: draft.name.key().map(str::to_owned),
            parent: None,
            title: None,
            title_source: TitleSource::Pending,
            tags: Vec::new(),
        });
        let first_seq = head.next_seq;
        let base = draft.base.unwrap_or(head.next_message_index);
        head.next_seq += draft.body.entries();
        head.next_message_index += draft.messages;
        head.last_activity = head.last_activity.max(now);
        if head.title_source == TitleSource::Pending
            && let Some((relative, title)) = title(draft.said)
        {
            head.title = Some(title);
            head.title_source = TitleSource::Message(base + relative);
        }
        let is_first = first_seq == head.parent.map_or(1, |(_, at_seq)| at_seq + 1);
        let origin = is_first.then(|| Origin {
            key: head.key.clone(),
            created: head.created,
            parent: head.parent,
            last_rewind: if head.parent.is_some() { head.last_rewind } else { 0 },
            first_message_index: head.next_message_index - draft.messages,
        });
        let next_message_index = head.next_message_index;
        let header = Header { time: now, base, next_message_index, cut: false, origin };
        let bytes = draft.body.len();
        let items = items::ops(id, first_seq, &draft.body);
        let record = Unsealed { conversation: id, first_seq, header, body: draft.body };
        let mut pending = Pending { record: Some(record), ops: items, bytes, ..Pending::default() };
        index_ops(id, current.as_deref(), &head, &mut pending);
        let last_seq = head.next_seq - 1;
        pending.head = Some((id, Some(Arc::new(head))));
        Placed { pending, first_seq, last_seq, base }
    }
}

/// Moves a conversation in the listing index, if its minute of last activity changed.
pub(super) fn index_ops(id: ConversationId, before: Option<&Head>, after: &Head, pending: &mut Pending) {
    let minute = |head: &Head| Timestamp::from_micros(head.last_activity).minute();
    let (old, new) = (before.map(minute), minute(after));
    if old == Some(new) {
        return;
    }
    if let Some(old) = old {
        pending.ops.push((key::index(old, id), None));
    }
    pending.ops.push((key::index(new, id), Some(Vec::new())));
}

/// A digest of 16 bytes.
pub(super) fn digest(bytes: &[u8]) -> [u8; 16] {
    *Uuid::new_v5(&DIGESTS, bytes).as_bytes()
}

fn check_expected(id: ConversationId, expected: ExpectedHead, head: Option<&Head>) -> Result<()> {
    let actual = head.map_or(0, |head| head.next_seq - 1);
    let detail = match expected {
        ExpectedHead::Any => return Ok(()),
        ExpectedHead::NewConversation if head.is_none() => return Ok(()),
        ExpectedHead::NewConversation => format!("it exists already, its last seq is {actual}"),
        ExpectedHead::At(seq) if head.is_some() && seq == actual => return Ok(()),
        ExpectedHead::At(0) if head.is_none() => return Ok(()),
        ExpectedHead::At(seq) if head.is_none() => format!("last seq {seq} was expected, but it does not exist"),
        ExpectedHead::At(seq) => format!("last seq {seq} was expected, it is {actual}"),
    };
    Err(Error::Conflict { conversation: id, actual, detail })
}

/// The title that the first user text gives, and its message.
fn title(messages: &[Message]) -> Option<(u64, String)> {
    (0..).zip(messages).filter(|(_, message)| message.role == Role::User).find_map(|(index, message)| {
        let text = message.chunks.iter().find_map(|chunk| match &chunk.body {
            model::Body::Text { text, .. } if !text.trim_start().is_empty() => Some(text),
            _ => None,
        });
        Some((index, title_of(text?)))
    })
}

/// The title that stored messages give, and the index of the one that gives it.
pub(super) fn first_title(messages: &[StoredMessage]) -> Option<(u64, String)> {
    messages.iter().find_map(|stored| {
        let (_, title) = title(std::slice::from_ref(&stored.message))?;
        Some((stored.index, title))
    })
}

/// The first line of a text, shortened.
fn title_of(text: &str) -> String {
    let line = text.trim_start().lines().next().unwrap_or_default().trim_end();
    match line.char_indices().nth(TITLE_CHARS).and_then(|(end, _)| line.get(..end)) {
        Some(start) => format!("{start}…"),
        None => line.to_owned(),
    }
}
