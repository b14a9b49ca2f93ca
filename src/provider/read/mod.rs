//! What every wire needs on the way in: requests to messages, and answers to chunks.
//!
//! A request: `parse` asks the wire, whose part is to fill `parsed`, which knows roles by any name; `declarations` are tools.
//! An answer: `decoder` finds objects in bytes (`framing`, `sse`, `documents`), joins characters that were cut in two
//! (`surrogates`), and gives each object to the wire, which writes an `answer`. `forms` is what wires call the same things, and
//! an error in place of an answer.

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
