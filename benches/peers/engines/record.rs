//! One append as one key and value, for peers that store it so.

use conversation_store::model::ConversationId;

use super::read::Found;
use super::rows::{Head, Job, Placed};

const ID_BYTES: usize = 16;

/// Key: conversation, first seq. Value: time, first message, then for each row message, chunk, role, length, line.
pub(super) fn record(job: &Job, head: &Head, placed: Placed) -> (Vec<u8>, Vec<u8>) {
    let mut key = job.conversation.as_bytes().to_vec();
    key.extend(placed.first_seq.to_be_bytes());
    let mut value = Vec::with_capacity(16 + job.bytes() + 10 * job.rows.len());
    value.extend(head.last_activity.to_be_bytes());
    value.extend(placed.message.to_be_bytes());
    for row in &job.rows {
        value.extend(u32::try_from(row.message).unwrap().to_be_bytes());
        value.extend(row.chunk.unwrap_or(u32::MAX).to_be_bytes());
        value.push(row.role);
        value.extend(u32::try_from(row.line.len()).unwrap().to_be_bytes());
        value.extend_from_slice(&row.line);
    }
    (key, value)
}

/// Shows the rows of a record.
pub(super) fn visit<'a>(key: &[u8], value: &'a [u8], mut visit: impl FnMut(Found<'a>)) {
    let mut seq = u64::from_be_bytes(*key[ID_BYTES..].first_chunk().unwrap());
    let mut rest = value;
    let time = i64::from_be_bytes(*take::<8>(&mut rest));
    let base = u64::from_be_bytes(*take::<8>(&mut rest));
    while !rest.is_empty() {
        let message = base + u64::from(u32::from_be_bytes(*take::<4>(&mut rest)));
        let chunk = Some(u32::from_be_bytes(*take::<4>(&mut rest))).filter(|chunk| *chunk != u32::MAX);
        let [role] = *take::<1>(&mut rest);
        let length = u32::from_be_bytes(*take::<4>(&mut rest)) as usize;
        let (line, after) = rest.split_at(length);
        rest = after;
        visit(Found { seq, time, message, chunk, role, line });
        seq += 1;
    }
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> &'a [u8; N] {
    let (taken, rest) = bytes.split_first_chunk().unwrap();
    *bytes = rest;
    taken
}

/// The keys of a conversation's records.
pub(super) fn range(conversation: ConversationId) -> (Vec<u8>, Vec<u8>) {
    let id = conversation.as_bytes();
    ([id.as_slice(), &[0; 8]].concat(), [id.as_slice(), &[u8::MAX; 8]].concat())
}

/// The key in the listing: newest minute first, then highest id first.
pub(super) fn listing(minute: i64, id: &[u8]) -> Vec<u8> {
    (!minute).to_be_bytes().into_iter().chain(id.iter().map(|byte| !byte)).collect()
}

/// The conversation of a key in the listing.
pub(super) fn listed(key: &[u8]) -> ConversationId {
    let id: [u8; ID_BYTES] = *key[8..].first_chunk().unwrap();
    ConversationId::from_bytes(id.map(|byte| !byte))
}
