//! What every wire needs on the way in: requests to messages, and answers to chunks.
//!
//! A request: `parse` calls the wire, and the wire fills `parsed`. `parsed` knows all names of the roles. `unnamed` gives
//! results without an id to open calls. `declarations` reads tools. An answer: `decoder` finds objects in bytes (`framing`,
//! `sse`, `documents`), joins characters that were cut in two (`surrogates`), and gives each object to the wire, which writes
//! an `answer`. `forms` has the wires' names for the same things, and the forms of errors in place of an answer.

pub(super) mod answer;
pub(super) mod declarations;
pub(super) mod decoder;
mod documents;
mod eventstream;
pub(super) mod forms;
mod framing;
pub(super) mod parse;
pub(super) mod parsed;
mod sse;
mod surrogates;
mod unnamed;
