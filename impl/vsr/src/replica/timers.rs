//! Timers by name, with jitter from the replica's own seeded sequence.

/// A sequence of numbers that is a function of its seed (splitmix64).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Jitter(u64);

impl Jitter {
    pub(super) fn new(seed: u64) -> Jitter {
        Jitter(seed)
    }

    /// A number below `bound`; 0 when that is 0.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // The upper half scaled: below the bound, without a division.
        (((z >> 32) * u64::from(bound)) >> 32) as u32
    }
}
