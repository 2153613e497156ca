//! Ignored input is data: every early return names a reason, which is counted.

/// Why an input changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum IgnoreReason {
    /// The replica has stopped for good.
    Stopped,
    /// A durable position at or below one that was reported before.
    DurableNotNew,
    /// A durable position above the last record that was handed out.
    DurableAhead,
    /// The snapshot that was reported is not the one that is being written.
    SnapshotNotInFlight,
    /// The timer was not armed; it fired while it was being disarmed.
    TimerNotArmed,
    /// A message from a number that no other replica of the cluster has.
    UnknownSender,
    /// A message of an older view than this replica's.
    OlderView,
    /// A message of a newer view, which this replica can only enter by a view change.
    NewerView,
    /// A message that the primary of the view sends, from another replica.
    NotFromPrimary,
    /// A message for the primary of the view, at another replica.
    NotPrimary,
    /// The replica is in no state to take it: it is restarting or changing views.
    NotNormal,
    /// It says what is known already.
    AlreadyKnown,
    /// An op outside the window.
    OutsideWindow,
    /// An entry that does not continue the chain, or is not the one expected at its op.
    ChainMismatch,
    /// A message whose parts contradict each other.
    Malformed,
    /// An entry that nobody waits for.
    NotAsked,
    /// The part of the protocol that this message belongs to is not in this release (spec CON-37).
    NotSupported,
}

/// Number of reasons.
const REASONS: usize = IgnoreReason::NotSupported as usize + 1;

/// How often each reason was met.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ignored {
    counts: [u64; REASONS],
}

impl Default for Ignored {
    fn default() -> Ignored {
        Ignored {
            counts: [0; REASONS],
        }
    }
}

impl IgnoreReason {
    /// Every reason, in order.
    pub const ALL: [IgnoreReason; REASONS] = {
        use IgnoreReason::*;
        [
            Stopped,
            DurableNotNew,
            DurableAhead,
            SnapshotNotInFlight,
            TimerNotArmed,
            UnknownSender,
            OlderView,
            NewerView,
            NotFromPrimary,
            NotPrimary,
            NotNormal,
            AlreadyKnown,
            OutsideWindow,
            ChainMismatch,
            Malformed,
            NotAsked,
            NotSupported,
        ]
    };
}

impl Ignored {
    /// How often `reason` was met.
    pub fn count(&self, reason: IgnoreReason) -> u64 {
        self.counts[reason as usize]
    }

    /// How many inputs were ignored.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (IgnoreReason, u64)> + '_ {
        IgnoreReason::ALL
            .into_iter()
            .map(|reason| (reason, self.count(reason)))
    }

    pub(crate) fn add(&mut self, reason: IgnoreReason) {
        self.counts[reason as usize] += 1;
    }
}
