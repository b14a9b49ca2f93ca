//! What an append, or a rewind, got.

use conversation_store::Receipt;
use conversation_store::model::Name;
use serde::Serialize;

use super::failure::Failure;
use super::output::{DIM, Output};

#[derive(Serialize)]
struct Shown<'a> {
    conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    first_seq: u64,
    last_seq: u64,
    message_indexes: &'a [u64],
    durable: bool,
    duplicate: bool,
}

/// Prints a receipt.
pub(super) fn print(name: &Name, receipt: &Receipt, output: &mut Output) -> Result<(), Failure> {
    let shown = Shown {
        conversation: receipt.conversation.to_string(),
        key: name.key(),
        first_seq: receipt.first_seq,
        last_seq: receipt.last_seq,
        message_indexes: &receipt.message_indexes,
        durable: receipt.durable,
        duplicate: receipt.duplicate,
    };
    output.result(&shown, || text(receipt))
}

fn text(receipt: &Receipt) -> String {
    let indexes = match receipt.message_indexes.as_slice() {
        [] => String::new(),
        [index] => format!("message {index}, "),
        [first, .., last] => format!("messages {first} to {last}, "),
    };
    let seqs = match (receipt.first_seq, receipt.last_seq) {
        (first, last) if first == last => format!("seq {first}"),
        (first, last) => format!("seq {first} to {last}"),
    };
    let duplicate = if receipt.duplicate { format!("{DIM}, was stored already{DIM:#}") } else { String::new() };
    format!("{indexes}{seqs}{duplicate}")
}
