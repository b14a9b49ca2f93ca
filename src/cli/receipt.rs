//! The receipt of an append, or a rewind.

use conversation_store::Receipt;
use conversation_store::model::Name;
use serde::Serialize;

use super::failure::Failure;
use super::output::Output;
use super::style::DIM;

/// A receipt, with the key that the caller used.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    receipt: &'a Receipt,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

/// Prints a receipt.
pub(super) fn print(name: &Name, receipt: &Receipt, output: &mut Output) -> Result<(), Failure> {
    let shown = Shown { receipt, key: name.key() };
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
