//! Every limit of the node, with what happens at it.
//!
//! Limits that replicas must share are cluster constants in the log's genesis and stand elsewhere.

use std::time::Duration;

/// The largest value that `message_bus.max_message_size` may have. The dialect froze it.
pub const FRAME_BYTES_CEILING: u64 = 256 << 20;

/// Bytes that a shard reads at once. One buffer per shard serves all its connections: a connection
/// that waits owns no buffer.
pub const SHARD_SCRATCH_BYTES: usize = 64 << 10;

/// A frame up to this size is kept on its own; a larger one is read into a pooled buffer and its
/// bytes are taken from `memory.request_bytes_max` first. When that is used up the connection is
/// not read until others are answered, so that the producer is slowed by TCP.
pub const FRAME_SMALL_BYTES: usize = 32 << 10;

/// The largest body that is kept for a connection that has not signed in. A larger one is read and
/// thrown away, so that memory does not follow the claim; then the request is refused as always.
pub const BODY_UNSIGNED_BYTES: usize = 16 << 10;

/// Free buffers that a shard keeps for large frames. Above it, buffers go back to the allocator.
pub const POOL_BYTES_MAX: usize = 32 << 20;

/// Connections of one node. Above it, a connection is accepted and closed at once.
pub const CONNECTIONS_MAX: usize = 20_000;

/// Requests of one shard that wait for the log thread. Above it a write is answered "not accepted"
/// (58). Connections have one request at a time, so that this is also a bound on busy connections.
pub const SUBMISSIONS_MAX: usize = 16_384;

/// Password checks that wait for the hashing threads. Above it a login is answered 58.
pub const LOGINS_WAITING_MAX: usize = 1_024;

/// Threads that hash passwords; each works with 19 MiB.
pub const HASHING_THREADS: usize = 2;

/// Bytes of records that make the log thread hand a batch to the WAL thread instead of writing it
/// itself: below, two hand-overs cost more than the write.
pub const WAL_INLINE_BYTES_MAX: usize = 128 << 10;

/// Records that one WAL batch gathers. More wait for the next one.
pub const WAL_BATCH_RECORDS_MAX: usize = 4_096;

/// Bytes that one WAL batch gathers. More wait for the next one.
pub const WAL_BATCH_BYTES_MAX: usize = 8 << 20;

/// Jobs that wait for the keeper thread. They are made at checkpoints and segment changes, one at a
/// time; the log thread drops a job that finds no place, and makes it again at the next occasion.
pub const KEEPER_JOBS_MAX: usize = 64;

/// Messages that one poll returns at most. A larger count is cut to it.
pub const POLL_MESSAGES_MAX: u32 = 1 << 20;

/// Bytes that one poll returns at most, unless a single batch is larger: a poll whose answer would
/// pass it is cut at a batch, never lost.
pub const POLL_BYTES_MAX: u64 = 32 << 20;

/// Batches that one poll gathers at most.
pub const POLL_BATCHES_MAX: usize = 65_536;

/// How long a request waits for the log at most. Then a proposal is answered "unknown outcome"
/// (57), a question "not accepted" (58): below the 30 s after which clients give their connection
/// up.
pub const ANSWER_WAIT_MAX: Duration = Duration::from_secs(20);

/// Ops over which the tail cache reaches at most; the oldest leave.
pub const TAIL_OPS_MAX: usize = 256 << 10;

/// How long a graceful stop waits for requests in flight.
pub const STOP_GRACE: Duration = Duration::from_millis(2_500);

/// Name of the roster of a node alone; tools compare it.
pub const ROSTER_NAME: &str = "single-node";

/// Name of a node alone in its roster; tools compare it.
pub const NODE_NAME: &str = "iggy-node";

/// Sessions of the process before this one that are released in one batch at a start.
pub const RELEASES_AT_ONCE: usize = 256;

const _: () = assert!(RELEASES_AT_ONCE <= pawl_vsr::config::PIPELINE_OPS_MAX as usize);
const _: () = assert!(FRAME_SMALL_BYTES * 2 <= SHARD_SCRATCH_BYTES);
const _: () = assert!(BODY_UNSIGNED_BYTES < FRAME_SMALL_BYTES);
const _: () = assert!(WAL_INLINE_BYTES_MAX < WAL_BATCH_BYTES_MAX);
