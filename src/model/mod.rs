//! What a conversation is: pure values, without bytes on disk, identity or order.
//!
//! A [`Message`] has a [`Role`] and [`Chunk`]s; a chunk is a piece of text, thinking, a tool call, a tool result, an image
//! and so on ([`Body`]). Their JSON is the transcript format ([`Message::from_json`], [`Line`]), in which unknown fields
//! and kinds survive. To add a kind of chunk: a variant of [`Body`], its rows in `transcript/` and in `record/v1.rs`.

/// JSON has the text of a type: `Display` writes it, `FromStr` reads it.
macro_rules! as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use as_text;

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
