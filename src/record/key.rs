//! Keys of the engine: a kind byte, then fixed-width big-endian fields; and the digests in them.

use uuid::Uuid;

use crate::model::ConversationId;

pub(crate) const RECORD: u8 = b'c';
pub(crate) const HEAD: u8 = b'h';
pub(crate) const INDEX: u8 = b'i';
pub(crate) const RECEIPT: u8 = b'k';
pub(crate) const FORK: u8 = b'f';
pub(crate) const TOMBSTONE: u8 = b'd';
pub(crate) const ITEM: u8 = b'x';
const TAG: u8 = b't';
pub(crate) const UNFINISHED: u8 = b'u';
pub(crate) const LAGGING: u8 = b'l';
pub(crate) const META: u8 = b'm';

/// The indexes of conversations: a head states which keys of theirs its conversation has.
pub(crate) const INDEXES: [u8; 4] = [INDEX, TAG, UNFINISHED, LAGGING];

/// The store's name of its last commit.
pub(crate) const COMMIT: &str = "commit";
/// The store's name of its marker.
pub(crate) const STORE: &str = "store";
/// The store's name of its epoch: how often it was opened.
pub(crate) const EPOCH: &str = "epoch";
/// The store's name of what is present while a restore is under way.
pub(crate) const RESTORING: &str = "restoring";
/// The store's name of what it had lost when it was backed up.
pub(crate) const LOST: &str = "lost";

const ID_BYTES: usize = 16;

fn of(kind: u8, id: ConversationId, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + ID_BYTES + rest.len());
    key.push(kind);
    key.extend_from_slice(id.as_bytes());
    key.extend_from_slice(rest);
    key
}

/// Everything of one kind that belongs to a conversation begins with this.
pub(crate) fn prefix(kind: u8, id: ConversationId) -> Vec<u8> {
    of(kind, id, &[])
}

/// The record whose first entry has this seq.
pub(crate) fn record(id: ConversationId, first_seq: u64) -> Vec<u8> {
    of(RECORD, id, &first_seq.to_be_bytes())
}

/// The conversation's head.
pub(crate) fn head(id: ConversationId) -> Vec<u8> {
    of(HEAD, id, &[])
}

/// The receipt of the append with this idempotency key.
pub(crate) fn receipt(id: ConversationId, digest: &[u8; 16]) -> Vec<u8> {
    of(RECEIPT, id, digest)
}

/// `child` was forked from `parent`.
pub(crate) fn fork(parent: ConversationId, child: ConversationId) -> Vec<u8> {
    of(FORK, parent, child.as_bytes())
}

/// The conversation is being deleted.
pub(crate) fn tombstone(id: ConversationId) -> Vec<u8> {
    of(TOMBSTONE, id, &[])
}

/// An entry with a provider's item id of this digest.
pub(crate) fn item(id: ConversationId, digest: &[u8; 16], seq: u64) -> Vec<u8> {
    let mut key = of(ITEM, id, digest);
    key.extend_from_slice(&seq.to_be_bytes());
    key
}

/// The seq of an item's key.
pub(crate) fn parse_item(key: &[u8]) -> Option<u64> {
    let seq = key.get(1 + 2 * ID_BYTES..)?.try_into().ok()?;
    Some(u64::from_be_bytes(seq))
}

/// The listing index of an owner, given by its digest: newest first, and of the same microsecond the highest id first.
pub(crate) fn index(owner: &[u8; 16], micros: u64, id: ConversationId) -> Vec<u8> {
    let mut key = index_from(owner, micros);
    key.extend(id.as_bytes().iter().map(|byte| !byte));
    key
}

/// The first key of the listing index of an owner at a time.
pub(crate) fn index_from(owner: &[u8; 16], micros: u64) -> Vec<u8> {
    let mut key = index_of(owner);
    key.extend_from_slice(&(!micros).to_be_bytes());
    key
}

/// All of an owner's conversations in the listing index.
pub(crate) fn index_of(owner: &[u8; 16]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + 2 * ID_BYTES + 8);
    key.push(INDEX);
    key.extend_from_slice(owner);
    key
}

/// Owner, microseconds and conversation of a key of the listing index.
pub(crate) fn parse_index(key: &[u8]) -> Option<([u8; 16], u64, ConversationId)> {
    let (owner, rest) = key.strip_prefix(&[INDEX])?.split_first_chunk::<16>()?;
    let (micros, id) = rest.split_first_chunk::<8>()?;
    let id: [u8; ID_BYTES] = id.try_into().ok()?;
    Some((*owner, !u64::from_be_bytes(*micros), ConversationId::from_bytes(id.map(|byte| !byte))))
}

/// A conversation of an owner that has a tag, both given by their digests.
pub(crate) fn tag(owner: &[u8; 16], tag: &[u8; 16], id: ConversationId) -> Vec<u8> {
    let mut key = tagged(owner, tag);
    key.extend_from_slice(id.as_bytes());
    key
}

/// All of an owner's conversations that have a tag.
pub(crate) fn tagged(owner: &[u8; 16], tag: &[u8; 16]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + 3 * ID_BYTES);
    key.push(TAG);
    key.extend_from_slice(owner);
    key.extend_from_slice(tag);
    key
}

/// The conversation of a key of the index of tags.
pub(crate) fn parse_tag(key: &[u8]) -> Option<ConversationId> {
    let id: [u8; ID_BYTES] = key.get(1 + 2 * ID_BYTES..)?.try_into().ok()?;
    Some(ConversationId::from_bytes(id))
}

/// The conversation has messages that are not finished.
pub(crate) fn unfinished(id: ConversationId) -> Vec<u8> {
    of(UNFINISHED, id, &[])
}

/// The conversation's place in the list is not that of its last activity.
pub(crate) fn lagging(id: ConversationId) -> Vec<u8> {
    of(LAGGING, id, &[])
}

/// The conversation of a key of one of the indexes of conversations.
pub(crate) fn conversation(key: &[u8]) -> Option<ConversationId> {
    match *key.first()? {
        INDEX => parse_index(key).map(|(_, _, id)| id),
        TAG => parse_tag(key),
        _ => parse_id(key),
    }
}

/// The conversation of a key that has the kind byte and an id first.
pub(crate) fn parse_id(key: &[u8]) -> Option<ConversationId> {
    key.get(1..)?.first_chunk().copied().map(ConversationId::from_bytes)
}

/// The second id of a fork's key.
pub(crate) fn parse_fork(key: &[u8]) -> Option<ConversationId> {
    key.get(1 + ID_BYTES..)?.first_chunk().copied().map(ConversationId::from_bytes)
}

/// Conversation and first seq of a record's key.
pub(crate) fn parse_record(key: &[u8]) -> Option<(ConversationId, u64)> {
    let seq = key.get(1 + ID_BYTES..)?.try_into().ok()?;
    Some((parse_id(key)?, u64::from_be_bytes(seq)))
}

/// Something that belongs to the store as a whole.
pub(crate) fn meta(name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + name.len());
    key.push(META);
    key.extend_from_slice(name.as_bytes());
    key
}

/// The first key after all that begin with `prefix`.
pub(crate) fn after(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end
}

/// The namespace of digests. Frozen with format version 1.
const DIGESTS: Uuid = Uuid::from_u128(0x8e35_1cf6_5d0f_5f0a_9d5c_7f2e_41b7_a09c);
/// The content digest of an append whose content was redacted: its key is answered whatever the content.
pub(crate) const FORGOTTEN: [u8; 16] = [0; 16];

/// A digest of 16 bytes.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 16] {
    *Uuid::new_v5(&DIGESTS, bytes).as_bytes()
}
