//! The way out, as far as all wires share it: from a conversation to messages that a wire can write in its own form.
//!
//! In the order of the work:
//!
//! - `options`: what is wanted (`option_table` names them for users); `render`: the steps of the way.
//! - What options take out of a prompt: `left_out`. The newest part only: `window/`.
//! - `call_text`: calls that are texts stay texts, and are reported.
//! - `turns`: calls are paired with their answers, ids and names become the target's (`tool_id`), arguments become objects
//!   (`arguments`).
//! - What the wires' renderers share: `alternating` (user and assistant take turns), `origin` (whose a message is), `foreign`
//!   (what a provider's items tell others), `output` (what tools gave back), `media/`, `tools` (their declarations).

pub(super) mod alternating;
pub(super) mod arguments;
mod call_text;
pub(super) mod foreign;
mod left_out;
pub(super) mod media;
pub(super) mod option_table;
pub(super) mod options;
pub(super) mod origin;
pub(super) mod output;
pub(super) mod render;
pub(super) mod tool_id;
pub(super) mod tools;
pub(super) mod turns;
pub(crate) mod window;
