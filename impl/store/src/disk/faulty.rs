//! A disk in memory that loses, tears, reorders, flips, fails and fills up, by a seed.

/// A faulty disk. See the list of faults at the top of this file.
#[derive(Debug)]
pub struct FaultyDisk {}
