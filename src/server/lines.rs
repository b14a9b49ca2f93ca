//! The log of a server: lines on stderr. No request waits for who reads them: a thread writes them, and what it cannot write in
//! time is dropped and counted.

use std::fmt;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use jiff::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
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
        // It logs what is said.
        let level = level.with_target("rmcp", LevelFilter::OFF);
        let lines = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(WAITING);
        let (writer, guard) = lines.thread_name("log").finish(std::io::stderr());
        let _ = DROPPED.set(writer.error_counter());
        let registry = tracing_subscriber::registry().with(level);
        let layer = tracing_subscriber::fmt::layer().with_writer(writer);
        let begun = match log.format {
            LogFormat::Text => registry.with(layer.with_ansi(false)).try_init(),
            LogFormat::Calls => registry.with(layer.event_format(CallLines)).try_init(),
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

/// The message of the event that says what has become of a recorded call.
pub(super) const RECORDED: &str = "recorded";

/// A line for each recorded call, and for each warning and error.
#[derive(Debug)]
struct CallLines;

impl<S, N> FormatEvent<S, N> for CallLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let time = Timestamp::now().strftime("%H:%M:%S");
        if fields.get("message") == RECORDED {
            let [how, state, upstream, model] = ["how", "state", "upstream", "model"].map(|name| fields.get(name));
            let [input, output] = ["input_tokens", "output_tokens"].map(|name| fields.get(name));
            let [took, conversation] = ["milliseconds", "conversation"].map(|name| fields.get(name));
            let tokens = if input.is_empty() { String::new() } else { format!("{input} + {output} tokens") };
            let called = [upstream, model].join(" ");
            return writeln!(
                to,
                "{time}  {conversation:36}  {how:9}  {state:8}  {called:32}  {tokens:>22}  {took:>7} ms"
            );
        }
        if *event.metadata().level() > Level::WARN {
            return Ok(());
        }
        write!(to, "{time}  {}", event.metadata().level().as_str().to_lowercase())?;
        fields.0.iter().try_for_each(|(name, value)| match *name {
            "message" => write!(to, "  {value}"),
            name => write!(to, "  {name}: {value}"),
        })?;
        writeln!(to)
    }
}

/// The fields of an event, without what moves a terminal's cursor: models and upstreams have names of their own making.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    fn keep(&mut self, field: &Field, value: &str) {
        let visible = value.chars().map(|char| if char.is_control() { ' ' } else { char });
        self.0.push((field.name(), visible.collect()));
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.keep(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.keep(field, &format!("{value:?}"));
    }
}

/// How many lines were dropped, because nobody read those before them.
pub(super) fn dropped() -> u64 {
    DROPPED.get().map_or(0, |counter| u64::try_from(counter.dropped_lines()).unwrap_or(u64::MAX))
}
