//! Which part of a long history is rendered: the newest turns of the user that the options have room for.
//!
//! `blocks` says where a window may begin, `limits` counts turns, and finds where it begins for given options; `tokens` counts
//! a text.

pub(super) mod blocks;
pub(crate) mod limits;
mod tokens;
