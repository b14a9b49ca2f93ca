//! A chat request to messages (`request`), and an answer's bytes to chunks (`decode`); both by `calls`.

mod calls;
pub(crate) mod decode;
pub(crate) mod request;
