//! Heads as the engine has them, or as they are derived where damage took them.

use std::ops::ControlFlow;

use super::core::Core;
use crate::embedded::engine::Order;
use crate::error::{Error, Result};
use crate::model::ConversationId;
use crate::record::{Head, Record, key};

impl Core {
    /// The head in the engine: it may be ahead of what is durable. One that is damaged or missing is derived from the
    /// records.
    pub(super) fn stored_head(&self, id: ConversationId) -> Result<Option<Head>> {
        self.stored_head_or(id, Self::derived_head)
    }

    /// The head in the engine, or what is derived in place of one that is damaged or missing.
    pub(super) fn stored_head_or(
        &self,
        id: ConversationId,
        derived: impl FnOnce(&Self, ConversationId) -> Result<Option<Head>>,
    ) -> Result<Option<Head>> {
        let key = key::head(id);
        let Some(bytes) = self.engine.get(&key)? else {
            let is_lost = self.has_any(&key::prefix(key::RECORD, id))? && self.tombstone(id)?.is_none();
            return if is_lost { derived(self, id) } else { Ok(None) };
        };
        match Head::open(&key, &bytes) {
            Ok(head) => Ok(Some(head)),
            Err(Error::Corrupt { detail, .. }) => match derived(self, id)? {
                Some(head) => Ok(Some(head)),
                None => Err(Error::Corrupt { conversation: Some(id), seq: None, detail }),
            },
            Err(error) => Err(error),
        }
    }

    /// The head in the engine, unless it ends before the records do: what would be appended behind it would overwrite
    /// them.
    pub(super) fn sound_head(&self, id: ConversationId) -> Result<Option<Head>> {
        match self.stored_head(id)? {
            Some(head) if self.has_entries_from(id, head.next_seq)? => {
                Ok(self.derived_head(id)?.filter(|derived| derived.next_seq > head.next_seq).or(Some(head)))
            }
            head => Ok(head),
        }
    }

    /// Whether a conversation has entries of its own from this seq on.
    pub(super) fn has_entries_from(&self, id: ConversationId, seq: u64) -> Result<bool> {
        let mut found = false;
        let start = key::record(id, seq);
        self.engine.scan(&start..&key::after(&key::prefix(key::RECORD, id)), Order::Ascending, &mut |key, value| {
            // The origin of a fork is a record without entries: it stands where the first one will.
            let first_seq = key::parse_record(key).map_or(seq, |(_, first_seq)| first_seq);
            found = first_seq > seq || Record::open(id, first_seq, value).map_or(true, |record| record.len() > 0);
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// Whether there is a key that begins like this.
    pub(super) fn has_any(&self, prefix: &[u8]) -> Result<bool> {
        let mut found = false;
        self.engine.keys(prefix..&key::after(prefix), Order::Ascending, &mut |_, _| {
            found = true;
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}
