//! Timers are names. The core says which one and how many ticks; only the driver knows time.

use std::fmt;

/// Something a replica wants to be reminded of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// A primary tells its backups that it lives and what is committed.
    Heartbeat,
    /// A backup has not heard of the primary, or a view change has not ended.
    ViewChange,
    /// An entry is missing, and the one who was asked has not answered.
    Repair,
}

impl fmt::Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Timer::Heartbeat => "heartbeat",
            Timer::ViewChange => "view change",
            Timer::Repair => "repair",
        })
    }
}
