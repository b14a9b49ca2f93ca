//! A request that is refused, to one that is accepted.
//!
//! `request` reads it, renders it again and says what became of it; it notices a request of another wire than was said. On one
//! wire the repair is the smallest edit: `align` finds what reads the same in both, `edits` holds the differences and puts the
//! text together, `smallest` makes those that a rule asks for. Between wires `tools` and `settings` are what goes along.
//! `report` gives each difference its line and its place.

mod align;
mod edits;
mod report;
pub(super) mod request;
mod settings;
mod smallest;
mod tools;
