//! The log of a server: lines on stderr. No request waits for who reads them: a thread writes them, and what it cannot write in
//! time is dropped and counted.

use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::config::{Log, LogFormat};
use crate::error::{Error, Result};

/// Lines that wait to be written.
const WAITING: usize = 4_096;

/// The log of this process, as long as it lives: what waits is written when it is dropped, if somebody reads it within two seconds.
#[derive(Debug)]
#[must_use = "what is logged later is lost"]
pub struct LogLines(Option<WorkerGuard>);

/// How long the last lines may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// There is one log in a process.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

impl LogLines {
    /// Begins the log of this process.
    ///
    /// # Errors
    /// `InvalidInput` for a level that there is not, and if the process has a log already.
    pub fn begin(log: &Log) -> Result<Self> {
        let level: Targets =
            log.level.parse().map_err(|error| Error::InvalidInput(format!("log.level: {:?}: {error}", log.level)))?;
        let lines = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(WAITING);
        let (writer, guard) = lines.thread_name("log").finish(std::io::stderr());
        let _ = DROPPED.set(writer.error_counter());
        let registry = tracing_subscriber::registry().with(level);
        let layer = tracing_subscriber::fmt::layer().with_writer(writer);
        let begun = match log.format {
            LogFormat::Text => registry.with(layer.with_ansi(false)).try_init(),
            LogFormat::Json => registry
                .with(layer.json().flatten_event(true).with_current_span(false).with_span_list(false))
                .try_init(),
        };
        begun.map_err(|error| Error::InvalidInput(format!("cannot begin the log: {error}")))?;
        Ok(Self(Some(guard)))
    }
}

impl Drop for LogLines {
    fn drop(&mut self) {
        let (done, is_done) = sync_channel(1);
        let guard = self.0.take();
        // It waits for who reads the lines, and may print that it did.
        std::thread::spawn(move || {
            drop(guard);
            let _ = done.send(());
        });
        let _ = is_done.recv_timeout(PATIENCE);
    }
}

/// How many lines were dropped, because nobody read those before them.
pub(super) fn dropped() -> u64 {
    DROPPED.get().map_or(0, |counter| u64::try_from(counter.dropped_lines()).unwrap_or(u64::MAX))
}
