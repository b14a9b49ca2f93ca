//! A Responses request to messages (`request`), and an answer's bytes to chunks (`decode`, with `growing` items); what the
//! model said, whole, is an `item`.

pub(crate) mod decode;
mod growing;
pub(crate) mod item;
pub(crate) mod request;
