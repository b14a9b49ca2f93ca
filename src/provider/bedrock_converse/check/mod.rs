//! Does Converse accept a request? The request as a whole, its messages and blocks, who speaks when, calls and results.

pub(crate) mod block;
pub(crate) mod document;
mod message;
pub(crate) mod request;
pub(crate) mod seen;
mod sequence;
mod text;
