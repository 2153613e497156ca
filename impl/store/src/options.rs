//! What a data directory is, and the limits under which it is used.

use pawl_wire::ids::ReplicaIndex;

/// Whose data this is. Written when a directory is formatted, compared by the caller at every
/// start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The cluster.
    pub cluster: u128,
    /// Which replica of it.
    pub replica: ReplicaIndex,
    /// Fingerprint of the constants that all replicas share (decision 10).
    pub constants: u128,
}

/// Limits of the store. Process configuration: none of them changes what apply computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// Bytes of a log segment, a multiple of 4,096. A batch that does not fit gets a segment of its
    /// own.
    pub segment_bytes: u32,
    /// Above this the oldest segments of the log are drained.
    pub log_bytes_max: u64,
    /// Zeros are written this far ahead of the log's end, so that a flush never grows a file.
    pub zone_bytes: u32,
    /// More bytes than this between two ticks of the preparer are bulk load: no zeros then.
    pub bulk_bytes_per_tick: u64,
    /// Bodies below this are copied into the batch's staging buffer; others are gathered.
    pub copy_bytes_max: u32,
    /// A batch is closed above this; one larger entry travels alone.
    pub batch_bytes_max: u32,
    /// A partition's file is closed above this.
    pub partition_segment_bytes: u32,
    /// Room that is kept for the next snapshot, twice the last one at least, for a full volume.
    pub snapshot_reserve_bytes: u64,
    /// Open files that the reader keeps.
    pub reader_files_max: usize,
    /// How many cut tails are kept aside; the oldest is removed.
    pub cut_files_max: usize,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            segment_bytes: 64 << 20,
            log_bytes_max: 16 << 30,
            zone_bytes: 16 << 20,
            bulk_bytes_per_tick: 2 << 20,
            copy_bytes_max: 4 << 10,
            batch_bytes_max: 32 << 20,
            partition_segment_bytes: 256 << 20,
            snapshot_reserve_bytes: 4 << 20,
            reader_files_max: 1024,
            cut_files_max: 8,
        }
    }
}
