//! What the system says about processes: processor time and memory.

use std::fs;
use std::time::Instant;

use crate::load::Cores;

/// Processor time of a process so far, in seconds; `None` when it is gone.
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks = cpu_ticks(&stat)?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// User and system time in a line of `/proc/<pid>/stat`. The name of the program, in parentheses,
/// may hold anything, parentheses too.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11);
    let mut next = || times.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Resident bytes of a process; `None` when it is gone.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    resident_of(&status)
}

fn resident_of(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Processor time of this process and of a node at one moment.
#[derive(Clone, Copy, Debug)]
pub struct CpuTimes {
    load: Option<f64>,
    node: Option<(u32, f64)>,
}

impl CpuTimes {
    /// Now.
    pub fn now(node: Option<u32>) -> CpuTimes {
        CpuTimes {
            load: cpu_seconds(std::process::id()),
            node: node.and_then(|pid| Some((pid, cpu_seconds(pid)?))),
        }
    }

    /// Cores used between these times, which were taken at `begun`, and now.
    pub fn cores_since(&self, begun: Instant) -> Cores {
        let seconds = begun.elapsed().as_secs_f64();
        let used = |pid, before| Some((cpu_seconds(pid)? - before) / seconds);
        let load = self
            .load
            .and_then(|before| used(std::process::id(), before));
        Cores {
            load: load.unwrap_or_default(),
            node: self.node.and_then(|(pid, before)| used(pid, before)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_program_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 1 1 1";
        assert_eq!(cpu_ticks(stat), Some(300));
        assert_eq!(cpu_ticks("7 (a"), None);
        assert_eq!(cpu_ticks("7 (a) S 1"), None);
    }

    #[test]
    fn resident_bytes_are_read_from_the_status() {
        assert_eq!(resident_of("Name: a\nVmRSS:\t    12 kB\n"), Some(12 << 10));
        assert_eq!(resident_of("Name: a\n"), None);
    }

    #[test]
    fn this_process_has_both() {
        let pid = std::process::id();
        assert!(resident_bytes(pid).is_some_and(|bytes| bytes > 0));
        assert!(cpu_seconds(pid).is_some());
        assert!(cpu_seconds(u32::MAX).is_none());
    }
}
