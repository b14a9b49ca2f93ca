//! A bar on stderr, if that is a terminal and the work takes some time. Dropping it removes it.

use std::time::{Duration, Instant};

use super::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

/// Work that is done sooner shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

pub(super) struct Progress {
    bar: ProgressBar,
    begun: Instant,
}

impl Progress {
    /// Over the bytes of a file, or a count of them if its length is not known.
    pub(super) fn bytes(length: Option<u64>) -> Self {
        Self::new(length, if length.is_some() { "{wide_bar} {percent} % of {total_bytes}" } else { "{bytes}" })
    }

    /// Over conversations.
    pub(super) fn conversations() -> Self {
        Self::new(Some(0), "{wide_bar} {pos} of {len} conversations")
    }

    /// Over steps of several kinds.
    pub(super) fn steps() -> Self {
        Self::new(Some(0), "{wide_bar} {percent} %")
    }

    /// Over the seconds of a measurement.
    pub(super) fn seconds() -> Self {
        Self::new(Some(0), "{wide_bar} {pos} of {len} s")
    }

    fn new(length: Option<u64>, template: &str) -> Self {
        let bar =
            ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden()).with_finish(ProgressFinish::AndClear);
        // The templates above are well-formed: a mistake in one would show the default style.
        let bar = match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        Self { bar, begun: Instant::now() }
    }

    pub(super) fn set(&self, position: u64) {
        if self.bar.is_hidden() && !output::is_quiet() && self.begun.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(position);
    }

    pub(super) fn set_of(&self, position: u64, length: u64) {
        self.bar.set_length(length);
        self.set(position);
    }
}
