//! Changes to whole conversations and to those that share entries: forks, deletion, redaction.

pub(crate) mod delete;
pub(crate) mod fork;
pub(crate) mod frozen;
pub(crate) mod held;
pub(crate) mod redact;
pub(crate) mod redactions;
