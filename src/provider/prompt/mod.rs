//! What every wire needs on the way out: from a conversation to messages that are ready to be said in a wire's words.
//!
//! In the order of the work: `options` say what is wanted (`option_table` names them for users); `render` writes a summary (`summary`), words in the place of
//! images (`imageless`), long results (`shortened`), rounds of tools that are over (`rounds`) and older thinking (`older`),
//! and cuts the window (`window`); then the wire's own renderer takes `turns`, in which calls have met their answers, ids and names are the target's (`tool_id`), arguments are
//! objects (`arguments`), whose a message is is known (`origin`), what a provider's own items tell others (`own`), tools are declared (`tools`), and attachments are at hand as parts (`media`); `thinking` and
//! `written` are the last steps.

pub(super) mod arguments;
mod imageless;
pub(super) mod media;
mod older;
pub(super) mod option_table;
pub(super) mod options;
pub(super) mod origin;
pub(super) mod own;
pub(super) mod render;
mod rounds;
mod shortened;
mod summary;
pub(super) mod thinking;
pub(super) mod tool_id;
pub(super) mod tools;
pub(super) mod turns;
mod window;
pub(super) mod written;
