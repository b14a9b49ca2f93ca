//! A Messages request to messages (`request`), and an answer's bytes to chunks (`decode`).

pub(crate) mod block;
pub(crate) mod decode;
pub(crate) mod growing;
pub(crate) mod message;
pub(crate) mod native;
pub(crate) mod request;
pub(crate) mod result;
pub(crate) mod source;
