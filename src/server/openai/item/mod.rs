//! Items, in and out. `normal` checks what a client sent and completes it; `take` makes messages of it; `give` makes items of
//! messages, no matter who wrote them, with what a text cites in OpenAI's words. `normal` has what is known of the types.

mod give;
mod normal;
mod take;

/// The wire of these items.
const WIRE: &str = "openai-responses";
/// The wire of a message's `native` that is an item without its parts, which are the chunks.
const FRAME: &str = "openai-conversations";

pub(crate) use give::{Given, annotations_of, base64_of, given, sound_part, synthetic_id as place_id, synthetic_place};
pub(crate) use normal::{Normal, Taken, normal, prefix};
pub(crate) use take::messages;
