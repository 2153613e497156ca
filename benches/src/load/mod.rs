//! Load on a running node over real sockets, and what is told of it.

mod cases;
mod sources;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::client::Credentials;
use crate::error::{BenchError, Result};
use crate::floor::{BLOCK_LARGE_BYTES, BLOCK_SMALL_BYTES, Measured, flush_loop_written};
use crate::lane::{Lane, Shared, Totals, run_threads};
use crate::process::CpuTimes;
use crate::statistics::Summary;
use crate::table::{Table, number};
use crate::window::{Limit, Window};

pub use cases::{create, poll, run, send};
pub use sources::Place;
#[cfg(test)]
pub use sources::{PollSource, SendSource, batch};

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// Producers send.
    Send,
    /// Consumers poll what is there.
    Poll,
    /// Consumers follow producers; the latency is from send to poll.
    EndToEnd,
    /// Streams are created and deleted.
    Metadata,
}

impl Case {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Case::Send => "send",
            Case::Poll => "poll",
            Case::EndToEnd => "end-to-end",
            Case::Metadata => "metadata",
        }
    }
}

/// How much is asked, and how.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Load {
    /// What is asked.
    pub case: Case,
    /// Bytes of a message's payload.
    pub message_bytes: usize,
    /// Messages of a send or of a poll.
    pub batch: u32,
    /// Connections; of `end-to-end`, as many of each kind.
    pub lanes: usize,
    /// Requests that a connection has in flight.
    pub pipeline: usize,
    /// Streams, each with a topic.
    pub streams: u32,
    /// Partitions of each topic.
    pub partitions: u32,
    /// Threads of the load program.
    pub threads: usize,
    /// Time before anything counts.
    pub warm_up: Duration,
    /// Time that counts; not used when `bytes` is given.
    pub time: Duration,
    /// Payload that counts.
    pub bytes: Option<u64>,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            case: Case::Send,
            message_bytes: 1000,
            batch: 1000,
            lanes: 1,
            pipeline: 1,
            streams: 1,
            partitions: 1,
            threads: 1,
            warm_up: Duration::from_secs(1),
            time: Duration::from_secs(5),
            bytes: None,
        }
    }
}

impl Load {
    /// Refuses numbers that make no sense.
    pub fn check(&self) -> Result<()> {
        let complaints = [
            (self.message_bytes == 0, "a message has at least one byte"),
            (self.batch == 0, "a batch has at least one message"),
            (self.lanes == 0, "there is at least one connection"),
            (
                self.pipeline == 0,
                "there is at least one request in flight",
            ),
            (self.streams == 0, "there is at least one stream"),
            (self.partitions == 0, "there is at least one partition"),
            (self.threads == 0, "there is at least one thread"),
            (
                self.message_bytes * self.batch as usize > 60_000_000,
                "a batch has at most 60 MB",
            ),
            (
                self.case == Case::EndToEnd && self.lanes as u32 > self.streams * self.partitions,
                "end-to-end needs a partition for each producer",
            ),
            (
                self.case == Case::Metadata && self.bytes.is_some(),
                "metadata is bounded in time, not in bytes",
            ),
        ];
        match complaints.iter().find(|(broken, _)| *broken) {
            Some((_, complaint)) => Err(BenchError::Arguments(complaint)),
            None => Ok(()),
        }
    }

    fn limit(&self) -> Limit {
        match self.bytes {
            Some(bytes) => Limit::Bytes(bytes),
            None => Limit::Time(self.time),
        }
    }

    fn open(&self) -> Shared {
        Shared {
            window: Window::open(self.warm_up, self.limit()),
            bytes: AtomicU64::new(0),
            messages: AtomicU64::new(0),
        }
    }
}

/// The node under load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Where it listens.
    pub address: SocketAddr,
    /// Who signs in.
    pub credentials: Credentials,
    /// Its process, where it is known.
    pub pid: Option<u32>,
}

/// Cores used while load ran.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Cores {
    /// By the load program.
    pub load: f64,
    /// By the node, where its process is known.
    pub node: Option<f64>,
}

/// What came out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// What was asked.
    pub load: Load,
    /// From the first request that counts to the last answer.
    pub seconds: f64,
    /// Answered requests.
    pub requests: u64,
    /// Messages (streams created or deleted, for metadata) of those.
    pub messages: u64,
    /// Requests that the server did not accept; they do not count.
    pub refused: u64,
    /// Messages a second.
    pub messages_per_second: f64,
    /// 10^6 bytes of payload a second.
    pub megabytes_per_second: f64,
    /// Of requests; of `end-to-end` from send to poll.
    pub latency: Summary,
    /// Points of the latency curve: quantile, microseconds.
    pub curve: Vec<(f64, f64)>,
    /// Cores used.
    pub cores: Cores,
}

/// What the disk does in the same run.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Disk {
    /// Write and flush of 4 KiB.
    pub flush_small: Measured,
    /// Write and flush of 1 MiB.
    pub flush_large: Measured,
}

impl Disk {
    /// Measures write and flush for about two seconds in all.
    pub fn measure(directory: &Path) -> Result<Disk> {
        let warm_up = Duration::from_millis(100);
        let time = Limit::Time(Duration::from_millis(700));
        Ok(Disk {
            flush_small: flush_loop_written(directory, BLOCK_SMALL_BYTES, warm_up, time)?,
            flush_large: flush_loop_written(directory, BLOCK_LARGE_BYTES, warm_up, time)?,
        })
    }
}

/// Outcome and disk of one run, as it is written to a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The load.
    pub outcome: Outcome,
    /// The disk under the temporary directory of the load program.
    pub disk: Disk,
    /// Requests a second in units of flushes of 4 KiB a second.
    pub requests_to_flushes: f64,
    /// Bytes a second in units of the bytes that flushes of 1 MiB write.
    pub bytes_to_flushed_bytes: f64,
}

impl Report {
    /// Sets the load beside the disk.
    pub fn new(outcome: Outcome, disk: Disk) -> Report {
        let requests = outcome.requests as f64 / outcome.seconds;
        Report {
            requests_to_flushes: requests / disk.flush_small.per_second,
            bytes_to_flushed_bytes: outcome.megabytes_per_second
                / disk.flush_large.megabytes_per_second,
            outcome,
            disk,
        }
    }

    /// The tables for a terminal.
    pub fn text(&self) -> String {
        let outcome = &self.outcome;
        let mut load = Table::new([
            "load", "msgs/s", "MB/s", "p50 us", "p95 us", "p99 us", "p999 us", "cores",
        ]);
        let node_cores = outcome.cores.node.map_or("?".to_owned(), number);
        load.row(vec![
            outcome.load.case.name().to_owned(),
            number(outcome.messages_per_second),
            number(outcome.megabytes_per_second),
            number(outcome.latency.p50_us),
            number(outcome.latency.p95_us),
            number(outcome.latency.p99_us),
            number(outcome.latency.p999_us),
            format!("{} + {node_cores}", number(outcome.cores.load)),
        ]);
        let mut disk = Table::new(["write + flush", "1/s", "MB/s", "p50 us", "load / disk"]);
        let rows = [
            (
                "4 KiB",
                self.disk.flush_small,
                self.requests_to_flushes,
                "requests",
            ),
            (
                "1 MiB",
                self.disk.flush_large,
                self.bytes_to_flushed_bytes,
                "bytes",
            ),
        ];
        for (name, measured, ratio, of) in rows {
            disk.row(vec![
                name.to_owned(),
                number(measured.per_second),
                number(measured.megabytes_per_second),
                number(measured.latency.p50_us),
                format!("{} ({of})", number(ratio)),
            ]);
        }
        let refused = match outcome.refused {
            0 => String::new(),
            refused => format!("\n{refused} requests were not accepted"),
        };
        format!("{}\n{}{refused}", load.text(), disk.text())
    }
}

/// Runs lanes to the end with a progress bar and says what came out.
fn drive(load: &Load, node: &Node, lanes: Vec<Lane>, shared: &Shared) -> Result<Outcome> {
    let bar = progress_bar(load);
    let before = CpuTimes::now(node.pid);
    let begun = Instant::now();
    let totals = run_threads(lanes, load.threads, shared, |shared| {
        show_progress(&bar, load, shared);
    })?;
    let cores = before.cores_since(begun);
    bar.finish_and_clear();
    Ok(outcome(load, &totals, shared.window.from(), cores))
}

fn outcome(load: &Load, totals: &Totals, from: Instant, cores: Cores) -> Outcome {
    let last = totals.last.unwrap_or(from);
    let seconds = last.saturating_duration_since(from).as_secs_f64();
    let per_second = |value: u64| match seconds {
        0.0 => 0.0,
        seconds => value as f64 / seconds,
    };
    Outcome {
        load: load.clone(),
        seconds,
        requests: totals.requests,
        messages: totals.messages,
        refused: totals.refused,
        messages_per_second: per_second(totals.messages),
        megabytes_per_second: per_second(totals.bytes) / 1e6,
        latency: totals.latencies.summary(),
        curve: totals.latencies.curve(),
        cores,
    }
}

fn progress_bar(load: &Load) -> ProgressBar {
    let length = match load.limit() {
        Limit::Bytes(bytes) => bytes,
        Limit::Time(time) => time.as_millis() as u64,
    };
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template("{prefix:>10} [{wide_bar}] {percent:>3} % {msg}")
        .expect("the template is well formed");
    bar.set_style(style.progress_chars("=> "));
    bar.set_prefix(load.case.name());
    bar
}

fn show_progress(bar: &ProgressBar, load: &Load, shared: &Shared) {
    let elapsed = Instant::now().saturating_duration_since(shared.window.from());
    let (bytes, messages) = (
        shared.bytes.load(Ordering::Relaxed),
        shared.messages.load(Ordering::Relaxed),
    );
    bar.set_position(match load.limit() {
        Limit::Bytes(_) => bytes,
        Limit::Time(_) => elapsed.as_millis() as u64,
    });
    let seconds = elapsed.as_secs_f64().max(0.001);
    bar.set_message(format!(
        "{} msgs/s {} MB/s",
        number(messages as f64 / seconds),
        number(bytes as f64 / 1e6 / seconds)
    ));
}

/// Where results go.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Files {
    /// Everything, as JSON.
    pub json: Option<PathBuf>,
    /// The latency plot.
    pub svg: Option<PathBuf>,
    /// A page with table and plot.
    pub html: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let outcome = Outcome {
            load: Load::default(),
            seconds: 2.0,
            requests: 2000,
            messages: 2_000_000,
            refused: 0,
            messages_per_second: 1e6,
            megabytes_per_second: 1000.0,
            latency: Summary::default(),
            curve: vec![(0.0, 10.0), (0.5, 20.0)],
            cores: Cores::default(),
        };
        let measured = |per_second, megabytes_per_second| Measured {
            per_second,
            megabytes_per_second,
            ..Measured::default()
        };
        let disk = Disk {
            flush_small: measured(10_000.0, 40.0),
            flush_large: measured(2000.0, 2000.0),
        };
        Report::new(outcome, disk)
    }

    #[test]
    fn ratios_set_the_load_beside_the_disk() {
        let report = report();
        assert_eq!(report.requests_to_flushes, 0.1);
        assert_eq!(report.bytes_to_flushed_bytes, 0.5);
    }

    #[test]
    fn the_report_reads_back_from_its_json() {
        let json = serde_json::to_value(report()).expect("numbers are JSON");
        assert_eq!(json["outcome"]["load"]["case"], "send");
        assert_eq!(json["outcome"]["messages_per_second"], 1e6);
        assert_eq!(json["outcome"]["curve"][1][1], 20.0);
        assert_eq!(json["disk"]["flush_small"]["per_second"], 10_000.0);
        let read: Report = serde_json::from_value(json).expect("it was written by us");
        assert_eq!(read, report());
    }

    #[test]
    fn the_text_names_rates_and_ratios() {
        let text = report().text();
        for part in ["1,000,000", "p999", "0.10 (requests)", "0.50 (bytes)"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn numbers_without_sense_are_refused() {
        let refused = |change: fn(&mut Load)| {
            let mut load = Load::default();
            change(&mut load);
            load.check().is_err()
        };
        assert!(Load::default().check().is_ok());
        assert!(refused(|load| load.message_bytes = 0));
        assert!(refused(|load| load.batch = 0));
        assert!(refused(|load| load.batch = 1_000_000));
        assert!(refused(|load| load.pipeline = 0));
        assert!(refused(|load| (load.case, load.lanes) = (Case::EndToEnd, 2)));
        assert!(refused(
            |load| (load.case, load.bytes) = (Case::Metadata, Some(1))
        ));
    }
}
