//! What a server counts, in the form of Prometheus. No label names an owner, a key or a conversation.

use std::fmt;
use std::sync::atomic::Ordering;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use crate::history::ReportLine;
use crate::store::Store;

/// A request: its route, as the table of routes has it, and its status.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Answered {
    pub(crate) route: String,
    pub(crate) status: u16,
}

/// Why a request was refused before it reached its route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Reason {
    pub(crate) reason: &'static str,
}

/// A call of a model that has passed: to which upstream, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Exchanged {
    upstream: String,
    ended: &'static str,
}

/// A call of a model that was recorded, or was not: what has become of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Recorded {
    state: &'static str,
}

/// A rule of lines of reports.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Reported {
    rule: String,
}

/// [`Metrics::new`] has the names and what they count.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) answered: Family<Answered, Counter>,
    pub(crate) seconds: Histogram,
    pub(crate) in_flight: Gauge,
    pub(crate) refused: Family<Reason, Counter>,
    pub(crate) body_bytes: Counter,
    pub(crate) held_bytes: Gauge,
    pub(crate) items: Counter,
    pub(crate) repeated: Counter,
    pub(crate) connections: Gauge,
    pub(crate) followers: Gauge,
    pub(crate) ingests: Gauge,
    pub(crate) store_calls: Gauge,
    pub(crate) store_seconds: Histogram,
    pub(crate) unreadable_keys: Counter,
    pub(crate) retention_erased: Counter,
    pub(crate) retention_failures: Counter,
    pub(crate) conversations: Gauge,
    pub(crate) stored_bytes: Gauge,
    open_files: Gauge,
    exchanges: Family<Exchanged, Counter>,
    exchanged_bytes: Counter,
    recordings: Family<Recorded, Counter>,
    log_lines_dropped: Counter,
    report_lines: Family<Reported, Counter>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// Upper bounds in seconds: from what memory takes to what nobody waits for.
const SECONDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Adds a metric to what is shown, and gives it back to be counted with.
fn shown<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("convo");
        let to = &mut registry;
        Self {
            answered: shown(to, "requests", "Requests by route and status", Family::default()),
            seconds: shown(to, "request_seconds", "Time from head to answer", Histogram::new(SECONDS)),
            in_flight: shown(to, "requests_in_flight", "Requests that are being answered", Gauge::default()),
            refused: shown(to, "refused", "Requests that were refused before a route, by reason", Family::default()),
            body_bytes: shown(to, "body_bytes", "Bytes of bodies that were read", Counter::default()),
            held_bytes: shown(to, "held_bytes", "Bytes that requests make the server hold", Gauge::default()),
            items: shown(to, "messages_appended", "Messages that were appended", Counter::default()),
            repeated: shown(to, "repeated", "Appends that were repetitions, and changed nothing", Counter::default()),
            connections: shown(to, "connections", "Open connections", Gauge::default()),
            followers: shown(to, "followers", "Open streams of events", Gauge::default()),
            ingests: shown(to, "ingests", "Answers that are being ingested", Gauge::default()),
            store_calls: shown(to, "store_calls", "Calls of the store in progress", Gauge::default()),
            store_seconds: shown(to, "store_seconds", "Time of calls of the store", Histogram::new(SECONDS)),
            unreadable_keys: shown(
                to,
                "unreadable_keys",
                "Times that the file of keys could not be read",
                Counter::default(),
            ),
            retention_erased: shown(
                to,
                "retention_erased",
                "Conversations that a policy of retention erased",
                Counter::default(),
            ),
            retention_failures: shown(
                to,
                "retention_failures",
                "Policies of retention that could not be applied to the end",
                Counter::default(),
            ),
            conversations: shown(to, "conversations", "Conversations of the store", Gauge::default()),
            stored_bytes: shown(to, "stored_bytes", "Bytes of the store's files", Gauge::default()),
            open_files: shown(to, "open_files", "File handles that the process has open", Gauge::default()),
            exchanges: shown(
                to,
                "exchanges",
                "Requests that passed to an upstream, by upstream and how the answer ended",
                Family::default(),
            ),
            exchanged_bytes: shown(to, "exchanged_bytes", "Bytes of answers of upstreams", Counter::default()),
            recordings: shown(
                to,
                "recordings",
                "Calls of models that were to be recorded, by what has become of them",
                Family::default(),
            ),
            log_lines_dropped: shown(
                to,
                "log_lines_dropped",
                "Lines of the log that were dropped, as nobody read those before them",
                Counter::default(),
            ),
            report_lines: shown(
                to,
                "prompt_report_lines",
                "Lines of the reports of prompts and repairs that the API gave, by rule",
                Family::default(),
            ),
            registry,
        }
    }

    /// Counts the lines of the report of a prompt, or of a repair.
    pub(crate) fn count_report(&self, report: &[ReportLine]) {
        for line in report {
            self.report_lines.get_or_create(&Reported { rule: line.rule.name() }).inc();
        }
    }

    /// Counts a request that passed to an upstream of the settings, whose answer ended so.
    pub(crate) fn passed(&self, upstream: &str, ended: &'static str, bytes: u64) {
        self.exchanges.get_or_create(&Exchanged { upstream: upstream.to_owned(), ended }).inc();
        self.exchanged_bytes.inc_by(bytes);
    }

    /// Counts a call of a model that was to be recorded.
    pub(crate) fn recorded(&self, state: &'static str) {
        self.recordings.get_or_create(&Recorded { state }).inc();
    }

    /// Looks at what nothing counts as it happens: how much the store holds, and the open files.
    pub(crate) fn look(&self, store: &Store) {
        // What cannot be read keeps its last value.
        if let Ok(size) = store.size() {
            self.conversations.set(i64::try_from(size.conversations).unwrap_or(i64::MAX));
            self.stored_bytes.set(size.bytes.and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or_default());
        }
        self.log_lines_dropped.inner().store(super::lines::dropped(), Ordering::Relaxed);
        // Only Linux has them here.
        if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
            self.open_files.set(i64::try_from(files.count()).unwrap_or(i64::MAX));
        }
    }

    /// All of it, as OpenMetrics text.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a String fails only if a metric's own encoding does, and these are the crate's.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
