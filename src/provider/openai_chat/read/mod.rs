//! A chat request to messages (`request`), and an answer's bytes to chunks (`decode`, with what comes in pieces, `growing`);
//! both by `part` and `calls`.

mod calls;
pub(crate) mod decode;
mod growing;
mod part;
pub(crate) mod request;
