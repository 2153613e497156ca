//! How many replicas decide.
//!
//! Any two majorities share a replica, so whoever takes part in a view change has met every op that
//! was decided. An op that so many replicas deny that no majority is left to have acknowledged it
//! was never decided.

use crate::config::REPLICAS_MAX;

/// Durable acknowledgements that decide an op; votes that start a view.
pub const fn majority(replicas: u8) -> u8 {
    replicas / 2 + 1
}

/// Denials after which no majority can have acknowledged an op.
pub const fn nack_quorum(replicas: u8) -> u8 {
    replicas - majority(replicas) + 1
}

const _: () = {
    let mut replicas = 1;
    while replicas <= REPLICAS_MAX {
        // Two majorities meet.
        assert!(2 * majority(replicas) > replicas);
        // Denials and acknowledgements cannot both be complete, and the smallest such number is
        // used.
        assert!(nack_quorum(replicas) + majority(replicas) == replicas + 1);
        // A majority of votes can, when all deny, drop an op: a view can start without the rest.
        assert!(nack_quorum(replicas) <= majority(replicas));
        replicas += 1;
    }
};

/// The highest op that `majority` replicas hold durably, given each one's cumulative position.
pub fn decided<const N: usize>(positions: &[u64; N], replicas: u8) -> u64 {
    let count = usize::from(replicas);
    let mut sorted = *positions;
    sorted[..count].sort_unstable_by(|a, b| b.cmp(a));
    sorted[usize::from(majority(replicas)) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quorum_sizes() {
        let table = [
            (1, 1, 1),
            (2, 2, 1),
            (3, 2, 2),
            (4, 3, 2),
            (5, 3, 3),
            (6, 4, 3),
            (7, 4, 4),
        ];
        for (replicas, majority_expected, nacks_expected) in table {
            assert_eq!(majority(replicas), majority_expected, "{replicas} replicas");
            assert_eq!(nack_quorum(replicas), nacks_expected, "{replicas} replicas");
        }
    }

    #[test]
    fn decided_is_the_position_a_majority_has_reached() {
        // Every combination of positions 0..=3 for up to five replicas, against the definition.
        for replicas in 1..=5u8 {
            let n = usize::from(replicas);
            for code in 0..4u32.pow(replicas.into()) {
                let mut positions = [u64::MAX; 7];
                for (index, position) in positions.iter_mut().take(n).enumerate() {
                    *position = u64::from(code >> (2 * index) & 3);
                }
                let expected = (0..=3)
                    .rev()
                    .find(|op| {
                        let held = positions[..n].iter().filter(|p| *p >= op).count();
                        held >= usize::from(majority(replicas))
                    })
                    .expect("every replica has reached 0");
                assert_eq!(decided(&positions, replicas), expected, "{positions:?}");
            }
        }
    }
}
