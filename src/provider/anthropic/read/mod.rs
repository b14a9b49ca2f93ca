//! A Messages request to messages (`request`), and an answer's bytes to chunks (`decode`, with `growing` blocks); both by
//! `block`.

mod block;
pub(crate) mod decode;
mod growing;
pub(crate) mod request;
