//! What every wire needs on the way in: requests to messages, and answers to chunks.
//!
//! A request: `parse` asks the wire, whose part is to fill `parsed`; `roles` knows roles by any name, `declarations` tools.
//! An answer: `decoder` finds objects in bytes (`framing`, `sse`, `documents`), joins characters that were cut in two
//! (`halves`), and gives each object to the wire's `decode`, which writes an `answer` of `event`s; `failure` is an error in
//! place of an answer. `fields` is JSON with its bytes kept, for both. `forms` is what wires call the same things.

pub(super) mod answer;
pub(super) mod declarations;
pub(super) mod decode;
pub(super) mod decoder;
mod documents;
pub(super) mod event;
mod eventstream;
pub(super) mod failure;
pub(crate) mod fields;
pub(super) mod forms;
mod framing;
mod halves;
pub(super) mod parse;
pub(super) mod parsed;
pub(super) mod roles;
mod sse;
