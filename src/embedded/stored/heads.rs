//! Which conversations exist, as the engine has it: each head is proved by the records and indexes of its conversation.

use std::ops::ControlFlow;

use crate::embedded::core::Core;
use crate::embedded::engine::Order;
use crate::embedded::stored::damage::{damage_of, set_aside};
use crate::embedded::stored::incarnation::born;
use crate::embedded::stored::segments::Segment;
use crate::error::{Error, Result};
use crate::model::ConversationId;
use crate::record::{ForkPoint, Head, Header, Origin, Record, Tombstone, index_keys, key};

/// What exists under a name.
#[derive(Debug)]
pub(crate) enum Standing {
    /// Nothing.
    Vacant,
    /// A conversation that was deleted; its entries wait for the forks that read them.
    Deleted(Tombstone),
    /// A conversation.
    Alive(Box<Head>),
}

impl Core {
    /// The conversation of a name; none if it was deleted or never created.
    ///
    /// # Errors
    /// `Corrupt` if what is there does not decide it.
    pub(crate) fn sound_head(&self, id: ConversationId) -> Result<Option<Head>> {
        Ok(match self.standing(id)? {
            Standing::Alive(head) => Some(*head),
            Standing::Vacant | Standing::Deleted(_) => None,
        })
    }

    /// What is known of a deleted conversation, while something of it is left.
    pub(crate) fn tombstone(&self, id: ConversationId) -> Result<Option<Tombstone>> {
        Ok(match self.standing(id)? {
            Standing::Deleted(tombstone) => Some(tombstone),
            Standing::Vacant | Standing::Alive(_) => None,
        })
    }

    /// The head in the engine, as it is; damage is an error.
    pub(crate) fn stored_head(&self, id: ConversationId) -> Result<Option<Head>> {
        let key = key::head(id);
        self.engine.get(&key)?.map(|bytes| Head::open(&key, &bytes)).transpose()
    }

    /// What exists under a name.
    pub(crate) fn standing(&self, id: ConversationId) -> Result<Standing> {
        let tombstone_key = key::tombstone(id);
        let tombstone = self.engine.get(&tombstone_key)?.map(|bytes| Tombstone::open(&tombstone_key, &bytes));
        let head = damage_of(self.stored_head(id))?;
        if let Ok(Some(head)) = &head
            && !self.is_stale(id, head, tombstone.as_ref())?
        {
            return self.grown(id, head).map(|head| Standing::Alive(Box::new(head)));
        }
        let first = self.origin(id)?;
        let header = first.as_ref().filter(|header| header.origin.is_some());
        let origin = header.and_then(|header| header.origin.as_ref());
        match (tombstone, header, origin) {
            // A conversation that was created since.
            (Some(Ok(tombstone)), Some(header), Some(origin))
                if origin.incarnation > tombstone.incarnation && !header.deleted => {}
            (Some(Ok(tombstone)), ..) => return Ok(Standing::Deleted(tombstone)),
            (_, Some(header), Some(origin)) if header.deleted => {
                let Origin { parent, incarnation, .. } = origin;
                return Ok(Standing::Deleted(Tombstone { parent: *parent, incarnation: *incarnation }));
            }
            (Some(Err(_)), ..) => return Ok(Standing::Deleted(Tombstone { parent: None, incarnation: 0 })),
            (None, ..) => {}
        }
        self.derived_standing(id, head, origin.is_some())
    }

    /// What exists under a name that has no head, or a head that is damaged or of an earlier conversation.
    fn derived_standing(
        &self,
        id: ConversationId,
        head: std::result::Result<Option<Head>, Error>,
        is_known: bool,
    ) -> Result<Standing> {
        if !self.has_any(&key::prefix(key::RECORD, id))? {
            return match head {
                Ok(None) => Ok(Standing::Vacant),
                Ok(Some(_)) => Err(set_aside(id, None, "it has a head, and nothing that proves it")),
                Err(error) => Err(set_aside(id, None, &detail(&error))),
            };
        }
        let derived = if is_known { self.derived_head(id, None)? } else { None };
        let Some(derived) = derived else {
            return Err(set_aside(id, None, "neither its head nor its first record can be read"));
        };
        // Nothing of this conversation is left but its head; the records are of an earlier one.
        if head.as_ref().is_ok_and(|head| head.as_ref().is_some_and(|head| head.incarnation >= derived.incarnation)) {
            return Err(set_aside(id, None, "it has a head, and nothing that proves it"));
        }
        // Without any head, the records may belong to a conversation that was deleted.
        if matches!(head, Ok(None)) && !self.is_listed(id, &derived)? {
            return Err(set_aside(id, None, "it has records, but no head and no place in the list"));
        }
        Ok(Standing::Alive(Box::new(derived)))
    }

    /// Whether a head belongs to a conversation that was deleted: damage brings back what was erased.
    fn is_stale(&self, id: ConversationId, head: &Head, tombstone: Option<&Result<Tombstone>>) -> Result<bool> {
        if let Some(Ok(tombstone)) = tombstone
            && tombstone.incarnation >= head.incarnation
        {
            return Ok(true);
        }
        let mut is_proved = false;
        let (start, end) = (key::record(id, head.first_seq()), key::after(&key::prefix(key::RECORD, id)));
        let mut is_stale = false;
        self.engine.scan(&start..&end, Order::Ascending, &mut |key, value| {
            let Some((_, first_seq)) = key::parse_record(key) else { return ControlFlow::Continue(()) };
            let header = Record::open(id, first_seq, value).map(|record| record.header);
            let origin = header.as_ref().ok().and_then(|header| header.origin.as_ref());
            let older = |origin: &Origin| origin.incarnation < head.incarnation;
            match (&header, origin) {
                (Ok(_), Some(origin)) if older(origin) => return ControlFlow::Continue(()),
                (Ok(header), Some(origin)) => {
                    is_stale = origin.incarnation != head.incarnation || header.deleted;
                }
                (Ok(header), None) if header.commit <= born(head.incarnation) => {
                    return ControlFlow::Continue(());
                }
                _ => {}
            }
            is_proved = true;
            ControlFlow::Break(())
        })?;
        if is_proved {
            return Ok(is_stale);
        }
        // A conversation of this name was deleted, and its tombstone cannot be read. No record proves that the head is of a
        // later one.
        if matches!(tombstone, Some(Err(_))) {
            return Ok(true);
        }
        // A fork without entries of its own is known to its parent.
        let Some(parent) = head.parent.filter(|parent| parent.at_seq > 0) else { return Ok(true) };
        let key = key::fork(parent.id(), id);
        let point = self.engine.get(&key)?.and_then(|bytes| ForkPoint::open(&key, &bytes).ok());
        Ok(point.is_none_or(|point| point.child != head.incarnation))
    }

    /// The head, unless it ends before its records do: an append after it would overwrite them.
    fn grown(&self, id: ConversationId, head: &Head) -> Result<Head> {
        if !self.has_entries_from(id, head)? {
            return Ok(head.clone());
        }
        let derived = self.derived_head(id, Some(head))?;
        Ok(derived.filter(|derived| derived.next_seq > head.next_seq).unwrap_or_else(|| head.clone()))
    }

    /// Whether a conversation has entries of its own after the end of its head.
    pub(crate) fn has_entries_from(&self, id: ConversationId, head: &Head) -> Result<bool> {
        let mut found = false;
        let own = Segment { incarnation: head.incarnation, ..Segment::all(id) };
        let (start, end) = (key::record(id, head.next_seq), key::after(&key::prefix(key::RECORD, id)));
        self.engine.scan(&start..&end, Order::Ascending, &mut |key, value| {
            let Some((_, first_seq)) = key::parse_record(key) else { return ControlFlow::Continue(()) };
            // The origin of a fork is a record without entries: it is stored where the first entry will be.
            found = Record::open(id, first_seq, value).is_ok_and(|record| own.accepts(&record) && record.len() > 0);
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// The header of the first readable record of a conversation, if that record is the conversation's first: it has an
    /// origin.
    pub(crate) fn origin(&self, id: ConversationId) -> Result<Option<Header>> {
        let mut found: Option<Header> = None;
        let prefix = key::prefix(key::RECORD, id);
        self.engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
            let Some((_, first_seq)) = key::parse_record(key) else { return ControlFlow::Continue(()) };
            match Record::open(id, first_seq, value).map(|record| record.header) {
                Ok(header) => {
                    found = Some(header);
                    ControlFlow::Break(())
                }
                // A damaged record may have been the first one; a later record has no origin.
                Err(_) => ControlFlow::Continue(()),
            }
        })?;
        Ok(found)
    }

    /// Whether the list of conversations has it, in any place.
    fn is_listed(&self, id: ConversationId, head: &Head) -> Result<bool> {
        if let Some(place) = index_keys(id, head).first()
            && self.engine.get(place)?.is_some()
        {
            return Ok(true);
        }
        // Its last entries may be missing: only damage leads here.
        let mut found = false;
        let all = key::index_of(&head.owner_digest());
        self.engine.scan(&all..&key::after(&all), Order::Ascending, &mut |key, _| {
            found = key::parse_index(key).is_some_and(|(_, _, listed)| listed == id);
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// Whether a key with this prefix exists.
    pub(crate) fn has_any(&self, prefix: &[u8]) -> Result<bool> {
        let mut found = false;
        self.engine.keys(prefix..&key::after(prefix), Order::Ascending, &mut |_, _| {
            found = true;
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}

fn detail(error: &Error) -> String {
    match error {
        Error::Corrupt { detail, .. } => detail.clone(),
        other => other.to_string(),
    }
}
