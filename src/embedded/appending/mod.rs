//! Appends and open messages: checked, numbered, queued.

pub(crate) mod append;
pub(crate) mod create;
pub(crate) mod numbering;
pub(crate) mod stream;
pub(crate) mod writer;
