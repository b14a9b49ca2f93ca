//! The parameters of a request, as the wire of a model takes them.
//!
//! `table` says for each parameter what becomes of it on each wire; the documentation has the same table. Where a wire has it,
//! `provider::parameters` knows. `kinds` is what values parameters have, `sheet` a request to a model that is being filled in,
//! with the values that several wires read: the format of a text, reasoning. A file for each wire fills in what is its own:
//! `chat`, `own` (Responses), `anthropic`, `gemini`, `converse`. `rendered` goes through the table, `echo` is what a response
//! repeats of its request.

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
pub(super) mod tests;

pub(super) use echo::echo;
pub(super) use rendered::{Rendered, rendered};
