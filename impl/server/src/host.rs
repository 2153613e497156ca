//! Figures of the process and of the machine it runs on, as the system tells them. A figure that
//! cannot be read is zero or empty: it is information, nothing is decided by it.

use std::fs;
use std::path::Path;

use crate::shard::now;

/// Clock ticks per second in `/proc`; the same on every Linux that user space sees.
const TICKS_PER_SECOND: f32 = 100.0;

/// Figures of the machine.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Its name.
    pub hostname: String,
    /// The operating system.
    pub os_name: String,
    /// Its version.
    pub os_version: String,
    /// The kernel's release.
    pub kernel_version: String,
    /// Bytes of memory.
    pub memory_total: u64,
    /// Bytes of memory that can be had.
    pub memory_available: u64,
    /// Per cent of all cores, by the load of the last minute.
    pub cpu: f32,
    /// Free bytes of the data directory's volume.
    pub disk_free: u64,
    /// Bytes of the data directory's volume.
    pub disk_total: u64,
}

/// Figures of the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process {
    /// Per cent of one core, since the start.
    pub cpu: f32,
    /// Resident bytes.
    pub memory: u64,
    /// Threads.
    pub threads: u32,
    /// Bytes read from disk.
    pub read_bytes: u64,
    /// Bytes written to disk.
    pub written_bytes: u64,
}

impl Host {
    /// Reads the figures.
    pub fn read(data_dir: &Path) -> Host {
        let uname = rustix::system::uname();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load: f32 = load
            .split(' ')
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0.0);
        let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
        let disk = rustix::fs::statvfs(data_dir).ok();
        let disk_bytes = |blocks: u64| disk.as_ref().map_or(0, |disk| blocks * disk.f_frsize);
        Host {
            hostname: uname.nodename().to_string_lossy().into_owned(),
            os_name: quoted(&release, "NAME="),
            os_version: quoted(&release, "VERSION_ID="),
            kernel_version: uname.release().to_string_lossy().into_owned(),
            memory_total: kilobytes(&memory, "MemTotal:"),
            memory_available: kilobytes(&memory, "MemAvailable:"),
            cpu: (load / cores as f32 * 100.0).min(100.0),
            disk_free: disk_bytes(disk.as_ref().map_or(0, |disk| disk.f_bavail)),
            disk_total: disk_bytes(disk.as_ref().map_or(0, |disk| disk.f_blocks)),
        }
    }
}

impl Process {
    /// Reads the figures; `started_at` is in µs since the Unix epoch.
    pub fn read(started_at: u64) -> Process {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let seconds = now().0.saturating_sub(started_at) as f32 / 1e6;
        let ticks = cpu_ticks(&stat) as f32;
        Process {
            cpu: match seconds > 0.0 {
                true => ticks / TICKS_PER_SECOND / seconds * 100.0,
                false => 0.0,
            },
            memory: kilobytes(&status, "VmRSS:"),
            threads: number(&status, "Threads:") as u32,
            read_bytes: number(&io, "read_bytes:"),
            written_bytes: number(&io, "write_bytes:"),
        }
    }
}

/// User and system time of `/proc/self/stat`, in ticks.
fn cpu_ticks(stat: &str) -> u64 {
    // The second field is the name in brackets, which may hold spaces.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next().and_then(|f| f.parse().ok()).unwrap_or(0);
    let (user, system): (u64, u64) = (next(), next());
    user + system
}

fn number(text: &str, key: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(key))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn kilobytes(text: &str, key: &str) -> u64 {
    number(text, key) * 1024
}

fn quoted(text: &str, key: &str) -> String {
    text.lines()
        .find_map(|line| line.strip_prefix(key))
        .map(|value| value.trim_matches('"').to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_this_process_and_machine_are_plausible() {
        let host = Host::read(Path::new("/"));
        assert!(!host.hostname.is_empty() && !host.kernel_version.is_empty());
        assert!(host.memory_total >= host.memory_available && host.memory_available > 0);
        assert!(host.disk_total >= host.disk_free && host.disk_total > 0);
        let process = Process::read(now().0 - 1_000_000);
        assert!(process.memory > 100_000 && process.threads > 0);
    }

    #[test]
    fn names_with_brackets_do_not_shift_the_fields() {
        let stat = "1 (a) b) c) S 0 0 0 0 0 0 0 0 0 0 7 5 0 0";
        assert_eq!(cpu_ticks(stat), 12);
    }
}
