//! Log, anchor, snapshots and partition data over a Disk trait.
