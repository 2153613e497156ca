//! Write and flush, in a loop.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, FallocateFlags};

use super::Measured;
use crate::error::{Doing, Result};
use crate::statistics::Latencies;
use crate::window::{Admission, Limit, Window, payload};

/// Bytes of the area that is written over and over.
const AREA_BYTES: u64 = 64 << 20;

/// A file without a name, whose blocks are there before it is measured.
#[derive(Debug)]
pub struct Area {
    file: File,
    bytes: u64,
    position: u64,
}

impl Area {
    /// Blocks that have been written and flushed before.
    pub fn written(directory: &Path, bytes: u64) -> Result<Area> {
        let file = tempfile::tempfile_in(directory).doing("make a file to measure with")?;
        let zeros = vec![0; 1 << 20];
        for position in (0..bytes).step_by(zeros.len()) {
            file.write_all_at(&zeros, position)
                .doing("write the file to measure with")?;
        }
        file.sync_all().doing("flush the file to measure with")?;
        Ok(Area {
            file,
            bytes,
            position: 0,
        })
    }

    /// Blocks that are reserved and have never been written.
    pub fn reserved(directory: &Path, bytes: u64) -> Result<Area> {
        let file = tempfile::tempfile_in(directory).doing("make a file to measure with")?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)
            .doing("reserve the file to measure with")?;
        file.sync_all().doing("flush the file to measure with")?;
        Ok(Area {
            file,
            bytes,
            position: 0,
        })
    }

    /// Writes `block` at the next place, around at the end, and flushes.
    pub fn write_flushed(&mut self, block: &[u8]) -> Result<()> {
        let block_bytes = block.len() as u64;
        assert!(block_bytes <= self.bytes, "the area holds a block");
        if self.position + block_bytes > self.bytes {
            self.position = 0;
        }
        self.file
            .write_all_at(block, self.position)
            .doing("write a block")?;
        self.position += block_bytes;
        rustix::fs::fdatasync(&self.file).doing("flush a block")
    }
}

/// Writes and flushes blocks of `block_bytes` into blocks that exist.
pub fn flush_loop_written(
    directory: &Path,
    block_bytes: usize,
    warm_up: Duration,
    limit: Limit,
) -> Result<Measured> {
    flush_loop(
        Area::written(directory, AREA_BYTES)?,
        block_bytes,
        warm_up,
        limit,
    )
}

/// Writes and flushes `bytes` in blocks of `block_bytes` into a reserved file.
pub fn flush_loop_reserved(directory: &Path, block_bytes: usize, bytes: u64) -> Result<Measured> {
    let area = Area::reserved(directory, bytes)?;
    flush_loop(area, block_bytes, Duration::ZERO, Limit::Bytes(bytes))
}

/// Reads `bytes` that lie on the disk and not in memory, once, in blocks of `block_bytes`.
pub fn read_cold(directory: &Path, block_bytes: usize, bytes: u64) -> Result<Measured> {
    let area = Area::written(directory, bytes)?;
    rustix::fs::fadvise(&area.file, 0, None, Advice::DontNeed).doing("empty the page cache")?;
    let mut block = vec![0; block_bytes];
    let window = Window::open(Duration::ZERO, Limit::Bytes(bytes));
    let mut latencies = Latencies::default();
    for position in (0..bytes).step_by(block_bytes) {
        let begun = Instant::now();
        area.file
            .read_exact_at(&mut block, position)
            .doing("read a block")?;
        latencies.record(begun.elapsed());
    }
    Ok(measured(&latencies, &window, block_bytes))
}

fn measured(latencies: &Latencies, window: &Window, block_bytes: usize) -> Measured {
    let latency = latencies.summary();
    let per_second = latency.count as f64 / window.seconds();
    Measured {
        per_second,
        megabytes_per_second: per_second * block_bytes as f64 / 1e6,
        latency,
    }
}

fn flush_loop(
    mut area: Area,
    block_bytes: usize,
    warm_up: Duration,
    limit: Limit,
) -> Result<Measured> {
    let block = payload(block_bytes);
    let window = Window::open(warm_up, limit);
    let mut latencies = Latencies::default();
    let mut begun = Instant::now();
    loop {
        let admission = window.admit(begun, block_bytes as u64);
        if admission == Admission::Over {
            break;
        }
        area.write_flushed(&block)?;
        let ended = Instant::now();
        if admission == Admission::Counted {
            latencies.record(ended - begun);
        }
        begun = ended;
    }
    Ok(measured(&latencies, &window, block_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_written_around() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut area = Area::written(directory.path(), 1 << 20).expect("an area");
        for round in 0..5 {
            area.write_flushed(&[round; 300 << 10]).expect("a write");
        }
        assert_eq!(area.position, 600 << 10);
        let bytes = area.file.metadata().expect("metadata").len();
        assert_eq!(bytes, 1 << 20);
    }

    #[test]
    fn a_loop_bounded_in_bytes_writes_that_many() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let measured = flush_loop_reserved(directory.path(), 4096, 10 * 4096).expect("a loop");
        assert_eq!(measured.latency.count, 10);
        assert!(measured.per_second > 0.0);
    }

    #[test]
    fn a_cold_read_reads_every_block() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let measured = read_cold(directory.path(), 1 << 20, 4 << 20).expect("a read");
        assert_eq!(measured.latency.count, 4);
    }
}
