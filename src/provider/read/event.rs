//! What decoding gives, piece by piece.

use crate::model::{Chunk, FinishReason, Json, Metadata};

/// What a provider's bytes say.
///
/// An answer is one [`Event::Begin`], any number of deltas, and, once the bytes have ended, one [`Event::Finish`].
/// [`MessageWriter::ingest`](crate::MessageWriter::ingest) takes them as they are.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// What is known of the message as a whole: model, provider, the provider's id; other fields in `extra`.
    Begin(Metadata),
    /// A piece of a chunk, or a whole one: what [`MessageWriter::push`](crate::MessageWriter::push) takes.
    Delta {
        /// The chunk's index in the message, in order of first appearance.
        chunk_index: u32,
        /// The piece.
        chunk: Chunk,
    },
    /// The end.
    Finish {
        /// Why the model stopped: `error` if an error came; `interrupted` if the bytes ended before the answer did.
        reason: Option<FinishReason>,
        /// Token counts, as the provider wrote them.
        usage: Option<Json>,
    },
}
