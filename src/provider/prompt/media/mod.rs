//! Images, sound and documents on their way out.
//!
//! `bytes` is what data URLs, base64 and first bytes tell; `picture` and `payload` are media as targets take them;
//! `attachment` puts them into a target's own parts, or words in their place.

pub(crate) mod attachment;
pub(crate) mod bytes;
pub(crate) mod payload;
pub(crate) mod picture;
