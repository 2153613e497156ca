//! Latencies and what is told of them, medians of repetitions.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The longest latency that is told apart from longer ones.
const LATENCY_MAX: Duration = Duration::from_secs(120);

/// Latencies from 1 ns on, three digits.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

/// What is told of latencies, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// How many were measured; all others are 0 when this is 0.
    pub count: u64,
    /// The mean.
    pub mean_us: f64,
    /// Half are at most this long.
    pub p50_us: f64,
    /// 95 of 100 are at most this long.
    pub p95_us: f64,
    /// 99 of 100 are at most this long.
    pub p99_us: f64,
    /// 999 of 1,000 are at most this long.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Default for Latencies {
    fn default() -> Self {
        let max = u64::try_from(LATENCY_MAX.as_nanos()).expect("two minutes fit");
        Latencies(Histogram::new_with_bounds(1, max, 3).expect("the bounds are in order"))
    }
}

impl Latencies {
    /// Counts one.
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(nanoseconds);
    }

    /// Counts all of `other` too.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// The latency at quantile `q`, in microseconds.
    pub fn quantile_us(&self, q: f64) -> f64 {
        self.0.value_at_quantile(q) as f64 / 1e3
    }

    /// What is told of them.
    pub fn summary(&self) -> Summary {
        if self.0.is_empty() {
            return Summary::default();
        }
        Summary {
            count: self.0.len(),
            mean_us: self.0.mean() / 1e3,
            p50_us: self.quantile_us(0.5),
            p95_us: self.quantile_us(0.95),
            p99_us: self.quantile_us(0.99),
            p999_us: self.quantile_us(0.999),
            max_us: self.0.max() as f64 / 1e3,
        }
    }

    /// Points of the curve that a plot shows: quantile and microseconds, towards 1 in ever smaller
    /// steps and no further than the count allows.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let mut points = Vec::new();
        let mut rest = 1.0;
        while !self.0.is_empty() && rest * self.0.len() as f64 >= 1.0 {
            points.push((1.0 - rest, self.quantile_us(1.0 - rest)));
            // Twenty points a decade.
            rest *= 0.1f64.powf(0.05);
        }
        points
    }
}

/// The median; `None` of nothing. Of an even count the lower one, which was really measured.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len().checked_sub(1)? / 2;
    Some(sorted[middle])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up_to(count: u64) -> Latencies {
        let mut latencies = Latencies::default();
        (1..=count).for_each(|us| latencies.record(Duration::from_micros(us)));
        latencies
    }

    fn close(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= expected * 0.002
    }

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let summary = up_to(10_000).summary();
        assert_eq!(summary.count, 10_000);
        assert!(close(summary.mean_us, 5000.5), "{summary:?}");
        assert!(close(summary.p50_us, 5000.0), "{summary:?}");
        assert!(close(summary.p95_us, 9500.0), "{summary:?}");
        assert!(close(summary.p99_us, 9900.0), "{summary:?}");
        assert!(close(summary.p999_us, 9990.0), "{summary:?}");
        assert!(close(summary.max_us, 10_000.0), "{summary:?}");
    }

    #[test]
    fn nothing_measured_is_all_zero() {
        assert_eq!(Latencies::default().summary(), Summary::default());
        assert!(Latencies::default().curve().is_empty());
    }

    #[test]
    fn a_latency_past_the_bound_counts_as_the_bound() {
        let mut latencies = Latencies::default();
        latencies.record(LATENCY_MAX * 10);
        assert!(close(latencies.summary().max_us, 120e6));
    }

    #[test]
    fn merged_latencies_count_both() {
        let mut latencies = up_to(10);
        latencies.merge(&up_to(20));
        assert_eq!(latencies.summary().count, 30);
    }

    #[test]
    fn the_curve_rises_and_ends_where_the_count_does() {
        let curve = up_to(1000).curve();
        assert!(curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        let last = curve.last().expect("a curve has points");
        assert!(last.0 <= 0.9991 && last.0 > 0.99, "{last:?}");
    }

    #[test]
    fn the_median_is_a_measured_value() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.0));
    }
}
