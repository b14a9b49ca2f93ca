//! The project itself: which part may know which, what a build needs, the words of its texts.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod architecture;
mod light;
mod words;
