//! When a measurement begins to count and when it ends; the payload of what is written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// After this time, the warm-up not counted.
    Time(Duration),
    /// After this many bytes of payload, those of the warm-up not counted.
    Bytes(u64),
}

/// A measurement in time: what happens before `from` warms up, the rest counts.
#[derive(Debug)]
pub struct Window {
    from: Instant,
    until: Option<Instant>,
    bytes_left: Option<AtomicU64>,
}

/// What [`Window::admit`] says to one more request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Do it, it does not count.
    WarmUp,
    /// Do it, it counts.
    Counted,
    /// The measurement is over.
    Over,
}

impl Window {
    /// Opens now.
    pub fn open(warm_up: Duration, limit: Limit) -> Window {
        let from = Instant::now() + warm_up;
        let (until, bytes_left) = match limit {
            Limit::Time(time) => (Some(from + time), None),
            Limit::Bytes(bytes) => (None, Some(AtomicU64::new(bytes))),
        };
        Window {
            from,
            until,
            bytes_left,
        }
    }

    /// When counting begins.
    pub fn from(&self) -> Instant {
        self.from
    }

    /// Seconds since counting began.
    pub fn seconds(&self) -> f64 {
        let since = Instant::now().saturating_duration_since(self.from);
        since.as_secs_f64().max(1e-9)
    }

    /// Asks for one more request of `bytes` at `now`.
    pub fn admit(&self, now: Instant, bytes: u64) -> Admission {
        if now < self.from {
            return Admission::WarmUp;
        }
        if self.until.is_some_and(|until| now >= until) {
            return Admission::Over;
        }
        if let Some(left) = &self.bytes_left {
            let take = |left: u64| (left > 0).then(|| left.saturating_sub(bytes));
            if left
                .try_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .is_err()
            {
                return Admission::Over;
            }
        }
        Admission::Counted
    }
}

/// Bytes that do not compress, the same each run.
pub fn payload(bytes: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_of_bytes_is_given_out_once() {
        let window = Window::open(Duration::ZERO, Limit::Bytes(250));
        let now = Instant::now();
        assert_eq!(window.admit(now, 100), Admission::Counted);
        assert_eq!(window.admit(now, 100), Admission::Counted);
        assert_eq!(window.admit(now, 100), Admission::Counted);
        assert_eq!(window.admit(now, 100), Admission::Over);
    }

    #[test]
    fn time_runs_from_warm_up_over_counting_to_the_end() {
        let second = Duration::from_secs(1);
        let window = Window::open(second, Limit::Time(second));
        let at = |time| window.admit(window.from() + time, 1);
        assert_eq!(
            window.admit(window.from() - second / 2, 1),
            Admission::WarmUp
        );
        assert_eq!(at(Duration::ZERO), Admission::Counted);
        assert_eq!(at(second / 2), Admission::Counted);
        assert_eq!(at(second), Admission::Over);
    }

    #[test]
    fn payload_is_the_same_each_time_and_not_uniform() {
        assert_eq!(payload(1000), payload(1000));
        let distinct: std::collections::BTreeSet<u8> = payload(1000).into_iter().collect();
        assert!(distinct.len() > 200);
    }
}
