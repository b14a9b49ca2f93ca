//! Bars on stderr, where that is a terminal. They go when they are dropped.

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// A bar over the bytes of a file, or a counter where its length is not known.
pub(super) fn bytes(length: Option<u64>) -> ProgressBar {
    match length {
        Some(length) => bar(ProgressBar::new(length), "{wide_bar} {bytes} of {total_bytes}"),
        None => bar(ProgressBar::new_spinner(), "{spinner} {bytes}"),
    }
}

/// A bar over conversations.
pub(super) fn conversations() -> ProgressBar {
    bar(ProgressBar::new(0), "{wide_bar} {pos} of {len} conversations")
}

fn bar(bar: ProgressBar, template: &str) -> ProgressBar {
    let bar = bar.with_finish(ProgressFinish::AndClear);
    // The templates above are well-formed: a mistake in one would show the default style.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
