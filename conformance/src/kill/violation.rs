//! What a server can be found to have broken.

use super::message::MessageKey;

/// A finding. Each names what was promised and what was found instead.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// Acknowledged messages are not there.
    #[error(
        "lost: partition {partition} ends at offset {end}, but {key:?} was confirmed at {offset} \
         ({lost} confirmed messages are missing)"
    )]
    Lost {
        /// Where.
        partition: u32,
        /// The first one missing.
        offset: u64,
        /// Which one it is.
        key: MessageKey,
        /// Messages that are there.
        end: u64,
        /// How many are missing.
        lost: u64,
    },
    /// A message that was confirmed at one offset is at another one too.
    #[error(
        "duplicate: {key:?} is at offset {offset} of partition {partition} and was confirmed at \
         offset {confirmed} of partition {confirmed_partition}"
    )]
    Duplicate {
        /// Where it is.
        partition: u32,
        /// Where it is.
        offset: u64,
        /// Which one.
        key: MessageKey,
        /// Where it was confirmed.
        confirmed_partition: u32,
        /// Where it was confirmed.
        confirmed: u64,
    },
    /// A confirmed offset holds another message.
    #[error(
        "wrong message: offset {offset} of partition {partition} was confirmed for {key:?}, \
         found id {found:#x}"
    )]
    WrongMessage {
        /// Where.
        partition: u32,
        /// Where.
        offset: u64,
        /// What was confirmed there.
        key: MessageKey,
        /// What is there.
        found: u128,
    },
    /// A message has another payload or other headers than were sent.
    #[error("altered: {key:?} at offset {offset} of partition {partition} has another content")]
    Altered {
        /// Where.
        partition: u32,
        /// Where.
        offset: u64,
        /// Which one.
        key: MessageKey,
    },
    /// Polled offsets are not consecutive from 0.
    #[error("offsets: partition {partition} has offset {found} in the place of {expected}")]
    Offset {
        /// Where.
        partition: u32,
        /// The offset that should come.
        expected: u64,
        /// The one that came.
        found: u64,
    },
    /// A message that nobody is known to have sent, or not yet.
    #[error("unknown message: id {found:#x} at offset {offset} of partition {partition}")]
    Unknown {
        /// Where.
        partition: u32,
        /// Where.
        offset: u64,
        /// Its id.
        found: u128,
    },
    /// Of an open request's batch neither all nor nothing is there, or it is there twice.
    #[error(
        "torn batch: {found} messages of the {count} from {first:?} on are in partition {partition}"
    )]
    TornBatch {
        /// Where.
        partition: u32,
        /// The first message of the batch.
        first: MessageKey,
        /// Messages in the batch.
        count: u64,
        /// Messages found.
        found: u64,
    },
    /// One offset was confirmed for two messages.
    #[error(
        "confirmed twice: offset {offset} of partition {partition}, for {first:?} and {second:?}"
    )]
    ConfirmedTwice {
        /// Where.
        partition: u32,
        /// Where.
        offset: u64,
        /// The first one.
        first: MessageKey,
        /// The other one.
        second: MessageKey,
    },
    /// The catalog is not what the acknowledged writes make of it.
    #[error("catalog of client {client}: expected {expected}, found {found}")]
    Catalog {
        /// Whose streams.
        client: u16,
        /// What its writes make.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A stream that nobody made.
    #[error("catalog: stream {0:?} belongs to nobody")]
    ForeignStream(String),
    /// A stored offset is not the one that was acknowledged last.
    #[error("stored offsets of client {client}: expected {expected}, found {found}")]
    StoredOffsets {
        /// Whose.
        client: u16,
        /// What its writes make.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A request got another outcome than its single execution has.
    #[error(
        "client {client}, request {number} ({action}): expected {expected}, answered {answered}"
    )]
    Outcome {
        /// Whose.
        client: u16,
        /// Its number.
        number: u64,
        /// What it asked.
        action: String,
        /// What a single execution gives.
        expected: String,
        /// What came.
        answered: String,
    },
    /// The repeat of a request got other bytes than the request.
    #[error(
        "client {client}, request {number} ({action}): the repeat's answer differs from byte \
         {byte} on"
    )]
    Repeat {
        /// Whose.
        client: u16,
        /// Its number.
        number: u64,
        /// What it asked.
        action: String,
        /// The first byte that differs.
        byte: usize,
    },
    /// An epoch did not rise.
    #[error("client {client}: epoch {found} after epoch {before}")]
    Epoch {
        /// Whose.
        client: u16,
        /// The highest before.
        before: u64,
        /// What the sign-in said.
        found: u64,
    },
    /// A request got no answer although the node was up.
    #[error("client {client}: no answer to {what}: {error}")]
    Unanswered {
        /// Whose.
        client: u16,
        /// To what.
        what: String,
        /// What happened instead.
        error: String,
    },
    /// What a poll or a read returned is malformed.
    #[error("malformed: {0}")]
    Malformed(String),
    /// A restart without load changed something.
    #[error("a restart changed {0}")]
    RestartChanged(String),
    /// The node ended by itself, panicked, or did not stop or start in time.
    #[error("node: {0}")]
    Node(String),
}
