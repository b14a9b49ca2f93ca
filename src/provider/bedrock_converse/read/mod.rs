//! Requests of Converse, and its answers, to messages.

mod block;
pub(crate) mod decode;
mod growing;
pub(crate) mod media;
pub(crate) mod request;
mod result;
