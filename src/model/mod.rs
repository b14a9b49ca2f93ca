//! What a conversation is: pure values, without bytes on disk, identity or order.
//!
//! A [`Message`] has a [`Role`] and [`Chunk`]s; a chunk is a piece of text, thinking, a tool call, a tool result, an image
//! and so on ([`Body`]). Their JSON is the transcript format ([`Message::from_json`], [`Line`]), in which unknown fields
//! and kinds survive. To add a kind of chunk: a variant of [`Body`], its rows in `transcript/` and in `record/v1.rs`.

#[cfg(test)]
pub(crate) mod arbitrary;
mod chunk;
pub(crate) mod extra;
mod finish;
mod id;
mod json;
mod message;
mod started_by;
mod time;
mod transcript;

pub use chunk::{Audio, Body, Chunk, File, Image, Native, Output, Part, PartBody};
pub use extra::Extra;
pub use finish::FinishReason;
pub use id::{ConversationId, Name};
pub use json::{Json, JsonError};
pub use message::{Message, Metadata, Role};
pub use started_by::{NoLink, StartedBy};
pub use time::Timestamp;
pub(crate) use transcript::was_mended;
pub use transcript::{Expected, Line};
