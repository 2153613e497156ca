//! Seeded numbers that stay the same over releases of any library: a seed keeps its meaning.

/// A generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed and of a purpose under this seed.
    pub fn new(seed: u64, purpose: u64) -> Random {
        let mut random = Random(seed ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93));
        random.next();
        random
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Whether an event of `percent` happens.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number from `low` to `high`, small ones as likely per octave as large ones.
    pub fn octaves(&mut self, low: u64, high: u64) -> u64 {
        let ratio = high as f64 / low as f64;
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        (low as f64 * ratio.powf(unit)) as u64
    }

    /// Fills bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence_and_purposes_differ() {
        let sequence = |seed, purpose| {
            let mut random = Random::new(seed, purpose);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(sequence(1, 2), sequence(1, 2));
        assert_ne!(sequence(1, 2), sequence(1, 3));
        assert_ne!(sequence(1, 2), sequence(2, 2));
    }

    #[test]
    fn numbers_stay_in_their_bounds() {
        let mut random = Random::new(7, 7);
        for _ in 0..1000 {
            assert!(random.below(3) < 3);
            assert!((5..=80).contains(&random.octaves(5, 80)));
        }
    }
}
