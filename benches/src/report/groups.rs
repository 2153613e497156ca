//! The groups of the report: each measures a few things on nodes of its own.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{ReportOptions, Samples};
use crate::client::Client;
use crate::error::{BenchError, Doing, Result};
use crate::floor::{self, BLOCK_LARGE_BYTES, FloorOptions, flush_loop_reserved};
use crate::load::{self, Case, Load, Node, Outcome, Place};
use crate::node::{NodeOptions, RunningNode};
use crate::process::resident_bytes;

/// How long a node rests before its idle memory is read.
const IDLE_TIME: Duration = Duration::from_secs(1);

/// Bytes of log that the node of the drained group keeps.
const DRAINED_LOG_BYTES: u64 = 128 << 20;

/// How long draining may take.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(60);

/// Partitions and connections of the loads of four.
const FOUR: u32 = 4;

/// A part of the report.
pub struct Group {
    /// Its name.
    pub name: &'static str,
    /// Measures it once.
    pub measure: fn(&ReportOptions, &mut Samples) -> Result<()>,
}

/// In the order in which a repetition measures them.
pub const ALL: [Group; 6] = [
    Group {
        name: "floor",
        measure: measure_floor,
    },
    Group {
        name: "small",
        measure: measure_small,
    },
    Group {
        name: "burst",
        measure: measure_burst,
    },
    Group {
        name: "stored",
        measure: measure_stored,
    },
    Group {
        name: "drained",
        measure: measure_drained,
    },
    Group {
        name: "sustained",
        measure: measure_sustained,
    },
];

/// A node with its data directory, which goes when this is dropped.
struct Fresh {
    data: TempDir,
    options: NodeOptions,
}

impl Fresh {
    fn new(options: &ReportOptions, environment: &[(&str, String)]) -> Result<Fresh> {
        let data = tempfile::tempdir_in(&options.directory).doing("make a data directory")?;
        let environment = environment.iter();
        Ok(Fresh {
            options: NodeOptions {
                binary: options.binary.clone(),
                directory: data.path().to_owned(),
                environment: environment
                    .map(|(key, value)| ((*key).to_owned(), value.clone()))
                    .collect(),
            },
            data,
        })
    }

    fn start(&self) -> Result<RunningNode> {
        RunningNode::start(&self.options)
    }
}

fn measure_floor(options: &ReportOptions, samples: &mut Samples) -> Result<()> {
    let floor = floor::measure(&FloorOptions {
        directory: options.directory.clone(),
        time: options.scale.time,
        burst_bytes: options.scale.burst_bytes,
        sustained_bytes: None,
    })?;
    samples.add(
        "floor.round_trip_flush.p50 us",
        floor.round_trip_flush.latency.p50_us,
    );
    samples.add("floor.round_trip.p50 us", floor.round_trip.latency.p50_us);
    samples.add("floor.flush_small.p50 us", floor.flush_small.latency.p50_us);
    samples.add("floor.group_commit 1/s", floor.group_commit.per_second);
    samples.add("floor.stream MB/s", floor.stream.megabytes_per_second);
    samples.add("floor.read_cold MB/s", floor.read_cold.megabytes_per_second);
    samples.add(
        "floor.flush_large_burst MB/s",
        floor.flush_large_burst.megabytes_per_second,
    );
    Ok(())
}

/// Start, idle memory, one producer, 64 producers.
fn measure_small(options: &ReportOptions, samples: &mut Samples) -> Result<()> {
    let fresh = Fresh::new(options, &[])?;
    let running = fresh.start()?;
    samples.add("node.first_start ms", millis(running.accepted_after));
    thread::sleep(IDLE_TIME);
    if let Some(bytes) = resident_bytes(running.pid()) {
        samples.add("node.idle MB", bytes as f64 / 1e6);
    }
    let single = Load {
        batch: 1,
        warm_up: options.scale.time / 4,
        time: options.scale.time,
        ..Load::default()
    };
    let one = load::run(&single, &running.node)?;
    samples.add("node.single.p50 us", one.latency.p50_us);
    samples.add("node.single.p99 us", one.latency.p99_us);
    let many = Load {
        lanes: floor::GROUP_CALLERS,
        ..single
    };
    let many = load::run(&many, &running.node)?;
    samples.add("node.64_producers msgs/s", many.messages_per_second);
    samples.add("node.64_producers.p50 us", many.latency.p50_us);
    samples.add("node.64_producers.p99 us", many.latency.p99_us);
    add_cores("node.64_producers", &many, samples);
    running.stop()?;
    let running = fresh.start()?;
    samples.add("node.start ms", millis(running.accepted_after));
    running.stop()
}

/// One producer of full batches.
fn measure_burst(options: &ReportOptions, samples: &mut Samples) -> Result<()> {
    let fresh = Fresh::new(options, &[])?;
    let running = fresh.start()?;
    let one = load::run(&batches(options.scale.burst_bytes, 1), &running.node)?;
    samples.add("node.burst_1 MB/s", one.megabytes_per_second);
    samples.add("node.burst_1.p99 us", one.latency.p99_us);
    add_cores("node.burst_1", &one, samples);
    running.stop()
}

/// Four producers of full batches; polls of what they sent; both again after SIGKILL; restarts.
fn measure_stored(options: &ReportOptions, samples: &mut Samples) -> Result<()> {
    let fresh = Fresh::new(options, &[])?;
    let running = fresh.start()?;
    let load = batches(options.scale.burst_bytes, FOUR);
    let places = load::create(&load, &running.node)?;
    let four = load::send(&load, &running.node, &places)?;
    samples.add("node.burst_4 MB/s", four.megabytes_per_second);
    samples.add("node.burst_4.p99 us", four.latency.p99_us);
    add_cores("node.burst_4", &four, samples);
    poll_both(options, samples, &running.node, &places, "node.poll")?;
    running.kill()?;

    let begun = Instant::now();
    let running = fresh.start()?;
    first_poll(&running.node, places[0])?;
    samples.add("node.first_poll_killed ms", millis(begun.elapsed()));
    poll_both(
        options,
        samples,
        &running.node,
        &places,
        "node.restarted_poll",
    )?;
    running.stop()?;

    let begun = Instant::now();
    let running = fresh.start()?;
    first_poll(&running.node, places[0])?;
    samples.add("node.first_poll_stopped ms", millis(begun.elapsed()));
    running.stop()
}

/// Polls of data that has left the log.
fn measure_drained(options: &ReportOptions, samples: &mut Samples) -> Result<()> {
    let limit = DRAINED_LOG_BYTES.to_string();
    let fresh = Fresh::new(options, &[("PAWL_LOG_BYTES_MAX", limit)])?;
    let running = fresh.start()?;
    let load = batches(options.scale.burst_bytes, FOUR);
    let places = load::create(&load, &running.node)?;
    load::send(&load, &running.node, &places)?;
    let begun = Instant::now();
    wait_drained(fresh.data.path(), options.scale.burst_bytes)?;
    samples.add("node.drain s", begun.elapsed().as_secs_f64());
    poll_both(
        options,
        samples,
        &running.node,
        &places,
        "node.drained_poll",
    )?;
    running.stop()
}

/// The bare loop and the node, over the same bytes.
fn measure_sustained(options: &ReportOptions, samples: &mut Samples) -> Result<()> {
    let bytes = options.scale.sustained_bytes;
    let bare = flush_loop_reserved(&options.directory, BLOCK_LARGE_BYTES, bytes)?;
    samples.add(
        "floor.flush_large_sustained MB/s",
        bare.megabytes_per_second,
    );
    let fresh = Fresh::new(options, &[])?;
    let running = fresh.start()?;
    let four = load::run(&batches(bytes, FOUR), &running.node)?;
    samples.add("node.sustained MB/s", four.megabytes_per_second);
    add_cores("node.sustained", &four, samples);
    running.stop()
}

/// `bytes` in batches of 1,000 messages of 1,000 bytes, from as many producers as partitions.
fn batches(bytes: u64, producers: u32) -> Load {
    Load {
        case: Case::Send,
        lanes: producers as usize,
        partitions: producers,
        warm_up: Duration::ZERO,
        bytes: Some(bytes),
        ..Load::default()
    }
}

/// Polls by one consumer and by four, each of its own partition. Before what counts, every message
/// is polled once: that pass is told by itself, since after a restart it reads from the disk.
fn poll_both(
    options: &ReportOptions,
    samples: &mut Samples,
    node: &Node,
    places: &[Place],
    name: &str,
) -> Result<()> {
    let pass = Load {
        case: Case::Poll,
        ..batches(options.scale.burst_bytes, FOUR)
    };
    let first = load::poll(&pass, node, places)?;
    let megabytes = first.megabytes_per_second;
    samples.add(&format!("{name}_first_pass MB/s"), megabytes);
    for consumers in [1, FOUR as usize] {
        let load = Load {
            case: Case::Poll,
            lanes: consumers,
            warm_up: options.scale.time / 4,
            time: options.scale.time,
            ..Load::default()
        };
        let outcome = load::poll(&load, node, places)?;
        let name = format!("{name}_{consumers}");
        samples.add(&format!("{name} MB/s"), outcome.megabytes_per_second);
        add_cores(&name, &outcome, samples);
    }
    Ok(())
}

fn first_poll(node: &Node, place: Place) -> Result<()> {
    let mut client = Client::sign_in(node.address, &node.credentials)?;
    match client.poll(place, 0, 1000)? {
        (0, _) => Err(BenchError::Payload {
            request: "message.poll",
            what: "nothing is there after a restart".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Waits until most of `bytes` has left the log: the files of the log are recycled, so what tells
/// is the size of everything else.
fn wait_drained(data: &Path, bytes: u64) -> Result<()> {
    let begun = Instant::now();
    let wanted = bytes.saturating_sub(2 * DRAINED_LOG_BYTES);
    while partition_bytes(data)? < wanted {
        if begun.elapsed() > DRAIN_TIME_MAX {
            return Err(BenchError::Payload {
                request: "drain",
                what: format!("{} bytes have left the log", partition_bytes(data)?),
            });
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Bytes below the directory of drained segments.
fn partition_bytes(data: &Path) -> Result<u64> {
    let mut bytes = 0;
    let mut left = vec![data.join("partitions")];
    while let Some(directory) = left.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries {
            let entry = entry.doing("look at the data directory")?;
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            match metadata.is_dir() {
                true => left.push(entry.path()),
                false => bytes += metadata.len(),
            }
        }
    }
    Ok(bytes)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn add_cores(name: &str, outcome: &Outcome, samples: &mut Samples) {
    samples.add(&format!("{name}.load cores"), outcome.cores.load);
    if let Some(node) = outcome.cores.node {
        samples.add(&format!("{name}.node cores"), node);
    }
}
