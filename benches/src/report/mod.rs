//! Everything that has a target, in one run: samples from interleaved repetitions, their medians
//! set beside the floor of the same run, and beside other systems measured in the same session.
//!
//! A repetition measures each group once, so that a machine that slows down for a while touches all
//! of them. Each group starts nodes of its own with fresh data directories and stops them.

mod groups;
mod peers;
mod targets;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::statistics::median;
use crate::table::{Table, number};

pub use peers::Peer;
pub use targets::Judged;

/// What a run of the report measures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReportOptions {
    /// The node's program.
    pub binary: PathBuf,
    /// Where data directories are made.
    pub directory: PathBuf,
    /// How often each group is measured.
    pub repetitions: usize,
    /// Only groups whose name contains this.
    pub only: Option<String>,
    /// How much is measured.
    pub scale: Scale,
    /// Results of other systems.
    pub peers: Option<PathBuf>,
}

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Time of a measurement that is bounded in time.
    pub time: Duration,
    /// Payload of the bursts; also what is polled and what restarts find.
    pub burst_bytes: u64,
    /// Payload of the sustained load.
    pub sustained_bytes: u64,
}

impl Scale {
    /// What the targets are written for.
    pub const FULL: Scale = Scale {
        time: Duration::from_secs(2),
        burst_bytes: 1_000_000_000,
        sustained_bytes: 4 << 30,
    };

    /// Less, to see that everything runs.
    pub const QUICK: Scale = Scale {
        time: Duration::from_millis(300),
        burst_bytes: 100_000_000,
        sustained_bytes: 256 << 20,
    };
}

/// What was measured: one value a repetition, by name.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Samples(BTreeMap<String, Vec<f64>>);

impl Samples {
    /// Adds the value of a repetition.
    pub fn add(&mut self, name: &str, value: f64) {
        self.0.entry(name.to_owned()).or_default().push(value);
    }

    /// The median over the repetitions.
    pub fn median(&self, name: &str) -> Option<f64> {
        median(self.0.get(name)?)
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["measured", "median", "lowest", "highest"]);
        for (name, values) in &self.0 {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let middle = median(values).unwrap_or(f64::NAN);
            table.row(vec![
                name.clone(),
                number(middle),
                number(low),
                number(high),
            ]);
        }
        table
    }
}

/// The whole report, as it is written to a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// How often each group was measured.
    pub repetitions: usize,
    /// Everything measured.
    pub samples: Samples,
    /// The targets.
    pub targets: Vec<Judged>,
    /// Other systems.
    pub peers: Vec<Peer>,
}

/// Measures everything.
pub fn run(options: &ReportOptions) -> Result<Report> {
    let mut samples = Samples::default();
    let wanted = |name: &str| match &options.only {
        Some(only) => name.contains(only.as_str()),
        None => true,
    };
    for repetition in 0..options.repetitions {
        for group in groups::ALL.iter().filter(|group| wanted(group.name)) {
            eprintln!(
                "repetition {} of {}: {}",
                repetition + 1,
                options.repetitions,
                group.name
            );
            (group.measure)(options, &mut samples)?;
        }
    }
    let peers = match &options.peers {
        Some(path) => peers::read(path)?,
        None => Vec::new(),
    };
    Ok(Report {
        repetitions: options.repetitions,
        targets: targets::judge(&samples, &peers),
        samples,
        peers,
    })
}

impl Report {
    fn targets_table(&self) -> Table {
        let mut table = Table::new(["target", "measured", "floor", "ratio", "wanted", "met"]);
        for target in &self.targets {
            table.row(vec![
                target.name.clone(),
                format!("{} {}", number(target.measured), target.unit),
                target.floor.map_or("-".to_owned(), number),
                target.ratio().map_or("-".to_owned(), number),
                target.wanted.to_string(),
                target
                    .is_met()
                    .map_or("-", |met| if met { "yes" } else { "NO" })
                    .to_owned(),
            ]);
        }
        table
    }

    fn peers_table(&self) -> Table {
        let mut table = Table::new(["system", "case", "msgs/s", "MB/s", "p50 us", "p99 us"]);
        for peer in &self.peers {
            table.row(vec![
                peer.group.clone(),
                peer.label.clone(),
                number(peer.per_second),
                number(peer.megabytes_per_second),
                number(peer.p50_us),
                number(peer.p99_us),
            ]);
        }
        table
    }

    fn tables(&self) -> Vec<(&'static str, Table)> {
        let mut tables = vec![
            ("Targets", self.targets_table()),
            ("Everything measured", self.samples.table()),
        ];
        if !self.peers.is_empty() {
            tables.push(("Other systems in the same session", self.peers_table()));
        }
        tables
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let tables = self.tables();
        let texts: Vec<_> = tables
            .iter()
            .map(|(title, table)| format!("{title}\n{}", table.text()))
            .collect();
        texts.join("\n\n")
    }

    /// For a Markdown file.
    pub fn markdown(&self) -> String {
        let tables = self.tables();
        let texts: Vec<_> = tables
            .iter()
            .map(|(title, table)| format!("## {title}\n\n{}", table.markdown()))
            .collect();
        texts.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut samples = Samples::default();
        for value in [150.0, 160.0, 155.0] {
            samples.add("node.single.p50 us", value);
            samples.add("floor.round_trip_flush.p50 us", 130.0);
        }
        Report {
            repetitions: 3,
            targets: targets::judge(&samples, &[]),
            samples,
            peers: Vec::new(),
        }
    }

    #[test]
    fn medians_are_judged() {
        let report = report();
        let target = report
            .targets
            .iter()
            .find(|target| target.measured == 155.0)
            .expect("the median of what was measured is judged");
        assert_eq!(target.is_met(), Some(true));
        let unmeasured = report.targets.iter().filter(|t| t.is_met().is_none());
        assert_eq!(unmeasured.count(), report.targets.len() - 1);
    }

    #[test]
    fn the_report_reads_back_from_its_json() {
        let json = serde_json::to_string(&report()).expect("numbers are JSON");
        let value: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!(value["repetitions"], 3);
        assert_eq!(value["samples"]["node.single.p50 us"][1], 160.0);
        assert!(value["targets"][0]["name"].is_string());
    }

    #[test]
    fn text_and_markdown_have_every_table() {
        let report = report();
        for title in ["Targets", "Everything measured"] {
            assert!(report.text().contains(title));
            assert!(report.markdown().contains(&format!("## {title}\n")));
        }
        assert!(!report.text().contains("Other systems"));
    }
}
