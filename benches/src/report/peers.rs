//! Results of other systems, as their runner writes them: one JSON object a line and repetition.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{BenchError, Doing, Result};
use crate::statistics::median;

/// Medians of one case of another system.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Peer {
    /// The system and how it is set up.
    pub group: String,
    /// The case.
    pub label: String,
    /// Messages a second.
    pub per_second: f64,
    /// 10^6 bytes a second.
    pub megabytes_per_second: f64,
    /// Half are answered within.
    pub p50_us: f64,
    /// 99 of 100 are answered within.
    pub p99_us: f64,
}

/// A line of the runner; it has more fields.
#[derive(Debug, Deserialize)]
struct Line {
    group: String,
    label: String,
    rate: f64,
    #[serde(default)]
    mb_s: f64,
    p50_us: f64,
    p99_us: f64,
}

/// Reads a file of the runner.
pub fn read(path: &Path) -> Result<Vec<Peer>> {
    let text = fs::read_to_string(path).doing("read the results of other systems")?;
    parse(&text).map_err(|what| BenchError::Results {
        path: path.to_owned(),
        what,
    })
}

fn parse(text: &str) -> std::result::Result<Vec<Peer>, String> {
    let mut cases: BTreeMap<(String, String), Vec<Line>> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line: Line =
            serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))?;
        let key = (line.group.clone(), line.label.clone());
        cases.entry(key).or_default().push(line);
    }
    let peers = cases.into_iter().map(|((group, label), lines)| {
        let middle = |of: fn(&Line) -> f64| {
            let values: Vec<_> = lines.iter().map(of).collect();
            median(&values).expect("a case has a line")
        };
        Peer {
            group,
            label,
            per_second: middle(|line| line.rate),
            megabytes_per_second: middle(|line| line.mb_s),
            p50_us: middle(|line| line.p50_us),
            p99_us: middle(|line| line.p99_us),
        }
    });
    Ok(peers.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_become_medians() {
        let line = |rate: u32| {
            format!(
                r#"{{"group":"redis-always","label":"xadd c64 d1","rep":0,"rate":{rate},"mb_s":1,
                "p50_us":2,"p99_us":3}}"#
            )
            .replace('\n', "")
        };
        let text = [line(30), line(10), line(20)].join("\n");
        let peers = parse(&text).expect("the lines are right");
        assert_eq!(peers.len(), 1);
        assert_eq!(peers[0].per_second, 20.0);
        assert_eq!(peers[0].p99_us, 3.0);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let error = parse("{}").expect_err("fields are missing");
        assert!(error.starts_with("line 1:"), "{error}");
    }
}
