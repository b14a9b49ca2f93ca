//! Forks: conversations that read the first entries of another one.

use std::sync::Arc;

use super::Families;
use crate::embedded::appending::header;
use crate::embedded::state::{Pending, Unsealed};
use crate::embedded::stored;
use crate::error::{Error, Result};
use crate::log::limits::check_key;
use crate::log::options::not_later;
use crate::log::{Durability, ForkAt, fork};
use crate::model::Name;
use crate::record::{self, Body, Head, Lag, key};

impl Families {
    /// Creates a conversation that shares the entries of another one.
    pub(crate) fn fork(&self, parent: &Name, at: ForkAt, child: &Name) -> Result<()> {
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
        let at_seq = fork::fork_point(parent, last, at.seq)?;
        if child.id() == parent_id {
            // It is frozen here: waiting for it would never end.
            return Err(Error::NameTaken { conversation: child.clone(), actual: last });
        }
        let segments = stored::segments(&*self.engine, parent_id, &parent_head)?;
        let (shared, past) = fork::past(&*self.engine, parent_id, &parent_head, &segments, at_seq)?;
        let now = not_later(at.time, self.numbering.now());
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
}
