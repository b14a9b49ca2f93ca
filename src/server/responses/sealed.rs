//! What a client keeps for this server: reasoning with the signature of the provider that made it, and compacted histories.
//!
//! A sealed text is base64 of a version, a MAC and JSON. Clients give it back as it is; what others wrote, or changed, opens for
//! nobody. The key of the MAC is the owner's, and is in the store: servers that share it open what each of them sealed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::model::{Chunk, Line, Message};
use crate::server::app::App;
use crate::server::proxy;
use crate::server::refusal::Refusal;

/// The first byte of what is sealed.
const VERSION: u8 = 1;
const MAC: usize = 32;
/// Seals for an owner.
#[derive(Clone)]
pub(super) struct Seal {
    key: [u8; 32],
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal").finish_non_exhaustive()
    }
}

/// What is sealed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "lowercase")]
pub(super) enum Sealed {
    /// A thought as a line of a transcript, and which model at which upstream had it.
    Thought { line: String, upstream: String, model: String },
    /// A summary of a history.
    Summary { text: String },
}

impl Seal {
    /// The seal of an owner. Servers that share a store have the same.
    pub(super) fn open(app: &App, owner: &str) -> Result<Self, Refusal> {
        Ok(Self { key: proxy::owner_key(app, owner)? })
    }

    fn mac(&self, payload: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        // The key has another use: what is sealed is no digest of that.
        mac.update(b"sealed\0");
        mac.update(&[VERSION]);
        mac.update(payload);
        Some(mac)
    }

    pub(super) fn seal(&self, sealed: &Sealed) -> Option<String> {
        let payload = serde_json::to_vec(sealed).ok()?;
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.mac(&payload)?.finalize().into_bytes());
        bytes.extend_from_slice(&payload);
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// `None` if it was not sealed here for this owner.
    pub(super) fn unseal(&self, text: &str) -> Option<Sealed> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (version, rest) = bytes.split_first()?;
        let (mac, payload) = rest.split_at_checked(MAC)?;
        if *version != VERSION || self.mac(payload)?.verify_slice(mac).is_err() {
            return None;
        }
        serde_json::from_slice(payload).ok()
    }

    pub(super) fn thought(&self, chunk: &Chunk, upstream: &str, model: &str) -> Option<String> {
        let line = serde_json::to_string(&Message::assistant([chunk.clone()])).ok()?;
        self.seal(&Sealed::Thought { line, upstream: upstream.to_owned(), model: model.to_owned() })
    }
}

/// The thought in a line of a transcript.
pub(super) fn thought(line: &str) -> Option<Chunk> {
    Line::from_json(line).ok()?.message.chunks.into_iter().next()
}
