//! What is wanted of a node, as ratios to the floor of the same run where the machine decides.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Samples;
use super::peers::Peer;

/// A bound of a target.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// The ratio to the floor is at most this.
    RatioAtMost(f64),
    /// The ratio to the floor is at least this.
    RatioAtLeast(f64),
    /// The value itself is below this.
    Below(f64),
    /// Nothing: the ratio is told.
    Told,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::RatioAtMost(ratio) => write!(f, "at most {ratio} x"),
            Wanted::RatioAtLeast(ratio) => write!(f, "at least {ratio:.2} x"),
            Wanted::Below(bound) => write!(f, "below {bound}"),
            Wanted::Told => write!(f, "told"),
        }
    }
}

/// A target and how it was met.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Judged {
    /// In words.
    pub name: String,
    /// The median; NaN (null) when it was not measured.
    #[serde(deserialize_with = "null_is_nan")]
    pub measured: f64,
    /// The unit of `measured` and `floor`.
    pub unit: String,
    /// The floor's median, where there is one.
    pub floor: Option<f64>,
    /// The bound.
    pub wanted: Wanted,
}

fn null_is_nan<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl Judged {
    /// Measured by floor.
    pub fn ratio(&self) -> Option<f64> {
        let ratio = self.measured / self.floor?;
        ratio.is_finite().then_some(ratio)
    }

    /// Whether the target is met; `None` when it was not measured, or only told.
    pub fn is_met(&self) -> Option<bool> {
        match self.wanted {
            Wanted::RatioAtMost(bound) => Some(self.ratio()? <= bound),
            Wanted::RatioAtLeast(bound) => Some(self.ratio()? >= bound),
            Wanted::Below(bound) => (!self.measured.is_nan()).then_some(self.measured < bound),
            Wanted::Told => None,
        }
    }
}

const ROUND_TRIP: &str = "floor.round_trip_flush.p50 us";
const GROUP: &str = "floor.group_commit 1/s";
const STREAM: &str = "floor.stream MB/s";
const BURST: &str = "floor.flush_large_burst MB/s";
const READ_COLD: &str = "floor.read_cold MB/s";
const SUSTAINED: &str = "floor.flush_large_sustained MB/s";
const SINGLES: &str = "node.64_producers msgs/s";

/// Targets that compare one median with one floor: words, median, floor, bound.
const BY_FLOOR: [(&str, &str, &str, Wanted); 12] = {
    use Wanted::{RatioAtLeast, RatioAtMost, Told};
    [
        (
            "one producer, one message: p50",
            "node.single.p50 us",
            ROUND_TRIP,
            RatioAtMost(1.3),
        ),
        (
            "64 producers, one message each",
            SINGLES,
            GROUP,
            RatioAtLeast(0.4),
        ),
        (
            "burst, batches of 1,000, one producer",
            "node.burst_1 MB/s",
            STREAM,
            RatioAtLeast(0.12),
        ),
        (
            "sustained, batches of 1,000, four producers",
            "node.sustained MB/s",
            SUSTAINED,
            RatioAtLeast(0.7),
        ),
        (
            "polls of 1,000, one consumer",
            "node.poll_1 MB/s",
            STREAM,
            RatioAtLeast(0.45),
        ),
        (
            "polls of 1,000, four consumers",
            "node.poll_4 MB/s",
            STREAM,
            RatioAtLeast(0.6),
        ),
        (
            "after a restart, one consumer",
            "node.restarted_poll_1 MB/s",
            STREAM,
            RatioAtLeast(0.45),
        ),
        (
            "after a restart, four consumers",
            "node.restarted_poll_4 MB/s",
            STREAM,
            RatioAtLeast(0.6),
        ),
        (
            "after SIGKILL, first pass over all data, beside cold reads",
            "node.restarted_poll_first_pass MB/s",
            READ_COLD,
            Told,
        ),
        (
            "drained data, one consumer",
            "node.drained_poll_1 MB/s",
            STREAM,
            RatioAtLeast(0.45),
        ),
        (
            "drained data, four consumers",
            "node.drained_poll_4 MB/s",
            STREAM,
            RatioAtLeast(0.6),
        ),
        (
            "drained data, first pass, beside cold reads",
            "node.drained_poll_first_pass MB/s",
            READ_COLD,
            Told,
        ),
    ]
};

/// Targets that bound a median by itself: words, median, bound.
const BY_ITSELF: [(&str, &str, f64); 4] = [
    (
        "first poll after a clean stop, 1,000,000 messages",
        "node.first_poll_stopped ms",
        500.0,
    ),
    (
        "first poll after SIGKILL, 1,000,000 messages",
        "node.first_poll_killed ms",
        1000.0,
    ),
    ("idle memory", "node.idle MB", 48.0),
    ("start to first accepted connection", "node.start ms", 100.0),
];

/// Judges every target.
pub fn judge(samples: &Samples, peers: &[Peer]) -> Vec<Judged> {
    let unit = |name: &str| name.rsplit(' ').next().unwrap_or_default().to_owned();
    let measured = |name: &str| samples.median(name).unwrap_or(f64::NAN);
    let mut judged: Vec<_> = BY_FLOOR
        .iter()
        .map(|(words, name, floor, wanted)| Judged {
            name: (*words).to_owned(),
            measured: measured(name),
            unit: unit(name),
            floor: samples.median(floor),
            wanted: *wanted,
        })
        .collect();
    judged.insert(3, judge_burst_of_four(samples));
    judged.extend(BY_ITSELF.iter().map(|(words, name, bound)| Judged {
        name: (*words).to_owned(),
        measured: measured(name),
        unit: unit(name),
        floor: None,
        wanted: Wanted::Below(*bound),
    }));
    let redis = |peer: &&Peer| peer.group == "redis-always" && peer.label == "xadd c64 d1";
    judged.extend(peers.iter().find(redis).map(|redis| Judged {
        name: "64 producers beside Redis streams, appendfsync always".to_owned(),
        measured: measured(SINGLES),
        unit: unit(SINGLES),
        floor: Some(redis.per_second),
        wanted: Wanted::Told,
    }));
    judged
}

/// Four producers in a burst: 30 % of the stream, or 60 % of the large flushes if that is less.
fn judge_burst_of_four(samples: &Samples) -> Judged {
    let stream = samples.median(STREAM);
    let flushes = samples.median(BURST);
    let disk_decides = match (stream, flushes) {
        (Some(stream), Some(flushes)) => 0.6 * flushes < 0.3 * stream,
        _ => false,
    };
    let (of, floor, bound) = match disk_decides {
        true => ("of large flushes", flushes, 0.6),
        false => ("of the stream", stream, 0.3),
    };
    Judged {
        name: format!("burst, batches of 1,000, four producers, {of}"),
        measured: samples.median("node.burst_4 MB/s").unwrap_or(f64::NAN),
        unit: "MB/s".to_owned(),
        floor,
        wanted: Wanted::RatioAtLeast(bound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(measured: f64, floor: Option<f64>, wanted: Wanted) -> Judged {
        Judged {
            name: "a target".to_owned(),
            measured,
            unit: "us".to_owned(),
            floor,
            wanted,
        }
    }

    #[test]
    fn bounds_are_inclusive_for_ratios_and_exclusive_for_values() {
        let met = |measured, floor, wanted| judged(measured, floor, wanted).is_met();
        assert_eq!(met(13.0, Some(10.0), Wanted::RatioAtMost(1.3)), Some(true));
        assert_eq!(met(13.1, Some(10.0), Wanted::RatioAtMost(1.3)), Some(false));
        assert_eq!(met(4.0, Some(10.0), Wanted::RatioAtLeast(0.4)), Some(true));
        assert_eq!(met(3.9, Some(10.0), Wanted::RatioAtLeast(0.4)), Some(false));
        assert_eq!(met(47.9, None, Wanted::Below(48.0)), Some(true));
        assert_eq!(met(48.0, None, Wanted::Below(48.0)), Some(false));
        assert_eq!(met(1.0, Some(2.0), Wanted::Told), None);
    }

    #[test]
    fn what_was_not_measured_is_neither_met_nor_missed() {
        let met = |measured, floor, wanted| judged(measured, floor, wanted).is_met();
        assert_eq!(met(f64::NAN, Some(1.0), Wanted::RatioAtMost(1.3)), None);
        assert_eq!(met(1.0, None, Wanted::RatioAtMost(1.3)), None);
        assert_eq!(met(f64::NAN, None, Wanted::Below(1.0)), None);
    }

    #[test]
    fn the_smaller_of_both_bounds_counts_for_four_producers() {
        let mut samples = Samples::default();
        samples.add(STREAM, 4000.0);
        samples.add(BURST, 3000.0);
        samples.add("node.burst_4 MB/s", 1200.0);
        let by_stream = judge_burst_of_four(&samples);
        assert_eq!(by_stream.floor, Some(4000.0));
        assert_eq!(by_stream.is_met(), Some(true));
        let mut samples = Samples::default();
        samples.add(STREAM, 4000.0);
        samples.add(BURST, 1000.0);
        samples.add("node.burst_4 MB/s", 500.0);
        let by_disk = judge_burst_of_four(&samples);
        assert_eq!(by_disk.floor, Some(1000.0));
        assert_eq!(by_disk.is_met(), Some(false));
    }
}
