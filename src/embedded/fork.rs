//! Forks: conversations that read the first entries of another one.

use std::sync::Arc;

use super::core::Core;
use super::place::index_ops;
use super::segments::{Segment, owner};
use super::state::{Pending, Unsealed};
use crate::error::{Error, Result};
use crate::log::Durability;
use crate::log::limits::check_key;
use crate::model::{ConversationId, Name};
use crate::record::{self, Body, ForkPoint, Head, Header, Line, Origin, Parent, TitleSource, key};

impl Core {
    /// Makes a conversation that shares the entries up to `at_seq`.
    pub(crate) fn fork(&self, parent: &Name, at_seq: Option<u64>, child: &Name) -> Result<()> {
        check_key(child)?;
        let _structure = self.lock_structure();
        let parent_id = parent.id();
        let frozen = self.freeze(parent_id)?;
        let parent_head = frozen.head(parent)?;
        // A fork has the owner of its parent, unless its name says otherwise.
        let child = &match child.owner() {
            Some(_) => child.clone(),
            None => child.clone().with_owner(parent_head.owner.as_str()),
        };
        let last = parent_head.next_seq - 1;
        let at_seq = at_seq.unwrap_or(last);
        if at_seq == 0 || at_seq > last {
            return Err(Error::NotFound {
                what: format!("seq {at_seq} in conversation {parent}, whose last is {last}"),
            });
        }
        if child.id() == parent_id {
            // It is frozen here: to wait for it would never end.
            return Err(Error::NameTaken { conversation: child.clone(), actual: last });
        }
        let segments = self.segments(parent_id, &parent_head)?;
        let owner = owner(&segments, at_seq).unwrap_or(parent_id);
        let (next_message_index, last_hide) = if at_seq == last {
            (parent_head.next_message_index, parent_head.last_hide)
        } else {
            (self.next_message_index_at(&segments, at_seq)?, self.last_hide_at(&segments, &parent_head, at_seq)?)
        };
        let shared = self.parent_at(&segments, owner, at_seq)?;
        let keeps_title = match parent_head.title_source {
            TitleSource::Message(index) => index < next_message_index && last_hide == parent_head.last_hide,
            TitleSource::Caller | TitleSource::Pending => true,
        };
        let now = self.now();
        let mut head = Head {
            next_seq: at_seq + 1,
            next_message_index,
            last_hide,
            last_meta: parent_head.last_meta,
            created: now,
            last_activity: now,
            incarnation: 0,
            owner: child.owner().unwrap_or_default().to_owned(),
            key: child.key().map(str::to_owned),
            parent: Some(shared),
            title: parent_head.title.clone().filter(|_| keeps_title),
            title_source: if keeps_title { parent_head.title_source } else { TitleSource::Pending },
            tags: parent_head.tags.clone(),
            open: Vec::new(),
            interrupted: Vec::new(),
        };
        let id = child.id();
        let _pin = self.pin(id)?;
        let mut state = self.writable(id, Durability::Durable)?;
        if let Some(existing) = &state.slot(id).queued {
            return Err(Error::NameTaken { conversation: child.clone(), actual: existing.next_seq - 1 });
        }
        state.slot(id).check_free(child)?;
        head.incarnation = self.incarnation(&mut state, id, now);
        let origin = Origin {
            owner: head.owner.clone(),
            key: head.key.clone(),
            incarnation: head.incarnation,
            created: now,
            parent: head.parent,
            last_hide,
            last_meta: head.last_meta,
            first_message_index: next_message_index,
        };
        let base = next_message_index;
        let header =
            Header { time: now, base, next_message_index, commit: 0, cut: false, deleted: false, origin: Some(origin) };
        let record = Unsealed { conversation: id, first_seq: at_seq + 1, header, body: Body::new() };
        let mut pending = Pending { record: Some(record), ..Pending::default() };
        let fork = key::fork(owner, id);
        let point = ForkPoint { at_seq, parent: shared.incarnation, child: head.incarnation };
        let value = record::seal(&fork, &point)?;
        pending.ops.push((fork, Some(value)));
        index_ops(id, None, Some(&head), &mut pending.ops);
        pending.head = Some((id, Some(Arc::new(head))));
        self.queue_durable(state, pending)
    }

    /// What a fork at `at_seq`, which stands in the log of `owner`, is bound to.
    fn parent_at(&self, segments: &[Segment], owner: ConversationId, at_seq: u64) -> Result<Parent> {
        let mut commit = 0;
        self.record_at(segments, at_seq, &mut |record| {
            commit = record.header.commit;
            Ok(())
        })?;
        let incarnation = self.incarnation_of(owner)?;
        Ok(Parent { conversation: *owner.as_bytes(), at_seq, incarnation, commit })
    }

    /// The incarnation of a conversation, or of what is left of one that was deleted.
    fn incarnation_of(&self, id: ConversationId) -> Result<u64> {
        if let Some(head) = self.stored_head_or(id, Self::own_head)? {
            return Ok(head.incarnation);
        }
        self.tombstone(id)?.map(|tombstone| tombstone.incarnation).ok_or_else(|| Error::no_conversation(id))
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
}
