//! The parameters of a request, as the wire of a model takes them.
//!
//! `table` says for each parameter what becomes of it on each wire; the documentation has the same table. `kinds` is what values
//! parameters have, `sheet` a request to a model that is being filled in. A file
//! for each wire fills it in: `chat`, `own` (Responses), `anthropic`, `gemini`, `converse`; `wishes` are the values that several of
//! them read: the format of a text, reasoning. `rendered` goes through the table, `echo` is what a response repeats of its request.

mod anthropic;
mod chat;
mod converse;
mod echo;
mod gemini;
pub(super) mod kinds;
mod own;
mod rendered;
mod sheet;
mod table;
#[cfg(test)]
mod tests;
mod wishes;

pub(super) use echo::echo;
pub(super) use rendered::{Rendered, rendered};
