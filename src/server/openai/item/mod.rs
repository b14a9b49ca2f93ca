//! Items, in and out. `normal` checks what a client sent and completes it; `take` makes messages of it; `give` makes items
//! of messages, whoever wrote them. What is known of the types stands in `types`.

mod give;
mod normal;
mod take;
mod types;

/// The wire whose items these are.
const WIRE: &str = "openai-responses";
/// The wire of a message's `native` that is an item without its parts, which stand in the chunks.
const FRAME: &str = "openai-conversations";

pub(super) use give::{Given, given, synthetic_place};
pub(super) use normal::{Taken, normal};
pub(super) use take::messages;
