//! What a run did and found.

use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use serde::Serialize;

/// Counts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counters {
    /// Rounds that were finished.
    pub rounds: u64,
    /// SIGKILLs under load.
    pub kills: u64,
    /// SIGKILLs while the node was starting.
    pub kills_at_start: u64,
    /// SIGTERMs, each followed by an end with success.
    pub stops: u64,
    /// Starts after which the node served.
    pub starts: u64,
    /// Sign-ins.
    pub sign_ins: u64,
    /// Acknowledged sends.
    pub sends: u64,
    /// Messages in them.
    pub messages: u64,
    /// Acknowledged metadata writes.
    pub metadata: u64,
    /// Acknowledged stored offsets.
    pub offsets: u64,
    /// Requests sent again after their connection was lost.
    pub retried: u64,
    /// Of these, the ones that had been executed before.
    pub replayed: u64,
    /// Answered requests that were repeated, with an answer equal in every byte.
    pub repeats: u64,
    /// Transient refusals.
    pub transient: u64,
    /// Messages read back and compared.
    pub compared: u64,
}

impl Counters {
    /// Adds the counts of another.
    pub fn add(&mut self, other: &Counters) {
        self.rounds += other.rounds;
        self.kills += other.kills;
        self.kills_at_start += other.kills_at_start;
        self.stops += other.stops;
        self.starts += other.starts;
        self.sign_ins += other.sign_ins;
        self.sends += other.sends;
        self.messages += other.messages;
        self.metadata += other.metadata;
        self.offsets += other.offsets;
        self.retried += other.retried;
        self.replayed += other.replayed;
        self.repeats += other.repeats;
        self.transient += other.transient;
        self.compared += other.compared;
    }
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The seed: the same seed makes the same requests and draws the same instants.
    pub seed: u64,
    /// Rounds asked for.
    pub rounds_asked: u64,
    /// Clients.
    pub clients: u16,
    /// Seconds that the run took.
    pub seconds: f64,
    /// The longest time from a start to readiness, in milliseconds.
    pub start_ms_max: u64,
    /// Bytes in the data directory at the end.
    pub data_bytes: u64,
    /// Files in it, by the first part of their path.
    pub data_files: std::collections::BTreeMap<String, u64>,
    /// What was done.
    pub counters: Counters,
    /// What was found, in words; empty is a success.
    pub violations: Vec<String>,
}

impl Report {
    /// The closing table.
    pub fn table(&self) -> Table {
        let counters = &self.counters;
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        table.set_header(["what", "count"]);
        let rounds = format!("{} of {}", counters.rounds, self.rounds_asked);
        table.add_row(["rounds", &rounds]);
        let rows: [(&str, u64); 13] = [
            ("SIGKILL under load", counters.kills),
            ("SIGKILL while starting", counters.kills_at_start),
            ("SIGTERM", counters.stops),
            ("starts", counters.starts),
            ("sign-ins", counters.sign_ins),
            ("sends acknowledged", counters.sends),
            ("messages acknowledged", counters.messages),
            ("metadata writes acknowledged", counters.metadata),
            ("offsets stored", counters.offsets),
            ("requests retried after a kill", counters.retried),
            ("of these executed before it", counters.replayed),
            ("repeats with equal answers", counters.repeats),
            ("messages compared", counters.compared),
        ];
        for (name, count) in rows {
            table.add_row([name, &count.to_string()]);
        }
        table.add_row(["longest start", &format!("{} ms", self.start_ms_max)]);
        let data = format!("{} MiB", self.data_bytes >> 20);
        table.add_row(["data directory", &data]);
        for (name, count) in &self.data_files {
            table.add_row([&format!("files in {name}"), &count.to_string()]);
        }
        let time = Duration::from_secs_f64(self.seconds).as_secs();
        table.add_row(["time", &format!("{time} s")]);
        table.add_row(["violations", &self.violations.len().to_string()]);
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_json_and_a_table() {
        let report = Report {
            seed: 1,
            rounds_asked: 2,
            clients: 8,
            seconds: 1.5,
            start_ms_max: 20,
            data_bytes: 1 << 20,
            data_files: Default::default(),
            counters: Counters {
                rounds: 2,
                messages: 12345,
                ..Counters::default()
            },
            violations: vec!["lost".to_owned()],
        };
        let json = serde_json::to_value(&report).expect("it has text keys");
        assert_eq!(json["counters"]["messages"], 12345);
        assert_eq!(json["violations"][0], "lost");
        assert!(report.table().to_string().contains("12345"));
    }
}
