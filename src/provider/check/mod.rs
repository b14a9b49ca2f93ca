//! Is a request accepted? What every wire needs to say so; the rules themselves stand in the wires and dialects.
//!
//! `rule` is one rule, how tables of them are declared, and what a dialect makes of its wire's; `finding` where a request
//! breaks one and how badly, `findings` a bounded number of them; `shape` the types of the official packages as tables; `value`
//! what is asked of any value; `judge` the function that asks the wire and then the dialect; `not_json` the
//! error of a text that cannot be read.

pub(super) mod finding;
pub(super) mod findings;
pub(super) mod judge;
pub(super) mod not_json;
pub(super) mod rule;
pub(super) mod shape;
pub(super) mod value;
