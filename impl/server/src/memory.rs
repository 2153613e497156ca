//! Memory for large bodies: a budget in bytes over all connections, and buffers that are used
//! again.
//!
//! A body of a megabyte from the allocator costs as many page faults as the copy itself; the pool
//! keeps such buffers warm. The budget makes a producer wait, by TCP, instead of the node grow.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::POOL_BYTES_MAX;

/// The budget counts in units of this many bytes.
const UNIT_BYTES: usize = 4096;

/// Buffers come in multiples of this.
const CLASS_BYTES: usize = 64 << 10;

/// Bytes of requests under way, over all connections.
#[derive(Clone, Debug)]
pub struct Budget {
    units: Arc<Semaphore>,
    units_max: usize,
}

/// A part of the budget, given back on drop.
pub type Share = OwnedSemaphorePermit;

impl Budget {
    /// A budget of this many bytes.
    pub fn new(bytes: u64) -> Budget {
        let units_max = (bytes as usize / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Budget {
            units: Arc::new(Semaphore::new(units_max)),
            units_max,
        }
    }

    /// Waits until `bytes` are free and takes them.
    pub async fn take(&self, bytes: usize) -> Share {
        let units = bytes.div_ceil(UNIT_BYTES).clamp(1, self.units_max) as u32;
        self.units
            .clone()
            .acquire_many_owned(units)
            .await
            .expect("the budget is never closed")
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        ((self.units_max - self.units.available_permits()) * UNIT_BYTES) as u64
    }
}

/// Buffers for large bodies.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    free: Arc<Mutex<Free>>,
}

#[derive(Debug, Default)]
struct Free {
    by_capacity: BTreeMap<usize, Vec<Vec<u8>>>,
    bytes: usize,
}

/// A buffer of the pool; goes back to it when the last `Bytes` made of it is dropped.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    pool: Pool,
}

impl Pool {
    /// An empty buffer with room for `bytes`.
    pub fn buffer(&self, bytes: usize) -> Buffer {
        let class = bytes.next_multiple_of(CLASS_BYTES);
        let found = {
            let mut free = self.free.lock();
            let found = free.by_capacity.get_mut(&class).and_then(Vec::pop);
            if found.is_some() {
                free.bytes -= class;
            }
            found
        };
        Buffer {
            bytes: found.unwrap_or_else(|| Vec::with_capacity(class)),
            pool: self.clone(),
        }
    }

    /// Bytes that wait to be used again.
    pub fn free_bytes(&self) -> usize {
        self.free.lock().bytes
    }
}

impl Buffer {
    /// The bytes; they must not grow beyond the room asked for.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The filled part.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        let capacity = bytes.capacity();
        if capacity == 0 || !capacity.is_multiple_of(CLASS_BYTES) {
            return;
        }
        let mut free = self.pool.free.lock();
        if free.bytes + capacity <= POOL_BYTES_MAX {
            bytes.clear();
            free.bytes += capacity;
            free.by_capacity.entry(capacity).or_default().push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_are_used_again() {
        let pool = Pool::default();
        let mut buffer = pool.buffer(100_000);
        buffer.bytes_mut().extend_from_slice(b"abc");
        let address = buffer.as_ref().as_ptr();
        let bytes = buffer.freeze();
        let slice = bytes.slice(1..);
        drop(bytes);
        assert_eq!(pool.free_bytes(), 0, "a slice still holds it");
        assert_eq!(&slice[..], b"bc");
        drop(slice);
        assert_eq!(pool.free_bytes(), 128 << 10);
        let mut again = pool.buffer(128 << 10);
        assert!(again.bytes_mut().is_empty());
        assert_eq!(again.as_ref().as_ptr(), address);
        assert_eq!(pool.free_bytes(), 0);
    }

    #[test]
    fn the_pool_keeps_a_bounded_number_of_bytes() {
        let pool = Pool::default();
        let buffers: Vec<Buffer> = (0..40).map(|_| pool.buffer(1 << 20)).collect();
        drop(buffers);
        assert_eq!(pool.free_bytes(), POOL_BYTES_MAX);
    }

    #[test]
    fn the_budget_makes_the_next_one_wait() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let budget = Budget::new(1 << 20);
            let share = budget.take(700 << 10).await;
            assert_eq!(budget.used(), 700 << 10);
            let mut second = Box::pin(budget.take(700 << 10));
            let waits = std::future::poll_fn(|cx| {
                std::task::Poll::Ready(second.as_mut().poll(cx).is_pending())
            });
            assert!(waits.await);
            drop(share);
            let _second = second.await;
            assert_eq!(budget.used(), 700 << 10);
        });
    }
}
