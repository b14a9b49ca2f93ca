//! Images, sound and documents on their way out.
//!
//! `bytes` is what data URLs, base64 and first bytes tell; `attachment` puts media into a target's own parts, or words in
//! their place.

pub(crate) mod attachment;
pub(crate) mod bytes;
