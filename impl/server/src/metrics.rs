//! What is counted, under names that `/metrics` serves.
//!
//! Counters of the hot path are fetched once per shard and then cost one atomic addition.

use std::cell::OnceCell;

use pawl_wire::command::CommandCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Command and outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
pub struct RequestLabels {
    /// Name of the command.
    pub command: &'static str,
    /// `ok` or `refused`.
    pub result: &'static str,
}

/// Why something was refused, dropped or closed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
pub struct ReasonLabels {
    /// The reason.
    pub reason: &'static str,
}

/// Name under which a request is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandName {
    /// A command of the table.
    Command(CommandCode),
    /// A sign-in, whichever body it has.
    Login,
    /// Anything else.
    Unknown,
}

impl CommandName {
    fn name(self) -> &'static str {
        match self {
            CommandName::Command(command) => command.name(),
            CommandName::Login => "login",
            CommandName::Unknown => "unknown",
        }
    }

    /// Place in a [`Meter`].
    fn place(self) -> usize {
        match self {
            CommandName::Command(command) => command.code() as usize,
            CommandName::Login => METER_PLACES - 2,
            CommandName::Unknown => METER_PLACES - 1,
        }
    }
}

/// Codes of commands are below this.
const METER_PLACES: usize = 1_024;

/// Counters of one shard, fetched when they are first used.
#[derive(Debug)]
pub struct Meter {
    metrics: Metrics,
    ok: Vec<OnceCell<Counter>>,
}

impl Meter {
    /// Counters that add to `metrics`.
    pub fn new(metrics: &Metrics) -> Meter {
        Meter {
            metrics: metrics.clone(),
            ok: (0..METER_PLACES).map(|_| OnceCell::new()).collect(),
        }
    }

    /// Counts a request that was served.
    pub fn ok(&self, command: CommandName) {
        self.ok[command.place()]
            .get_or_init(|| self.counter(command, "ok"))
            .inc();
    }

    /// Counts a request that was refused. The reason is counted too, unless it was counted before.
    pub fn refused(&self, command: CommandName, reason: Option<&'static str>) {
        self.counter(command, "refused").inc();
        if let Some(reason) = reason {
            self.metrics.refused(reason);
        }
    }

    fn counter(&self, command: CommandName, result: &'static str) -> Counter {
        let command = command.name();
        let labels = RequestLabels { command, result };
        self.metrics.requests.get_or_create_owned(&labels)
    }
}

/// Everything that is counted.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Connections that are open.
    pub connections: Gauge,
    /// Connections that were accepted.
    pub connections_accepted: Counter,
    /// Connections closed without an answer, by reason.
    pub closed: Family<ReasonLabels, Counter>,
    /// Requests by command and result.
    pub requests: Family<RequestLabels, Counter>,
    /// Refusals by reason.
    pub refusals: Family<ReasonLabels, Counter>,
    /// Requests recognised as repeats, by reason.
    pub repeats: Family<ReasonLabels, Counter>,
    /// Inputs that the replica ignored, by reason.
    pub ignored: Family<ReasonLabels, Counter>,
    /// Messages appended.
    pub messages_appended: Counter,
    /// Bytes of message batches appended.
    pub message_bytes_appended: Counter,
    /// Messages polled.
    pub messages_polled: Counter,
    /// Bytes of message batches polled.
    pub message_bytes_polled: Counter,
    /// Batches of polls that were found in memory.
    pub poll_batches_cached: Counter,
    /// Batches of polls that were read from disk.
    pub poll_batches_read: Counter,
    /// The newest op that is applied.
    pub log_applied_op: Gauge,
    /// Flushes of the log.
    pub log_flushes: Counter,
    /// Seconds from write to flushed.
    pub log_flush_seconds: Histogram,
    /// Records per flush.
    pub log_batch_records: Histogram,
    /// Bytes per flush.
    pub log_batch_bytes: Histogram,
    /// Submissions that the log thread found at once.
    pub log_inbox_items: Histogram,
    /// Submissions that wait for the log thread.
    pub log_inbox: Gauge,
    /// Bytes of the log's segments.
    pub log_bytes: Gauge,
    /// Limit of the bytes of the log's segments.
    pub log_bytes_max: Gauge,
    /// 1 while the disk is full.
    pub disk_full: Gauge,
    /// Op of the newest checkpoint.
    pub checkpoint_op: Gauge,
    /// Checkpoints written.
    pub checkpoints: Counter,
    /// Bytes of requests under way.
    pub request_bytes: Gauge,
    /// Limit of the bytes of requests under way.
    pub request_bytes_max: Gauge,
    /// Bytes of bodies in the tail cache.
    pub cache_bytes: Gauge,
    /// Limit of the bytes of bodies in the tail cache.
    pub cache_bytes_max: Gauge,
    /// Logins that wait for a hashing thread.
    pub logins_waiting: Gauge,
}

/// Doubling steps from `first`.
fn steps(first: f64, count: u16) -> Histogram {
    let buckets = prometheus_client::metrics::histogram::exponential_buckets(first, 2.0, count);
    Histogram::new(buckets)
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            connections: Gauge::default(),
            connections_accepted: Counter::default(),
            closed: Family::default(),
            requests: Family::default(),
            refusals: Family::default(),
            repeats: Family::default(),
            ignored: Family::default(),
            messages_appended: Counter::default(),
            message_bytes_appended: Counter::default(),
            messages_polled: Counter::default(),
            message_bytes_polled: Counter::default(),
            poll_batches_cached: Counter::default(),
            poll_batches_read: Counter::default(),
            log_applied_op: Gauge::default(),
            log_flushes: Counter::default(),
            log_flush_seconds: steps(0.000_032, 18),
            log_batch_records: steps(1.0, 14),
            log_batch_bytes: steps(4096.0, 16),
            log_inbox_items: steps(1.0, 14),
            log_inbox: Gauge::default(),
            log_bytes: Gauge::default(),
            log_bytes_max: Gauge::default(),
            disk_full: Gauge::default(),
            checkpoint_op: Gauge::default(),
            checkpoints: Counter::default(),
            request_bytes: Gauge::default(),
            request_bytes_max: Gauge::default(),
            cache_bytes: Gauge::default(),
            cache_bytes_max: Gauge::default(),
            logins_waiting: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Counts a refusal.
    pub fn refused(&self, reason: &'static str) {
        self.refusals.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// Counts a connection that was closed without an answer.
    pub fn closed(&self, reason: &'static str) {
        self.closed.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// Counts a repeat.
    pub fn repeated(&self, reason: &'static str) {
        self.repeats.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// The registry that `/metrics` prints.
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::with_prefix("pawl");
        self.register_edge(&mut registry);
        self.register_messages(&mut registry);
        self.register_log(&mut registry);
        self.register_budgets(&mut registry);
        registry
    }

    fn register_edge(&self, to: &mut Registry) {
        to.register("connections", "Open connections", self.connections.clone());
        to.register(
            "connections_accepted",
            "Accepted connections",
            self.connections_accepted.clone(),
        );
        to.register(
            "connections_closed",
            "Connections closed without an answer",
            self.closed.clone(),
        );
        to.register("requests", "Answered requests", self.requests.clone());
        to.register("refusals", "Refusals by reason", self.refusals.clone());
        to.register(
            "repeats",
            "Requests recognised as repeats",
            self.repeats.clone(),
        );
        to.register(
            "ignored",
            "Inputs that the replica ignored",
            self.ignored.clone(),
        );
        to.register(
            "logins_waiting",
            "Logins that wait for a hashing thread",
            self.logins_waiting.clone(),
        );
    }

    fn register_messages(&self, to: &mut Registry) {
        to.register(
            "messages_appended",
            "Messages appended",
            self.messages_appended.clone(),
        );
        to.register(
            "message_bytes_appended",
            "Bytes of batches appended",
            self.message_bytes_appended.clone(),
        );
        to.register(
            "messages_polled",
            "Messages polled",
            self.messages_polled.clone(),
        );
        to.register(
            "message_bytes_polled",
            "Bytes of batches polled",
            self.message_bytes_polled.clone(),
        );
        to.register(
            "poll_batches_cached",
            "Polled batches found in memory",
            self.poll_batches_cached.clone(),
        );
        to.register(
            "poll_batches_read",
            "Polled batches read from disk",
            self.poll_batches_read.clone(),
        );
    }

    fn register_log(&self, to: &mut Registry) {
        to.register(
            "log_applied_op",
            "Newest applied op",
            self.log_applied_op.clone(),
        );
        to.register(
            "log_flushes",
            "Flushes of the log",
            self.log_flushes.clone(),
        );
        to.register(
            "log_flush_seconds",
            "Time to write and flush a batch",
            self.log_flush_seconds.clone(),
        );
        to.register(
            "log_batch_records",
            "Records per flush",
            self.log_batch_records.clone(),
        );
        to.register(
            "log_batch_bytes",
            "Bytes per flush",
            self.log_batch_bytes.clone(),
        );
        to.register(
            "log_inbox_items",
            "Submissions that the log thread found at once",
            self.log_inbox_items.clone(),
        );
        to.register(
            "checkpoint_op",
            "Op of the newest checkpoint",
            self.checkpoint_op.clone(),
        );
        to.register(
            "checkpoints",
            "Checkpoints written",
            self.checkpoints.clone(),
        );
    }

    fn register_budgets(&self, to: &mut Registry) {
        for (name, help, gauge) in [
            (
                "log_inbox",
                "Submissions that wait for the log thread",
                &self.log_inbox,
            ),
            ("log_bytes", "Bytes of log segments", &self.log_bytes),
            (
                "log_bytes_max",
                "Limit of the bytes of log segments",
                &self.log_bytes_max,
            ),
            ("disk_full", "1 while the disk is full", &self.disk_full),
            (
                "request_bytes",
                "Bytes of requests under way",
                &self.request_bytes,
            ),
            (
                "request_bytes_max",
                "Limit of the bytes of requests under way",
                &self.request_bytes_max,
            ),
            (
                "cache_bytes",
                "Bytes of bodies in the tail cache",
                &self.cache_bytes,
            ),
            (
                "cache_bytes_max",
                "Limit of the bytes of bodies in the tail cache",
                &self.cache_bytes_max,
            ),
        ] {
            to.register(name, help, gauge.clone());
        }
    }
}

/// The text of `/metrics`.
pub fn print(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).expect("writing to a string does not fail");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_counted_is_printed() {
        let metrics = Metrics::default();
        metrics.refused("disk_full");
        metrics.disk_full.set(1);
        metrics
            .requests
            .get_or_create(&RequestLabels {
                command: "ping",
                result: "ok",
            })
            .inc();
        let text = print(&metrics.registry());
        for line in [
            "pawl_refusals_total{reason=\"disk_full\"} 1",
            "pawl_disk_full 1",
            "pawl_requests_total{command=\"ping\",result=\"ok\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
