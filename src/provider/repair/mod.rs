//! A request that is refused, to one that is accepted.
//!
//! `request` reads it, renders it again and says what became of it; `kept` is what stays of it beside its messages,
//! `tools` what goes along to another wire, `unknown` the fields that did not reach the prompt.

mod kept;
pub(super) mod request;
mod tools;
mod unknown;
