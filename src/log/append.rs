//! What is appended, and under which conditions: checked and encoded before anything is queued, the same for every log.

use super::limits::{check_append, check_key, check_known, check_messages, check_name};
use super::options::{AppendOptions, Changes, Durability, ExpectedHead};
use crate::error::{Error, Result};
use crate::history::Cursor;
use crate::model::{Json, Message, Metadata, Name, Role};
use crate::record;
use crate::record::{Body, Head, Line, Meta, Record};

/// What an append is taken under.
pub(crate) struct Terms<'a> {
    pub(crate) durability: Durability,
    /// An append with this key that was taken before is not taken again.
    pub(crate) key: Option<Key<'a>>,
    expected: ExpectedHead,
}

/// An idempotency key, and the content that it was given with.
pub(crate) struct Key<'a> {
    key: &'a str,
    /// Under which it is stored.
    pub(crate) digest: [u8; 16],
    pub(crate) content_digest: [u8; 16],
}

/// The entries of an append, and its terms. Its changes are an entry that comes after them: it depends on the head.
pub(crate) fn append<'a>(
    name: &Name,
    messages: &[Message],
    changes: &Changes,
    options: &'a AppendOptions,
) -> Result<(Body, Terms<'a>)> {
    check_key(name)?;
    changes.check()?;
    let content = if messages.is_empty() && !changes.is_empty() { 0 } else { check_messages(messages)? };
    let body = Body::messages(messages, content)?;
    check_append(body.len())?;
    let durability = if changes.is_empty() { options.durability } else { Durability::Durable };
    let terms = Terms::new(options, durability, body.content())?;
    Ok((body, terms))
}

/// Whether a record is what an append of these messages with these changes stored, whatever it found.
pub(crate) fn is_stored_by(record: &Record<'_>, messages: &[Message], changes: &Changes) -> Result<bool> {
    let Some(Ok((_, Line::Meta(meta)))) = record.lines().last() else { return Ok(false) };
    let stored = meta.tags.as_ref().map(|tags| tags.0.as_slice());
    let has = |tag: &String| stored.is_some_and(|tags| tags.contains(&tag.as_str()));
    let is_added = |tag: &String| changes.add_tags.contains(tag);
    let are_tags_so = stored.is_some() == changes.has_tags()
        && changes.add_tags.iter().all(has)
        && !changes.remove_tags.iter().any(|tag| has(tag) && !is_added(tag));
    let mut body = Body::messages(messages, 0)?;
    body.change(&Meta {
        title: changes.title.as_deref().map(Some),
        tags: meta.tags,
        metadata: changes.metadata.as_ref().map(Json::as_str),
        previous: meta.previous,
    })?;
    Ok(are_tags_so && body.content() == record.content())
}

/// The entry that begins a message in this opening of the log, and its terms. A begin is always durable.
pub(crate) fn begin<'a>(
    name: &Name,
    role: Role,
    metadata: Metadata,
    epoch: u64,
    options: &'a AppendOptions,
) -> Result<(Body, Terms<'a>)> {
    let message = Message { metadata, ..Message::new(role, []) };
    check_key(name)?;
    check_known(&message)?;
    let mut body = Body::new();
    body.begin(0, role, Some(epoch), &message)?;
    // The key belongs to the message, in any opening of the store, and to no append.
    let mut content = Body::new();
    content.begin(0, role, None, &message)?;
    let terms = Terms::new(options, Durability::Durable, &[b"begin", content.content()].concat())?;
    Ok((body, terms))
}

impl<'a> Terms<'a> {
    /// `content`: what the idempotency key was given with.
    fn new(options: &'a AppendOptions, durability: Durability, content: &[u8]) -> Result<Self> {
        let key = options.idempotency_key.as_deref().map(|key| {
            check_name("an idempotency key", key)?;
            Ok::<_, Error>(Key { key, digest: record::digest(key.as_bytes()), content_digest: record::digest(content) })
        });
        Ok(Self { expected: options.expected, durability, key: key.transpose()? })
    }

    /// The content is this, with the entry of what changes.
    pub(crate) fn complete(&mut self, body: &Body) {
        if let Some(key) = &mut self.key {
            key.content_digest = record::digest(body.content());
        }
    }

    /// Fails unless the conversation is as expected.
    pub(crate) fn check_expected(&self, name: &Name, head: Option<&Head>) -> Result<()> {
        let actual = head.map_or(0, |head| head.next_seq.saturating_sub(1));
        let conversation = || name.clone();
        match self.expected {
            ExpectedHead::NewConversation if head.is_some() => {
                Err(Error::NameTaken { conversation: conversation(), actual })
            }
            ExpectedHead::At(seq) if seq != actual => {
                Err(Error::StaleHead { conversation: conversation(), expected: seq, actual })
            }
            ExpectedHead::AtCursor(at) => check_end(name, head, Some(at)),
            ExpectedHead::Any | ExpectedHead::NewConversation | ExpectedHead::At(_) => Ok(()),
        }
    }
}

impl Key<'_> {
    /// Fails if the key was given with other content. What was redacted since may have been the same.
    pub(crate) fn check_content(&self, name: &Name, receipt: &record::Receipt) -> Result<()> {
        if [self.content_digest, record::FORGOTTEN].contains(&receipt.content_digest) {
            return Ok(());
        }
        Err(self.reused(name))
    }

    /// As [`Self::check_content`], of an append with changes. `is_stored`: whether the record that the receipt names is of it.
    pub(crate) fn check_changed(
        &self,
        name: &Name,
        receipt: &record::Receipt,
        is_stored: impl FnOnce() -> Result<bool>,
    ) -> Result<()> {
        if receipt.content_digest == record::FORGOTTEN || is_stored()? { Ok(()) } else { Err(self.reused(name)) }
    }

    fn reused(&self, name: &Name) -> Error {
        Error::KeyReused { conversation: name.clone(), key: self.key.to_owned() }
    }
}

/// The key of a message's repetition, where the message under `key` that begins with a seq was cut off.
#[cfg(feature = "server")]
pub(crate) fn repetition_key(key: &str, first_seq: u64) -> String {
    format!("{:032x} after {first_seq}", u128::from_be_bytes(record::digest(key.as_bytes())))
}

/// Fails unless a conversation ends at this cursor.
pub(crate) fn check_end(name: &Name, head: Option<&Head>, at: Option<Cursor>) -> Result<()> {
    let Some(at) = at else { return Ok(()) };
    let actual = head.map_or(0, |head| head.next_seq.saturating_sub(1));
    if at.incarnation.is_some_and(|incarnation| head.is_none_or(|head| head.incarnation != incarnation)) {
        return Err(Error::StaleCursor { conversation: name.clone() });
    }
    if at.seq != actual {
        return Err(Error::StaleHead { conversation: name.clone(), expected: at.seq, actual });
    }
    Ok(())
}
