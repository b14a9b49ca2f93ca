//! Requests of Converse to messages (`request`), and an answer's bytes to chunks (`decode`, with `growing` blocks); both by
//! `block`.

pub(crate) mod block;
pub(crate) mod decode;
mod growing;
pub(crate) mod request;
