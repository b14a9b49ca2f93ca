//! Receipts of idempotency keys, compared with the records that they name.

use std::ops::ControlFlow;

use crate::embedded::core::Core;
use crate::embedded::engine::Order;
use crate::embedded::stored::damage::damage_of;
use crate::error::{Error, Result};
use crate::model::ConversationId;
use crate::record::{self, FORGOTTEN, Head, Line, Receipt, key};

/// The receipt under a key of a conversation.
pub(crate) fn open(id: ConversationId, key: &[u8], bytes: &[u8]) -> Result<Receipt> {
    record::open("an idempotency record", key, bytes).map_err(|error| match error {
        Error::Corrupt { seq, detail, .. } => Error::Corrupt { conversation: Some(id.into()), seq, detail },
        other => other,
    })
}

impl Core {
    /// Whether the record of a receipt exists, and holds what the receipt states.
    pub(crate) fn is_proved(&self, id: ConversationId, head: &Head, receipt: &Receipt) -> Result<bool> {
        let is_own = head.first_seq() <= receipt.first_seq && receipt.last_seq < head.next_seq;
        if !is_own {
            return Ok(false);
        }
        let segments = self.segments(id, head)?;
        let mut is_proved = false;
        let read = self.record_at(&segments, receipt.first_seq, &mut |record| {
            // A message that was begun holds more than its key covers.
            let is_begun = matches!(record.lines().next(), Some(Ok((_, Line::Begin(begin)))) if begin.epoch.is_some());
            let digests = [record::digest(record.content()), FORGOTTEN];
            is_proved = record.first_seq == receipt.first_seq
                && (record.first_seq + record.len()).checked_sub(1) == Some(receipt.last_seq)
                && record.header.base == receipt.first_message_index
                && (is_begun || digests.contains(&receipt.content_digest));
            Ok(())
        });
        Ok(damage_of(read)?.is_ok() && is_proved)
    }

    /// Fails if the record of a receipt is not as stated: the receipt answers nothing then. A receipt of entries that
    /// the conversation does not have, or not yet, is another matter.
    pub(crate) fn check_proved(&self, id: ConversationId, receipt: &Receipt) -> Result<()> {
        let head = self.published_head(id)?;
        if let Some(head) = head.filter(|head| receipt.last_seq < head.next_seq)
            && !self.is_proved(id, &head, receipt)?
        {
            return Err(Error::Corrupt {
                conversation: Some(id.into()),
                seq: Some(receipt.first_seq),
                detail: "what was appended under this idempotency key is damaged or missing".to_owned(),
            });
        }
        Ok(())
    }

    /// The keys of receipts whose records are missing.
    pub(crate) fn unproved_receipts(&self, id: ConversationId, head: &Head) -> Result<Vec<Vec<u8>>> {
        let prefix = key::prefix(key::RECEIPT, id);
        let mut receipts = Vec::new();
        self.engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
            receipts.push((key.to_vec(), open(id, key, value).ok()));
            ControlFlow::Continue(())
        })?;
        let mut unproved = Vec::new();
        for (key, receipt) in receipts {
            let is_proved = receipt.map_or(Ok(false), |receipt| self.is_proved(id, head, &receipt))?;
            if !is_proved {
                unproved.push(key);
            }
        }
        Ok(unproved)
    }
}
