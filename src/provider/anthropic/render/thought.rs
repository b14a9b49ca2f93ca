//! A chunk of thinking, and how the provider wrote it.

use crate::model::{Body, Chunk};
use crate::provider::anthropic::manner::NAME;

/// A thinking chunk.
#[derive(Clone, Copy)]
pub(crate) struct Thought<'a> {
    pub(super) chunk: usize,
    pub(super) text: &'a str,
    /// Whether it has a signature, or encrypted data, of whomever.
    pub(super) is_opaque: bool,
    pub(super) own: Option<Form<'a>>,
}

/// How the provider wrote it.
#[derive(Clone, Copy)]
pub(super) enum Form<'a> {
    Signed { signature: &'a str },
    Redacted { data: &'a str },
}

impl<'a> Thought<'a> {
    pub(crate) fn of(chunk: &'a Chunk, at: usize) -> Option<Self> {
        let Body::Thinking { text, signature, redacted } = &chunk.body else { return None };
        let filled = |data: &'a Option<String>| data.as_deref().filter(|data| !data.is_empty());
        // What came from another wire, or was mended, does not fit its signature.
        let is_foreign = chunk.native.as_ref().is_some_and(|native| native.wire != NAME);
        let own = match (filled(signature), filled(redacted)) {
            (Some(signature), None) => Some(Form::Signed { signature }),
            (None, Some(data)) if text.is_empty() => Some(Form::Redacted { data }),
            _ => None,
        };
        let is_opaque = signature.is_some() || redacted.is_some();
        Some(Self { chunk: at, text, is_opaque, own: own.filter(|_| !is_foreign) })
    }
}
