//! Forks: conversations that read the first entries of another one.

use std::sync::Arc;

use super::Families;
use crate::embedded::appending::header;
use crate::embedded::state::{Pending, Unsealed};
use crate::embedded::stored;
use crate::error::{Error, Result};
use crate::log::limits::check_key;
use crate::log::{Durability, fork};
use crate::model::{ConversationId, Name};
use crate::record::{self, Body, Head, Lag, Parent, key};

impl Families {
    /// Creates a conversation that shares the entries up to `at_seq`.
    pub(crate) fn fork(&self, parent: &Name, at_seq: Option<u64>, child: &Name) -> Result<()> {
        check_key(child)?;
        let parent_id = parent.id();
        let owner = self.catalogue.published_head(parent_id)?.map(|head| head.owner.clone()).unwrap_or_default();
        // A fork has the owner of its parent, unless its name states another.
        let child = &match child.owner() {
            Some(_) => child.clone(),
            None => child.clone().with_owner(owner.as_str()),
        };
        let _held = self.hold(&[parent_id, child.id()])?;
        let frozen = self.freeze(parent_id)?;
        let parent_head = frozen.head(parent)?;
        if parent_head.owner != owner {
            // It was deleted meanwhile; another owner's has its id now.
            return Err(Error::no_conversation(parent));
        }
        let last = parent_head.next_seq - 1;
        let at_seq = fork::fork_point(parent, last, at_seq)?;
        if child.id() == parent_id {
            // It is frozen here: waiting for it would never end.
            return Err(Error::NameTaken { conversation: child.clone(), actual: last });
        }
        let (shared, past) = self.past(parent_id, &parent_head, at_seq)?;
        let now = self.numbering.now();
        let mut head = Head {
            next_seq: at_seq + 1,
            created: now,
            last_activity: now,
            incarnation: 0,
            owner: child.owner().unwrap_or_default().to_owned(),
            key: child.key().map(str::to_owned),
            parent: Some(shared),
            open: Vec::new(),
            interrupted: Vec::new(),
            lag: Lag::default(),
            ..past
        };
        let id = child.id();
        let _pin = self.catalogue.pin(id)?;
        let mut state = self.commit.writable(id, Durability::Durable)?;
        state.slots.slot(id).check_vacant(child)?;
        head.incarnation = self.numbering.incarnation(&mut state, id, now);
        let header = header(&head, now, head.next_seq, head.next_message_index, 0);
        let record = Unsealed { conversation: id, first_seq: head.next_seq, header, body: Body::new() };
        let mut pending = Pending { record: Some(record), ..Pending::default() };
        if at_seq > 0 {
            let fork = key::fork(shared.id(), id);
            let value = record::seal(&fork, &stored::point_of(shared, head.incarnation))?;
            pending.ops.push((fork, Some(value)));
        }
        pending.head = Some((id, Some(Arc::new(head))));
        self.commit.queue_durable(state, pending)
    }

    /// What a fork at `at_seq` is bound to, and the part of the head at that point that a fork takes over: what its
    /// records would give.
    fn past(&self, id: ConversationId, head: &Head, at_seq: u64) -> Result<(Parent, Head)> {
        if at_seq == 0 {
            let shared = Parent { conversation: *id.as_bytes(), at_seq, incarnation: head.incarnation, commit: 0 };
            return Ok((shared, fork::empty(head)));
        }
        let segments = stored::segments(&*self.engine, id, head)?;
        let segment = stored::segment_of(&segments, at_seq);
        let (owner, incarnation) =
            segment.map_or((id, head.incarnation), |segment| (segment.conversation, segment.incarnation));
        let mut commit = 0;
        stored::record_at(&*self.engine, &segments, at_seq, &mut |record| {
            commit = record.header.commit;
            Ok(())
        })?;
        let shared = Parent { conversation: *owner.as_bytes(), at_seq, incarnation, commit };
        let records = stored::records_of(&*self.engine, id, &segments);
        let past = fork::head_at(head, at_seq, &records, || stored::names_in(&*self.engine, id, &segments, at_seq))?;
        Ok((shared, past))
    }
}
