//! The newest message bodies, in memory: a poll right after an acknowledgement needs no disk.
//!
//! Ops are consecutive, so that the cache is a queue indexed by op; ops without a body leave an
//! empty place. The oldest leave first. The log thread fills it with handles, not bytes.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use pawl_wire::ids::Op;

use crate::limits::TAIL_OPS_MAX;

/// The cache.
#[derive(Debug)]
pub struct TailCache {
    queue: Mutex<Queue>,
    bytes_max: u64,
}

#[derive(Debug, Default)]
struct Queue {
    /// Op of the first place.
    first: u64,
    bodies: VecDeque<Bytes>,
    bytes: u64,
}

impl TailCache {
    /// A cache of at most this many bytes of bodies.
    pub fn new(bytes_max: u64) -> TailCache {
        TailCache {
            queue: Mutex::new(Queue::default()),
            bytes_max,
        }
    }

    /// Keeps the body of `op`, which is above all ops kept before.
    pub fn push(&self, op: Op, body: Bytes) {
        let mut queue = self.queue.lock();
        let next = queue.first + queue.bodies.len() as u64;
        if queue.bodies.is_empty() || op.0 > next + TAIL_OPS_MAX as u64 {
            queue.bodies.clear();
            queue.bytes = 0;
            queue.first = op.0;
        } else {
            assert!(op.0 >= next, "ops rise");
            let gap = (op.0 - next) as usize;
            queue.bodies.extend(std::iter::repeat_n(Bytes::new(), gap));
        }
        queue.bytes += body.len() as u64;
        queue.bodies.push_back(body);
        while queue.bytes > self.bytes_max || queue.bodies.len() > TAIL_OPS_MAX {
            let Some(body) = queue.bodies.pop_front() else {
                break;
            };
            queue.bytes -= body.len() as u64;
            queue.first += 1;
        }
    }

    /// The bodies of these ops, as far as they are kept.
    pub fn get(&self, ops: impl Iterator<Item = Op>, found: &mut Vec<Option<Bytes>>) {
        let queue = self.queue.lock();
        found.extend(ops.map(|op| {
            let index = op.0.checked_sub(queue.first)?;
            let body = queue.bodies.get(index as usize)?;
            (!body.is_empty()).then(|| body.clone())
        }));
    }

    /// Bytes of the bodies kept.
    pub fn bytes(&self) -> u64 {
        self.queue.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(cache: &TailCache, op: u64) -> Option<Bytes> {
        let mut found = Vec::new();
        cache.get([Op(op)].into_iter(), &mut found);
        found.pop().flatten()
    }

    #[test]
    fn newest_bodies_are_found_by_op() {
        let cache = TailCache::new(10);
        cache.push(Op(5), Bytes::from_static(b"aaaa"));
        cache.push(Op(8), Bytes::from_static(b"bbbb"));
        assert_eq!(get(&cache, 5).as_deref(), Some(&b"aaaa"[..]));
        assert_eq!(get(&cache, 6), None);
        assert_eq!(get(&cache, 8).as_deref(), Some(&b"bbbb"[..]));
        assert_eq!(get(&cache, 4), None);
        assert_eq!(get(&cache, 9), None);
        cache.push(Op(9), Bytes::from_static(b"cccc"));
        assert_eq!(get(&cache, 5), None, "the oldest has left");
        assert_eq!(cache.bytes(), 8);
    }

    #[test]
    fn a_body_above_the_limit_and_a_wide_gap_leave_nothing_behind() {
        let cache = TailCache::new(3);
        cache.push(Op(1), Bytes::from_static(b"aaaa"));
        assert_eq!((get(&cache, 1), cache.bytes()), (None, 0));
        cache.push(Op(2), Bytes::from_static(b"b"));
        cache.push(Op(10_000_000), Bytes::from_static(b"c"));
        assert_eq!((get(&cache, 2), cache.bytes()), (None, 1));
        assert_eq!(get(&cache, 10_000_000).as_deref(), Some(&b"c"[..]));
    }
}
