//! A generateContent request to messages (`request`), and an answer's bytes to chunks (`decode`, with calls in pieces,
//! `partial`); both by `part`.

pub(crate) mod decode;
mod part;
mod partial;
pub(crate) mod request;
