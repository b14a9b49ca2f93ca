//! Digests: of idempotency keys, of what was appended with them, of item ids.

use uuid::Uuid;

/// The namespace of digests. Frozen with format version 1.
const DIGESTS: Uuid = Uuid::from_u128(0x8e35_1cf6_5d0f_5f0a_9d5c_7f2e_41b7_a09c);
/// The content digest of an append whose content was redacted: its key is answered whatever the content.
pub(crate) const FORGOTTEN: [u8; 16] = [0; 16];

/// A digest of 16 bytes.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 16] {
    *Uuid::new_v5(&DIGESTS, bytes).as_bytes()
}
