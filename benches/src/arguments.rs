//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::client::Credentials;
use crate::load::{Case, Files, Load, Node};

/// Measures a Pawl node, and the machine it runs on.
#[derive(Clone, Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Arguments {
    /// What to measure.
    #[command(subcommand)]
    pub command: Measurement,
}

/// What to measure.
#[derive(Clone, Debug, Subcommand)]
pub enum Measurement {
    /// What this machine allows: loopback, disk, group commit
    Floor(FloorArguments),
    /// Producers send batches
    Send(LoadArguments),
    /// Consumers poll; new streams are filled first
    Poll(LoadArguments),
    /// Consumers follow producers; latency from send to poll
    EndToEnd(LoadArguments),
    /// Streams are created and deleted
    Metadata(LoadArguments),
    /// Everything that has a target, beside the floor, as medians of interleaved repetitions
    Report(ReportArguments),
}

/// Options of `floor`.
#[derive(Clone, Debug, Args)]
pub struct FloorArguments {
    /// A form of a few seconds instead of half a minute
    #[arg(long)]
    pub quick: bool,
    /// Where files are made; they are removed [default: the temporary directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
    /// Write the numbers to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Options of the load programs.
#[derive(Clone, Debug, Args)]
pub struct LoadArguments {
    /// The node under load
    #[command(flatten)]
    pub node: NodeArguments,
    /// Bytes of a message's payload
    #[arg(long, default_value = "1000", value_parser = parse_bytes)]
    pub message_bytes: u64,
    /// Messages of a send or of a poll
    #[arg(long, default_value_t = 1000)]
    pub batch: u32,
    /// Connections: producers or consumers
    #[arg(long, visible_aliases = ["producers", "consumers"], default_value_t = 1)]
    pub connections: usize,
    /// Requests that a connection has in flight
    #[arg(long, default_value_t = 1)]
    pub pipeline: usize,
    /// Streams, each with a topic
    #[arg(long, default_value_t = 1)]
    pub streams: u32,
    /// Partitions of each topic
    #[arg(long, default_value_t = 1)]
    pub partitions: u32,
    /// Threads of the load program
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Time before anything counts [default: 1s; none with --bytes]
    #[arg(long, value_parser = parse_time)]
    pub warm_up: Option<Duration>,
    /// Time that counts
    #[arg(long, default_value = "5s", value_parser = parse_time)]
    pub duration: Duration,
    /// Payload that counts, instead of a time
    #[arg(long, value_parser = parse_bytes)]
    pub bytes: Option<u64>,
    /// Write everything to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the latencies into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write a page with tables and plot to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Where the disk is measured; best where the node keeps its data [default: the temporary
    /// directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
}

/// Which node.
#[derive(Clone, Debug, Args)]
pub struct NodeArguments {
    /// A node that runs
    #[arg(long, default_value = "127.0.0.1:8090")]
    pub address: SocketAddr,
    /// Start this program as a fresh node on free ports, and stop it at the end
    #[arg(long, value_name = "PROGRAM", conflicts_with = "address")]
    pub start: Option<PathBuf>,
    /// Environment of the started node
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair, requires = "start")]
    pub environment: Vec<(String, String)>,
    /// Who signs in
    #[arg(long, default_value = "iggy")]
    pub username: String,
    /// The password
    #[arg(long, default_value = "iggy")]
    pub password: String,
}

/// Options of `report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArguments {
    /// The node's program [default: `pawl` beside this program]
    #[arg(long, value_name = "PROGRAM")]
    pub start: Option<PathBuf>,
    /// Repetitions, of which the medians are told
    #[arg(long, default_value_t = 5)]
    pub repetitions: usize,
    /// A form of a minute: one repetition, less data; its numbers say little
    #[arg(long)]
    pub quick: bool,
    /// Only the groups whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Results of the runner of other systems, one JSON object a line, measured in the same session
    #[arg(long, value_name = "FILE")]
    pub peers: Option<PathBuf>,
    /// Where data directories and files are made; they are removed [default: the temporary
    /// directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
    /// Write everything to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the tables as Markdown to this file
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

impl LoadArguments {
    /// The load that they describe.
    pub fn load(&self, case: Case) -> Load {
        let warm_up = match self.bytes {
            Some(_) => Duration::ZERO,
            None => Duration::from_secs(1),
        };
        Load {
            case,
            message_bytes: self.message_bytes as usize,
            batch: self.batch,
            lanes: self.connections,
            pipeline: self.pipeline,
            streams: self.streams,
            partitions: self.partitions,
            threads: self.threads,
            warm_up: self.warm_up.unwrap_or(warm_up),
            time: self.duration,
            bytes: self.bytes,
        }
    }

    /// Where the results go.
    pub fn files(&self) -> Files {
        Files {
            json: self.json.clone(),
            svg: self.svg.clone(),
            html: self.html.clone(),
        }
    }
}

impl NodeArguments {
    /// The node that runs.
    pub fn running(&self) -> Node {
        Node {
            address: self.address,
            credentials: self.credentials(),
            pid: None,
        }
    }

    fn credentials(&self) -> Credentials {
        Credentials {
            username: self.username.clone(),
            password: self.password.clone(),
        }
    }
}

/// Bytes with a unit: `100`, `4KiB`, `1GB`.
fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 8] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
    ];
    let unit = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (digits, factor) = unit.unwrap_or((text, 1));
    let count: u64 = digits
        .trim()
        .parse()
        .map_err(|_| "bytes are a number with a unit, as 64, 4KiB or 1GB".to_owned())?;
    count
        .checked_mul(factor)
        .ok_or_else(|| "that many bytes cannot be counted".to_owned())
}

/// A time with a unit: `200ms`, `5s`, `2m`.
fn parse_time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 3] = [("ms", 1), ("s", 1000), ("m", 60_000)];
    let unit = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let told = "a time is a whole number with a unit, as 200ms, 5s or 2m";
    let (digits, factor) = unit.ok_or(told)?;
    let count: u64 = digits.trim().parse().map_err(|_| told)?;
    let milliseconds = count.checked_mul(factor).ok_or(told)?;
    Ok(Duration::from_millis(milliseconds))
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a pair is KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(parse_bytes("100"), Ok(100));
        assert_eq!(parse_bytes("4KiB"), Ok(4096));
        assert_eq!(parse_bytes("1GB"), Ok(1_000_000_000));
        assert_eq!(parse_bytes("7B"), Ok(7));
        for wrong in ["", "GB", "1TB", "-1", "1.5GB", "99999999999GB"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse_time("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(parse_time("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "5", "s", "1h", "1.5s"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_load_bounded_in_bytes_has_no_warm_up_by_itself() {
        let parse = |arguments: &[&str]| {
            let words = ["pawl-bench", "send"].iter().chain(arguments);
            let parsed = Arguments::try_parse_from(words).expect("the words are right");
            let Measurement::Send(load) = parsed.command else {
                unreachable!("send was asked for");
            };
            load
        };
        let timed = parse(&[]).load(Case::Send);
        assert_eq!(timed.warm_up, Duration::from_secs(1));
        let bounded = parse(&["--bytes", "1GB", "--producers", "4"]).load(Case::Send);
        assert_eq!(bounded.warm_up, Duration::ZERO);
        assert_eq!((bounded.lanes, bounded.bytes), (4, Some(1_000_000_000)));
    }
}
