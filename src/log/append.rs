//! Appends: checked and numbered when they are queued.

use std::sync::MutexGuard;

use super::core::Core;
use super::limits::{check_key, check_messages, check_name};
use super::options::{AppendOptions, Durability, ExpectedHead, Receipt};
use super::place::Draft;
use super::state::{Pending, State};
use crate::error::{Error, Result};
use crate::model::{ConversationId, Message, Name};
use crate::record::{self, Body, Head, key};

impl Core {
    pub(crate) fn append(&self, name: &Name, messages: &[Message], options: &AppendOptions) -> Result<Receipt> {
        check_key(name)?;
        let content = check_messages(messages)?;
        let body = Body::messages(messages, content)?;
        let idempotency = options.idempotency_key.as_deref().map(|key| {
            check_name("an idempotency key", key)?;
            Ok::<_, Error>((key, record::digest(key.as_bytes()), record::digest(body.content())))
        });
        let idempotency = idempotency.transpose()?;
        let id = name.id();
        let _pin = self.pin(id)?;
        let mut state = self.writable(id, options.durability)?;
        if let Some((key, key_digest, content_digest)) = &idempotency {
            let (receipt, locked) = self.find_receipt(id, key_digest, state)?;
            state = locked;
            if let Some(receipt) = receipt {
                if ![*content_digest, record::FORGOTTEN].contains(&receipt.content_digest) {
                    return Err(Error::KeyReused { conversation: name.clone(), key: (*key).to_owned() });
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
                    message_indexes: receipt.message_indexes(),
                    durable: durable || wait,
                    duplicate: true,
                });
            }
        }
        let slot = state.slot(id);
        slot.check_owner(name)?;
        slot.check_free(name)?;
        check_expected(name, options.expected, slot.queued.as_deref())?;
        let draft = Draft { name, body, messages: messages.len() as u64, base: None, said: messages };
        let mut placed = self.place(&mut state, id, draft, |_| ());
        if let Some((_, key_digest, content_digest)) = idempotency {
            let Receipt { first_seq, last_seq, .. } = placed.receipt;
            let (first_message_index, messages) = (placed.base, messages.len() as u64);
            let receipt = record::Receipt { first_seq, last_seq, first_message_index, messages, content_digest };
            let key = key::receipt(id, &key_digest);
            let value = record::seal(&key, &receipt)?;
            placed.pending.ops.push((key, Some(value)));
            placed.pending.receipt = Some(key_digest);
            state.slot(id).receipts.insert(key_digest, receipt);
        }
        self.queue(state, placed, options.durability)
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
}

fn check_expected(name: &Name, expected: ExpectedHead, head: Option<&Head>) -> Result<()> {
    let actual = head.map_or(0, |head| head.next_seq - 1);
    let conversation = || name.clone();
    match expected {
        ExpectedHead::NewConversation if head.is_some() => {
            Err(Error::NameTaken { conversation: conversation(), actual })
        }
        ExpectedHead::At(seq) if seq != actual => {
            Err(Error::StaleHead { conversation: conversation(), expected: seq, actual })
        }
        ExpectedHead::Any | ExpectedHead::NewConversation | ExpectedHead::At(_) => Ok(()),
    }
}
