//! A Responses request to messages (`request`), and an answer's bytes to chunks (`decode`).

pub(crate) mod decode;
pub(crate) mod request;
