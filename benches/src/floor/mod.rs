//! What this machine allows: the limits that no server on it can pass.
//!
//! Every limit is measured with plain blocking threads and system calls, in the same run as what is
//! compared with it, since an absolute number says something only about its own run. What is
//! written is written into blocks that exist, unless said otherwise: extending a file costs another
//! flush of the file system's journal.

mod disk;
mod group;
mod network;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::statistics::Summary;
use crate::table::{Table, number};
use crate::window::Limit;

pub use disk::{flush_loop_reserved, flush_loop_written, read_cold};

/// The small block: what one small record costs the disk.
pub const BLOCK_SMALL_BYTES: usize = 4 << 10;

/// The large block: what a full batch costs the disk.
pub const BLOCK_LARGE_BYTES: usize = 1 << 20;

/// Callers of the group commit.
pub const GROUP_CALLERS: usize = 64;

/// Bytes of a caller's record.
pub const GROUP_RECORD_BYTES: usize = 1000;

/// How much is measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FloorOptions {
    /// Where the files are made; they are gone afterwards.
    pub directory: PathBuf,
    /// Time of each measurement that is bounded in time.
    pub time: Duration,
    /// Bytes of the burst of large blocks.
    pub burst_bytes: u64,
    /// Bytes of the sustained loop of large blocks; `None` leaves it out.
    pub sustained_bytes: Option<u64>,
}

impl FloorOptions {
    /// The full form.
    pub fn full(directory: &Path) -> FloorOptions {
        FloorOptions {
            directory: directory.to_owned(),
            time: Duration::from_secs(3),
            burst_bytes: 1 << 30,
            sustained_bytes: Some(4 << 30),
        }
    }

    /// A form of a few seconds.
    pub fn quick(directory: &Path) -> FloorOptions {
        FloorOptions {
            directory: directory.to_owned(),
            time: Duration::from_millis(300),
            burst_bytes: 64 << 20,
            sustained_bytes: Some(128 << 20),
        }
    }

    fn warm_up(&self) -> Duration {
        self.time / 5
    }
}

/// One measured limit.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// How often a second.
    pub per_second: f64,
    /// 10^6 bytes a second; 0 where bytes do not matter.
    pub megabytes_per_second: f64,
    /// Of one repetition; all 0 for a stream.
    pub latency: Summary,
}

/// The limits.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Floor {
    /// A loopback TCP round trip in which the answering side first writes and flushes a small
    /// block.
    pub round_trip_flush: Measured,
    /// A loopback TCP round trip alone.
    pub round_trip: Measured,
    /// Small records of many callers, written and flushed together.
    pub group_commit: Measured,
    /// Write and flush of a small block.
    pub flush_small: Measured,
    /// Write and flush of a large block, for a short time, over blocks that exist.
    pub flush_large_burst: Measured,
    /// Write and flush of a large block, for long, into a file that is only reserved.
    pub flush_large_sustained: Option<Measured>,
    /// Read of a large block that is on the disk and not in memory.
    pub read_cold: Measured,
    /// One loopback TCP stream.
    pub stream: Measured,
}

/// Measures all limits, one after the other.
pub fn measure(options: &FloorOptions) -> Result<Floor> {
    let directory = &options.directory;
    let (warm_up, time) = (options.warm_up(), Limit::Time(options.time));
    let sustained = |bytes| flush_loop_reserved(directory, BLOCK_LARGE_BYTES, bytes);
    Ok(Floor {
        round_trip_flush: network::round_trip(Some(directory), warm_up, time)?,
        round_trip: network::round_trip(None, warm_up, time)?,
        group_commit: group::group_commit(directory, warm_up, time)?,
        flush_small: flush_loop_written(directory, BLOCK_SMALL_BYTES, warm_up, time)?,
        stream: network::stream(warm_up, time)?,
        flush_large_burst: flush_loop_written(
            directory,
            BLOCK_LARGE_BYTES,
            Duration::ZERO,
            Limit::Bytes(options.burst_bytes),
        )?,
        read_cold: read_cold(directory, BLOCK_LARGE_BYTES, options.burst_bytes / 4)?,
        flush_large_sustained: options.sustained_bytes.map(sustained).transpose()?,
    })
}

impl Floor {
    /// Names and values, in the order of the tables.
    pub fn rows(&self) -> Vec<(&'static str, Measured)> {
        let mut rows = vec![
            ("round trip + write + flush 4 KiB", self.round_trip_flush),
            ("round trip", self.round_trip),
            ("write + flush 4 KiB", self.flush_small),
            ("group commit of 64", self.group_commit),
            ("write + flush 1 MiB, burst", self.flush_large_burst),
        ];
        if let Some(sustained) = self.flush_large_sustained {
            rows.push(("write + flush 1 MiB, sustained", sustained));
        }
        rows.push(("read 1 MiB from the disk", self.read_cold));
        rows.push(("loopback TCP stream", self.stream));
        rows
    }

    /// The table.
    pub fn table(&self) -> Table {
        let mut table = Table::new(["floor", "1/s", "MB/s", "p50 us", "p95 us", "p99 us"]);
        for (name, measured) in self.rows() {
            let latency = measured.latency;
            let unless_zero = |value: f64| match value {
                0.0 => "-".to_owned(),
                value => number(value),
            };
            table.row(vec![
                name.to_owned(),
                unless_zero(measured.per_second),
                unless_zero(measured.megabytes_per_second),
                unless_zero(latency.p50_us),
                unless_zero(latency.p95_us),
                unless_zero(latency.p99_us),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_reads_back_from_its_json() {
        let floor = Floor {
            stream: Measured {
                megabytes_per_second: 4200.0,
                ..Measured::default()
            },
            ..Floor::default()
        };
        let json = serde_json::to_value(floor).expect("numbers are JSON");
        assert_eq!(json["stream"]["megabytes_per_second"], 4200.0);
        assert!(json["round_trip_flush"]["latency"]["p50_us"].is_number());
        assert!(json["flush_large_sustained"].is_null());
        let read: Floor = serde_json::from_value(json).expect("it was written by us");
        assert_eq!(read, floor);
    }

    #[test]
    fn the_table_has_a_row_for_each_limit() {
        let text = Floor::default().table().text();
        for (name, _) in Floor::default().rows() {
            assert!(text.contains(name), "{text}");
        }
    }
}
