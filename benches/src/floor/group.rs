//! Group commit: many callers hand a record to one writer, which writes what has arrived, flushes
//! once, and wakes them.

use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::disk::Area;
use super::{GROUP_CALLERS, GROUP_RECORD_BYTES, Measured};
use crate::error::Result;
use crate::statistics::Latencies;
use crate::window::{Admission, Limit, Window, payload};

/// Bytes of the file that is written around.
const AREA_BYTES: u64 = 256 << 20;

/// What callers and writer share. Records are counted from 1.
#[derive(Debug, Default)]
struct Gathered {
    accepted: u64,
    durable: u64,
    bytes: Vec<u8>,
    callers_done: usize,
    /// The writer failed: nobody waits for it any more.
    broken: bool,
}

#[derive(Debug, Default)]
struct Group {
    gathered: Mutex<Gathered>,
    arrived: Condvar,
    flushed: Condvar,
}

/// Callers in a closed loop.
pub fn group_commit(directory: &Path, warm_up: Duration, limit: Limit) -> Result<Measured> {
    let mut area = Area::written(directory, AREA_BYTES)?;
    let group = Group::default();
    let window = Window::open(warm_up, limit);
    let mut latencies = Latencies::default();
    thread::scope(|scope| {
        let callers: Vec<_> = (0..GROUP_CALLERS)
            .map(|_| scope.spawn(|| group.call(&window)))
            .collect();
        let result = group.write(&mut area);
        for caller in callers {
            latencies.merge(&caller.join().expect("a caller does not panic"));
        }
        result
    })?;
    let latency = latencies.summary();
    let per_second = latency.count as f64 / window.seconds();
    Ok(Measured {
        per_second,
        megabytes_per_second: per_second * GROUP_RECORD_BYTES as f64 / 1e6,
        latency,
    })
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A caller: hands in a record and waits until it is flushed, until the window closes.
    fn call(&self, window: &Window) -> Latencies {
        let record = payload(GROUP_RECORD_BYTES);
        let mut latencies = Latencies::default();
        loop {
            let begun = Instant::now();
            let admission = window.admit(begun, record.len() as u64);
            if admission == Admission::Over || !self.commit(&record) {
                break;
            }
            if admission == Admission::Counted {
                latencies.record(begun.elapsed());
            }
        }
        self.lock().callers_done += 1;
        self.arrived.notify_one();
        latencies
    }

    /// Whether the record is flushed; not when the writer failed.
    fn commit(&self, record: &[u8]) -> bool {
        let mut gathered = self.lock();
        gathered.bytes.extend_from_slice(record);
        gathered.accepted += 1;
        let mine = gathered.accepted;
        self.arrived.notify_one();
        let gathered = self
            .flushed
            .wait_while(gathered, |gathered| {
                gathered.durable < mine && !gathered.broken
            })
            .unwrap_or_else(PoisonError::into_inner);
        gathered.durable >= mine
    }

    /// The writer, until every caller is done.
    fn write(&self, area: &mut Area) -> Result<()> {
        let mut batch = Vec::new();
        loop {
            let mut gathered = self
                .arrived
                .wait_while(self.lock(), |gathered| {
                    gathered.bytes.is_empty() && gathered.callers_done < GROUP_CALLERS
                })
                .unwrap_or_else(PoisonError::into_inner);
            if gathered.bytes.is_empty() {
                return Ok(());
            }
            std::mem::swap(&mut gathered.bytes, &mut batch);
            let accepted = gathered.accepted;
            drop(gathered);
            let written = area.write_flushed(&batch);
            batch.clear();
            let mut gathered = self.lock();
            match &written {
                Ok(()) => gathered.durable = accepted,
                Err(_) => gathered.broken = true,
            }
            drop(gathered);
            self.flushed.notify_all();
            written?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_flushed_before_its_caller_goes_on() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let limit = Limit::Bytes(1000 * GROUP_RECORD_BYTES as u64);
        let measured =
            group_commit(directory.path(), Duration::ZERO, limit).expect("a measurement");
        assert_eq!(measured.latency.count, 1000);
        assert!(measured.latency.p50_us > 0.0);
    }
}
