//! What happens to a conversation as a whole: rewind, title, fork.

use std::sync::{Arc, PoisonError};

use super::append::{Draft, Durability, Placed, Receipt, first_title, index_ops};
use super::limits::{check_key, check_name};
use super::read::Segment;
use super::state::{Pending, Unsealed};
use super::writer::Closed;
use super::{Core, Pin};
use crate::error::{Error, Result};
use crate::model::{ConversationId, Name};
use crate::record::{self, Body, Head, Header, Line, Meta, Origin, Rewind, TitleSource, key};

/// Keeps a conversation as it is: nothing is queued for it, and all that was is durable.
pub(super) struct Frozen<'a> {
    pin: Pin<'a>,
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.pin.core.lock().slot(self.pin.id).frozen = false;
        self.pin.core.room.notify_all();
    }
}

impl Core {
    pub(super) fn freeze(&self, id: ConversationId) -> Result<Frozen<'_>> {
        let pin = self.pin(id)?;
        let mut state = self.writable(id, Durability::Durable)?;
        state.slot(id).frozen = true;
        let frozen = Frozen { pin };
        if state.slot(id).pending > 0 {
            self.queue_durable(state, Pending::default())?;
        }
        Ok(frozen)
    }

    /// Hides every message from `to` on that exists now.
    pub(crate) fn rewind(&self, name: &Name, to: u64) -> Result<Receipt> {
        let id = name.id();
        let _frozen = self.freeze(id)?;
        let head = self.published_head(id)?.ok_or_else(|| Error::no_conversation(name))?;
        if !self.is_visible(id, &head, to)? {
            return Err(Error::NotFound { what: format!("a visible message {to} in conversation {name}") });
        }
        let rewind = Rewind { to, end: head.next_message_index, previous: head.last_rewind };
        let draft = Draft { name, body: Body::rewind(rewind)?, messages: 0, base: None, said: &[] };
        let mut state = self.lock();
        state.check_writable()?;
        let Placed { mut pending, first_seq, last_seq, .. } = self.place(&mut state, draft);
        self.change_head(&mut pending, |head| {
            head.last_rewind = first_seq;
            if matches!(head.title_source, TitleSource::Message(index) if index >= to) {
                (head.title, head.title_source) = (None, TitleSource::Pending);
            }
        });
        let slot = state.slot(id);
        let rewound: Vec<u64> = slot.writers.keys().copied().filter(|index| *index >= to).collect();
        for index in rewound {
            slot.writers.remove(&index).inspect(|writer| writer.close(Closed::Rewound));
        }
        self.queue_durable(state, pending)?;
        Ok(receipt(id, first_seq, last_seq))
    }

    /// Sets the title, or gives it back to the first user text.
    pub(crate) fn set_title(&self, name: &Name, new: Option<&str>) -> Result<Receipt> {
        if let Some(new) = new {
            check_name("a title", new)?;
        }
        let id = name.id();
        let _frozen = self.freeze(id)?;
        let head = self.published_head(id)?.ok_or_else(|| Error::no_conversation(name))?;
        let derived = if new.is_none() { self.derived_title(id, &head)? } else { None };
        let body = Body::meta(&Meta { title: Some(new), tags: None })?;
        let draft = Draft { name, body, messages: 0, base: None, said: &[] };
        let mut state = self.lock();
        state.check_writable()?;
        let Placed { mut pending, first_seq, last_seq, .. } = self.place(&mut state, draft);
        self.change_head(&mut pending, |head| {
            (head.title, head.title_source) = match (new, derived) {
                (Some(new), _) => (Some(new.to_owned()), TitleSource::Caller),
                (None, Some((index, title))) => (Some(title), TitleSource::Message(index)),
                (None, None) => (None, TitleSource::Pending),
            };
        });
        self.queue_durable(state, pending)?;
        Ok(receipt(id, first_seq, last_seq))
    }

    /// The title that the visible messages give.
    fn derived_title(&self, id: ConversationId, head: &Head) -> Result<Option<(u64, String)>> {
        Ok(first_title(&self.group(id, head, Vec::new())?.messages))
    }

    pub(super) fn change_head(&self, pending: &mut Pending, change: impl FnOnce(&mut Head)) {
        if let Some((_, Some(head))) = &mut pending.head {
            change(Arc::make_mut(head));
        }
    }

    /// Makes a conversation that shares the entries up to `at_seq`.
    pub(crate) fn fork(&self, parent: &Name, at_seq: Option<u64>, child: &Name) -> Result<()> {
        check_key(child)?;
        let _structure = self.structure.lock().unwrap_or_else(PoisonError::into_inner);
        let parent_id = parent.id();
        let _frozen = self.freeze(parent_id)?;
        let parent_head = self.published_head(parent_id)?.ok_or_else(|| Error::no_conversation(parent))?;
        let last = parent_head.next_seq - 1;
        let at_seq = at_seq.unwrap_or(last);
        if at_seq == 0 || at_seq > last {
            return Err(Error::NotFound {
                what: format!("seq {at_seq} in conversation {parent}, whose last is {last}"),
            });
        }
        if child.id() == parent_id {
            // It is frozen here: to wait for it would never end.
            return Err(exists_already(parent_id, last));
        }
        let segments = self.segments(parent_id, &parent_head)?;
        let owner = segments.iter().find(|segment| (segment.first..=segment.last).contains(&at_seq));
        let owner = owner.map_or(parent_id, |segment| segment.conversation);
        let (next_message_index, last_rewind) = if at_seq == last {
            (parent_head.next_message_index, parent_head.last_rewind)
        } else {
            (self.next_message_index_at(&segments, at_seq)?, self.last_rewind_at(&segments, &parent_head, at_seq)?)
        };
        let keeps_title = match parent_head.title_source {
            TitleSource::Message(index) => index < next_message_index && last_rewind == parent_head.last_rewind,
            TitleSource::Caller | TitleSource::Pending => true,
        };
        let now = self.now();
        let head = Head {
            next_seq: at_seq + 1,
            next_message_index,
            last_rewind,
            created: now,
            last_activity: now,
            key: child.key().map(str::to_owned),
            parent: Some((*owner.as_bytes(), at_seq)),
            title: parent_head.title.clone().filter(|_| keeps_title),
            title_source: if keeps_title { parent_head.title_source } else { TitleSource::Pending },
            tags: parent_head.tags.clone(),
        };
        let id = child.id();
        let _pin = self.pin(id)?;
        let mut state = self.writable(id, Durability::Durable)?;
        if let Some(existing) = &state.slot(id).queued {
            return Err(exists_already(id, existing.next_seq - 1));
        }
        state.slot(id).check_free(id)?;
        let origin = Origin {
            key: head.key.clone(),
            created: now,
            parent: head.parent,
            last_rewind,
            first_message_index: next_message_index,
        };
        let base = next_message_index;
        let header = Header { time: now, base, next_message_index, cut: false, origin: Some(origin) };
        let record = Unsealed { conversation: id, first_seq: at_seq + 1, header, body: Body::new() };
        let mut pending = Pending { record: Some(record), ..Pending::default() };
        let fork = key::fork(owner, id);
        let value = record::seal(&fork, &at_seq)?;
        pending.ops.push((fork, Some(value)));
        index_ops(id, None, &head, &mut pending);
        pending.head = Some((id, Some(Arc::new(head))));
        self.queue_durable(state, pending)
    }

    /// The index of the next message as it was right after `at_seq`.
    pub(super) fn next_message_index_at(&self, segments: &[Segment], at_seq: u64) -> Result<u64> {
        let mut next = None;
        self.record_at(segments, at_seq, &mut |record| {
            for line in record.lines() {
                let (seq, line) = line?;
                let begins = match &line {
                    Line::Chunk(chunk) if chunk.header.is_some() => Some(chunk.message),
                    Line::Begin(begin) => Some(begin.message),
                    _ => None,
                };
                match begins {
                    Some(relative) if seq <= at_seq => next = Some(record.message_index(relative) + 1),
                    // A record with later beginnings: its header counts them too.
                    Some(relative) => next = next.or_else(|| Some(record.message_index(relative))),
                    None => {}
                }
            }
            next = next.or(Some(record.header.next_message_index));
            Ok(())
        })?;
        next.ok_or_else(|| Error::NotFound { what: format!("seq {at_seq}") })
    }

    /// The last rewind at or before `at_seq`.
    fn last_rewind_at(&self, segments: &[Segment], head: &Head, at_seq: u64) -> Result<u64> {
        let mut last = head.last_rewind;
        while last > at_seq {
            last = self.rewind_at(segments, last)?.previous;
        }
        Ok(last)
    }

    pub(super) fn is_visible(&self, id: ConversationId, head: &Head, index: u64) -> Result<bool> {
        let segments = self.segments(id, head)?;
        let mut last = head.last_rewind;
        while last > 0 {
            let rewind = self.rewind_at(&segments, last)?;
            // Earlier rewinds end earlier: none of them hides what came after.
            if rewind.end <= index {
                break;
            }
            if rewind.to <= index {
                return Ok(false);
            }
            last = rewind.previous;
        }
        Ok(index < head.next_message_index)
    }

    fn rewind_at(&self, segments: &[Segment], seq: u64) -> Result<Rewind> {
        let mut found = None;
        self.record_at(segments, seq, &mut |record| {
            for line in record.lines() {
                match line? {
                    (at, Line::Rewind(rewind)) if at == seq => found = Some(rewind),
                    _ => {}
                }
            }
            Ok(())
        })?;
        // A chain that does not go back would never end.
        found.filter(|rewind| rewind.previous < seq).ok_or_else(|| Error::Corrupt {
            conversation: segments.last().map(|segment| segment.conversation),
            seq: Some(seq),
            detail: "a rewind entry is expected here".to_owned(),
        })
    }
}

fn exists_already(conversation: ConversationId, actual: u64) -> Error {
    let detail = format!("it exists already, its last seq is {actual}: a fork needs a new name");
    Error::Conflict { conversation, actual, detail }
}

pub(super) fn receipt(conversation: ConversationId, first_seq: u64, last_seq: u64) -> Receipt {
    Receipt { conversation, first_seq, last_seq, message_indexes: Vec::new(), durable: true, duplicate: false }
}
