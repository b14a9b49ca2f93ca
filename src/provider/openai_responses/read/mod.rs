//! A Responses request to messages (`request`), and an answer's bytes to chunks (`decode`).

pub(crate) mod decode;
pub(crate) mod given;
pub(crate) mod growing;
pub(crate) mod request;
pub(crate) mod said;
