//! A request that is refused, to one that is accepted.
//!
//! `request` reads it, renders it again and says what became of it. On one wire the repair is the smallest edit: `align`
//! finds what reads the same in both, `edits` holds the differences, `smallest` makes those that a rule asks for, `named`
//! gives each its line, and `outline` puts the text together. Between wires `tools` is what goes along, `unknown` the
//! fields that did not reach the prompt. `guess` notices a request of another
//! wire than was said, and `places` finds where in the request the lines of the report belong.

mod align;
mod edits;
pub(super) mod guess;
mod named;
mod outline;
mod places;
pub(super) mod request;
mod smallest;
mod tools;
mod unknown;
