//! A generateContent request to messages (`request`), and an answer's bytes to chunks (`decode`).

pub(crate) mod decode;
pub(crate) mod names;
pub(crate) mod part;
pub(crate) mod partial;
pub(crate) mod request;
pub(crate) mod response;
