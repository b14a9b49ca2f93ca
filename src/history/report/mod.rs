//! What was done to a conversation or a request, in words that people understand.
//!
//! The code that changes something states a [`Fact`]; `words` makes the sentences of all facts, so that all wires speak alike.
//! They stand here, below the wires, because `reconcile` reports too. To add one: a variant in `fact.rs`, with its rule and
//! severity there, and its words in `words.rs`.

mod fact;
mod line;
mod reasons;
mod words;

pub(crate) use fact::Fact;
pub use fact::{Rule, Severity};
pub use line::ReportLine;
pub(crate) use reasons::{
    Arguments, Cited, IdGone, Mended, Moved, Refusal, Surrogates, Taken, Thought, Unfit, Unsent, Unsigned,
};
