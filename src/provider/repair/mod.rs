//! Makes a request that is accepted from one that is refused.
//!
//! `request` reads it, renders it again and says what happened to it. It notices if the request is of another wire than the
//! caller said. On one wire the repair is the smallest edit: `align` finds what reads the same in both, `said` what moves from
//! one item to another, `edits` holds the differences, those of the messages in `list`, and `outline` puts the text together.
//! `smallest` makes those that a rule asks for; `rename` finds the names of tools, `marks` keeps the marks of prompt caches.
//! Between wires, `tools` and `settings` take over what is beside the messages. `report` gives each difference its line and its
//! place.

mod align;
mod edits;
mod list;
mod marks;
mod outline;
mod rename;
mod report;
pub(super) mod request;
mod said;
mod settings;
mod smallest;
mod tools;
