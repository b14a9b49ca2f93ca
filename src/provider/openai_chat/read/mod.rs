//! A chat request to messages (`request`), and an answer's bytes to chunks (`decode`).

pub(crate) mod calls;
pub(crate) mod decode;
pub(crate) mod details;
pub(crate) mod growing;
pub(crate) mod held;
pub(crate) mod message;
pub(crate) mod part;
pub(crate) mod request;
pub(crate) mod thinking;
